// A stand-in for libcuda, libcublas, libcurand and libcudart: a GPU made of threads, for a program that is linked against
// the real ones. It is as asynchronous as a GPU is, which is what it is for: every stream is a thread that works off a
// queue, events order them, memory is given out and taken back in the order of a stream, and copies from and to locked
// memory read and write it when their turn comes. Fresh memory is full of NaNs, and so is freed memory, so that whoever
// reads too early or too late sees them. Kernels are the ones of `src/cuda`, compiled as C, and stand-ins for the few of
// candle's that image models use; all f32.
//
// What it is told, by the environment: STANDIN_MEMORY (bytes), STANDIN_DEVICES (how many are visible), STANDIN_CUDA (the
// version that the driver knows, such as 12040), STANDIN_LOSE_AFTER (so many launches, and the device is lost),
// STANDIN_LOCK (`never`, or `read-only`: what locking pages answers to).

#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    unsigned x, y;
} Place;
static __thread Place threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define KERNEL static
#include "../../src/cuda/kernels.cu"

enum {
    OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700, NOT_SUPPORTED = 801,
};
enum { READ_ONLY_HOST_REGISTER_SUPPORTED = 113, MEMORY_POOLS_SUPPORTED = 115, FLAG_READ_ONLY = 8 };

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// --- streams and events ----------------------------------------------------------------------------------------------

// One piece of work, with its arguments.
typedef struct Work {
    void (*run)(struct Work *);
    struct Work *next;
    uint64_t arg[24];
} Work;

typedef struct {
    Work *first, *last;
    int is_busy;
    unsigned seed;
    pthread_t thread;
} Stream;

typedef struct {
    uint64_t n_recorded, n_passed;
    double ms;
} Event;

// Guards the queues, the events and the counts of memory.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread void *context;
static int is_lost;

// What a call answers first: as the real driver does to a thread that has not been given a context, and after an error
// that sticks.
#define BOUND                              \
    if (!context) return INVALID_CONTEXT; \
    if (is_lost) return ILLEGAL_ADDRESS

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void *work_off(void *argument) {
    Stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first) pthread_cond_wait(&changed, &lock);
        Work *work = stream->first;
        stream->first = work->next;
        stream->is_busy = 1;
        pthread_mutex_unlock(&lock);
        // Streams get ahead of one another now and then, as they do on a GPU.
        if (rand_r(&stream->seed) % 4 == 0) usleep(rand_r(&stream->seed) % 100);
        work->run(work);
        free(work);
        pthread_mutex_lock(&lock);
        stream->is_busy = 0;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static Work *begin(void (*run)(Work *)) {
    Work *work = calloc(1, sizeof *work);
    work->run = run;
    return work;
}

static int enqueue(Stream *stream, Work *work) {
    pthread_mutex_lock(&lock);
    if (stream->first) stream->last->next = work;
    else stream->first = work;
    stream->last = work;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuStreamCreate(Stream **stream, unsigned flags) {
    static unsigned n_streams;
    (void)flags;
    BOUND;
    *stream = calloc(1, sizeof **stream);
    (*stream)->seed = ++n_streams;
    return pthread_create(&(*stream)->thread, NULL, work_off, *stream) ? OUT_OF_MEMORY : OK;
}

int cuStreamSynchronize(Stream *stream) {
    pthread_mutex_lock(&lock);
    while (stream->first || stream->is_busy) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return is_lost ? ILLEGAL_ADDRESS : OK;
}

int cuStreamDestroy_v2(Stream *stream) { return cuStreamSynchronize(stream); }

int cuStreamIsCapturing(Stream *stream, int *status) {
    (void)stream;
    *status = 0;
    return OK;
}

int cuEventCreate(Event **event, unsigned flags) {
    (void)flags;
    BOUND;
    *event = calloc(1, sizeof **event);
    return OK;
}

// Kept, because work that names it may still be queued.
int cuEventDestroy_v2(Event *event) { return event ? OK : INVALID_HANDLE; }

static void pass(Work *work) {
    Event *event = (Event *)work->arg[0];
    pthread_mutex_lock(&lock);
    event->n_passed = work->arg[1];
    event->ms = now_ms();
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int cuEventRecord(Event *event, Stream *stream) {
    BOUND;
    Work *work = begin(pass);
    work->arg[0] = (uint64_t)event;
    pthread_mutex_lock(&lock);
    work->arg[1] = ++event->n_recorded;
    pthread_mutex_unlock(&lock);
    return enqueue(stream, work);
}

static void wait_for(Event *event, uint64_t n) {
    pthread_mutex_lock(&lock);
    while (event->n_passed < n) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_for_event(Work *work) { wait_for((Event *)work->arg[0], work->arg[1]); }

int cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    (void)flags;
    BOUND;
    Work *work = begin(wait_for_event);
    work->arg[0] = (uint64_t)event;
    pthread_mutex_lock(&lock);
    work->arg[1] = event->n_recorded;
    pthread_mutex_unlock(&lock);
    return enqueue(stream, work);
}

int cuEventSynchronize(Event *event) {
    wait_for(event, event->n_recorded);
    return is_lost ? ILLEGAL_ADDRESS : OK;
}

int cuEventElapsedTime_v2(float *ms, Event *from, Event *to) {
    if (!from->n_recorded || !to->n_recorded) return INVALID_HANDLE;
    *ms = (float)(to->ms - from->ms);
    return is_lost ? ILLEGAL_ADDRESS : OK;
}

// --- the device ------------------------------------------------------------------------------------------------------

static size_t n_used, n_peak;
static size_t memory(void) { return (size_t)setting("STANDIN_MEMORY", 8l << 30); }

int cuInit(unsigned flags) { return flags ? INVALID_VALUE : OK; }
int cuDriverGetVersion(int *version) { return *version = (int)setting("STANDIN_CUDA", 13000), OK; }
int cuDeviceGetCount(int *n) { return *n = (int)setting("STANDIN_DEVICES", 1), OK; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, OK; }
int cuDeviceTotalMem_v2(size_t *n, int device) { return *n = memory(), (void)device, OK; }
int cuDevicePrimaryCtxRetain(void **made, int device) { return *made = &lock, (void)device, OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, OK; }
int cuCtxDestroy_v2(void *gone) { return gone ? OK : INVALID_CONTEXT; }
int cuCtxGetCurrent(void **current) { return *current = context, OK; }
int cuCtxSetCurrent(void *chosen) { return context = chosen, OK; }

int cuCtxSynchronize(void) {
    BOUND;
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == MEMORY_POOLS_SUPPORTED || attribute == READ_ONLY_HOST_REGISTER_SUPPORTED;
    return OK;
}

int cuDeviceGetName(char *name, int room, int device) {
    (void)device;
    snprintf(name, room, "Stand-in");
    return OK;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    (void)device;
    for (int i = 0; i < 16; i++) uuid[i] = 0x11 * i;
    return OK;
}

int cuMemGetInfo_v2(size_t *n_free, size_t *n_total) {
    BOUND;
    *n_total = memory();
    *n_free = memory() - n_used;
    return OK;
}

int cuGetErrorString(int code, const char **text) { return *text = "stand-in", (void)code, OK; }

// --- memory ----------------------------------------------------------------------------------------------------------

// Memory is taken at the call and given back when its turn on the stream comes. A real pool gives it out again at once to
// work that stands behind it on the same stream: so a program that runs ahead of its streams needs less there than here.

// Bytes before each block of the device's memory, which begin with its size.
#define HEADER 256

static int take(uint64_t *address, size_t n) {
    if (!n) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int fits = n <= memory() - n_used;
    if (fits) n_used += n;
    if (n_used > n_peak) n_peak = n_used;
    pthread_mutex_unlock(&lock);
    if (!fits) return OUT_OF_MEMORY;
    char *block = aligned_alloc(HEADER, (HEADER + n + HEADER - 1) / HEADER * HEADER);
    *(size_t *)block = n;
    memset(block + HEADER, 0xff, n);
    *address = (uint64_t)(block + HEADER);
    return OK;
}

static void give_back(Work *work) {
    char *block = (char *)work->arg[0] - HEADER;
    size_t n = *(size_t *)block;
    memset(block + HEADER, 0xff, n);
    pthread_mutex_lock(&lock);
    n_used -= n;
    pthread_mutex_unlock(&lock);
    free(block);
}

int cuMemAllocAsync(uint64_t *address, size_t n, Stream *stream) {
    (void)stream;
    BOUND;
    return take(address, n);
}

int cuMemAlloc_v2(uint64_t *address, size_t n) {
    BOUND;
    return take(address, n);
}

int cuMemFreeAsync(uint64_t address, Stream *stream) {
    Work *work = begin(give_back);
    work->arg[0] = address;
    return enqueue(stream, work);
}

int cuMemFree_v2(uint64_t address) {
    Work work = {.arg = {address}};
    give_back(&work);
    return OK;
}

int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = &lock, (void)device, OK; }

int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    (void)attribute;
    return pool && value ? OK : INVALID_VALUE;
}

int cuMemPoolTrimTo(void *pool, size_t n_kept) {
    (void)n_kept;
    BOUND;
    return pool ? OK : INVALID_VALUE;
}

// Memory of the host whose pages are locked: the driver's own, or registered with it.
enum { NOT_LOCKED, OWN, REGISTERED };
static struct {
    const char *start;
    size_t n;
    int kind;
} locked[256];
static int n_locked;

static int lock_pages(const void *start, size_t n, int kind) {
    pthread_mutex_lock(&lock);
    int has_room = n_locked < 256;
    if (has_room) {
        locked[n_locked].start = start;
        locked[n_locked].n = n;
        locked[n_locked++].kind = kind;
    }
    pthread_mutex_unlock(&lock);
    return has_room ? OK : OUT_OF_MEMORY;
}

static int kind_of(const char *start, size_t n) {
    int found = NOT_LOCKED;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_locked; i++)
        if (start >= locked[i].start && start + n <= locked[i].start + locked[i].n) found = locked[i].kind;
    pthread_mutex_unlock(&lock);
    return found;
}

int cuMemHostAlloc(void **start, size_t n, unsigned flags) {
    (void)flags;
    BOUND;
    if (!n) return INVALID_VALUE;
    *start = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    memset(*start, 0xff, n);
    return lock_pages(*start, n, OWN);
}

int cuMemFreeHost(void *start) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_locked; i++)
        if (locked[i].start == start) locked[i] = locked[--n_locked];
    pthread_mutex_unlock(&lock);
    free(start);
    return OK;
}

int cuMemHostRegister_v2(void *start, size_t n, unsigned flags) {
    BOUND;
    const char *how = getenv("STANDIN_LOCK");
    if (how && !strcmp(how, "never")) return NOT_SUPPORTED;
    if (how && !strcmp(how, "read-only") && !(flags & FLAG_READ_ONLY)) return INVALID_VALUE;
    return lock_pages(start, n, REGISTERED);
}

static void copy(Work *work) {
    memcpy((void *)work->arg[0], (void *)work->arg[1], work->arg[2]);
    free((void *)work->arg[3]);
}

static Work *copying(uint64_t to, uint64_t from, size_t n) {
    Work *work = begin(copy);
    work->arg[0] = to;
    work->arg[1] = from;
    work->arg[2] = n;
    return work;
}

// Counted for the test: how copies went.
static int n_uploads[3], n_downloads[3];

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, Stream *stream) {
    BOUND;
    Work *work = copying(to, (uint64_t)from, n);
    int kind = kind_of(from, n);
    n_uploads[kind]++;
    // What is not locked is copied at once by the driver.
    if (kind == NOT_LOCKED) work->arg[1] = work->arg[3] = (uint64_t)memcpy(malloc(n + 1), from, n);
    return enqueue(stream, work);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, Stream *stream) {
    BOUND;
    int kind = kind_of(to, n);
    n_downloads[kind]++;
    enqueue(stream, copying((uint64_t)to, from, n));
    return kind == NOT_LOCKED ? cuStreamSynchronize(stream) : OK;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, Stream *stream) {
    BOUND;
    return enqueue(stream, copying(to, from, n));
}

int cuMemcpyPeerAsync(uint64_t to, void *there, uint64_t from, void *here, size_t n, Stream *stream) {
    (void)there, (void)here;
    return cuMemcpyDtoDAsync_v2(to, from, n, stream);
}

static void set(Work *work) { memset((void *)work->arg[0], (int)work->arg[1], work->arg[2]); }

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, Stream *stream) {
    BOUND;
    Work *work = begin(set);
    work->arg[0] = to;
    work->arg[1] = value;
    work->arg[2] = n;
    return enqueue(stream, work);
}

// --- kernels ---------------------------------------------------------------------------------------------------------

static float as_float(uint64_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static size_t strided(size_t at, size_t n_dims, const size_t *dims, const size_t *strides) {
    size_t place = 0;
    while (n_dims-- > 0) {
        place += at % dims[n_dims] * strides[n_dims];
        at /= dims[n_dims];
    }
    return place;
}

#define U(i) ((unsigned)a[i])
#define P(i) ((void *)a[i])

static void planes(uint64_t *a) { planes_f32(a[0], U(1), P(2), P(3), P(4)); }
static void im2col(uint64_t *a) { im2col_f32(a[0], U(1), U(2), U(3), U(4), U(5), U(6), U(7), U(8), P(9), P(10)); }
static void depthwise(uint64_t *a) {
    depthwise_f32(a[0], U(1), U(2), U(3), U(4), U(5), U(6), U(7), U(8), U(9), U(10), P(11), P(12), P(13), P(14));
}
static void max_pool(uint64_t *a) { max_pool_f32(a[0], U(1), U(2), U(3), U(4), P(5), P(6)); }
static void bias_activation(uint64_t *a) { bias_activation_f32(a[0], U(1), U(2), U(3), P(4), P(5)); }
static void join(uint64_t *a) { join_f32(a[0], U(1), U(2), P(3), P(4)); }

// Candle's: one call for the whole grid.
static void sum_of(uint64_t *a, size_t n_sums) {
    const size_t *dims = P(3);
    const float *values = P(4);
    for (size_t i = 0; i < n_sums; i++) {
        float sum = 0;
        for (size_t j = 0; j < a[1]; j++) sum += values[strided(i * a[1] + j, a[2], dims, dims + a[2])];
        ((float *)P(5))[i] = sum;
    }
}
static void fast_sum(uint64_t *a) { sum_of(a, a[0] / a[1]); }
static void fast_sum_small(uint64_t *a) { sum_of(a, a[0]); }
static void affine(uint64_t *a) {
    const size_t *dims = P(2);
    const float *in = P(3);
    for (size_t i = 0; i < a[0]; i++)
        ((float *)P(4))[i] = in[dims ? strided(i, a[1], dims, dims + a[1]) : i] * as_float(a[5]) + as_float(a[6]);
}
static void ucopy(uint64_t *a) {
    const size_t *dims = P(2);
    const float *in = P(3);
    for (size_t i = 0; i < a[0]; i++) ((float *)P(4))[i] = in[dims ? strided(i, a[1], dims, dims + a[1]) : i];
}

static const struct {
    const char *name;
    // L: 64 bits, P: a pointer, I: 32 bits, F: a float.
    const char *arguments;
    void (*run)(uint64_t *);
    int by_thread;
} kernels[] = {
    {"planes_f32", "LIPPP", planes, 1},
    {"im2col_f32", "LIIIIIIIIPP", im2col, 1},
    {"depthwise_f32", "LIIIIIIIIIIPPPP", depthwise, 1},
    {"max_pool_f32", "LIIIIPP", max_pool, 1},
    {"bias_activation_f32", "LIIIPP", bias_activation, 1},
    {"join_f32", "LIIPP", join, 1},
    {"fast_sum_f32", "LLLPPP", fast_sum, 0},
    {"fast_sum_small_f32", "LLLPPP", fast_sum_small, 0},
    {"affine_f32", "LLPPPFF", affine, 0},
    {"ucopy_f32", "LLPPP", ucopy, 0},
};
#define N_KERNELS (sizeof kernels / sizeof *kernels)

int cuModuleLoad(void **module, const char *path) { return *module = NULL, (void)path, NOT_FOUND; }
int cuModuleUnload(void *module) { return module ? OK : INVALID_HANDLE; }

int cuModuleLoadData(void **module, const void *image) {
    BOUND;
    *module = (void *)image;
    return OK;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    BOUND;
    for (size_t i = 0; i < N_KERNELS; i++)
        if (!strcmp(name, kernels[i].name)) return *function = (void *)(i + 1), OK;
    fprintf(stderr, "stand-in: there is no kernel `%s`\n", name);
    return NOT_FOUND;
}

static void launch(Work *work) {
    uint64_t *a = work->arg;
    size_t kernel = a[20];
    if (!kernels[kernel].by_thread) {
        kernels[kernel].run(a);
        return;
    }
    gridDim.x = a[21], gridDim.y = a[22], blockDim.x = a[23];
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) kernels[kernel].run(a);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, Stream *stream, void **arguments, void **extra) {
    static long n_launches;
    (void)block_y, (void)block_z, (void)shared, (void)extra;
    BOUND;
    if (!grid_x || !grid_y || !grid_z || !block_x || grid_y > 65535 || block_x > 1024) return INVALID_VALUE;
    long lose_after = setting("STANDIN_LOSE_AFTER", -1);
    if (lose_after >= 0 && __sync_add_and_fetch(&n_launches, 1) > lose_after) return is_lost = 1, OK;
    Work *work = begin(launch);
    size_t kernel = (size_t)function - 1;
    for (int i = 0; kernels[kernel].arguments[i]; i++) {
        int is_wide = strchr("LP", kernels[kernel].arguments[i]) != NULL;
        work->arg[i] = is_wide ? *(uint64_t *)arguments[i] : *(uint32_t *)arguments[i];
    }
    work->arg[20] = kernel, work->arg[21] = grid_x, work->arg[22] = grid_y, work->arg[23] = block_x;
    return enqueue(stream, work);
}

// --- the libraries beside the driver ---------------------------------------------------------------------------------

typedef struct {
    Stream *stream;
} Blas;

int cublasCreate_v2(Blas **blas) { return *blas = calloc(1, sizeof **blas), 0; }
int cublasDestroy_v2(Blas *blas) { return free(blas), 0; }
int cublasSetStream_v2(Blas *blas, Stream *stream) { return blas->stream = stream, 0; }
int cublasDgemmStridedBatched(void) { return 15; }

static void multiply(Work *work) {
    uint64_t *a = work->arg;
    int m = (int)a[2], n = (int)a[3], k = (int)a[4];
    float *sums = malloc(sizeof *sums * m);
    for (uint64_t batch = 0; batch < a[14]; batch++) {
        const float *left = (float *)P(5) + batch * a[7], *right = (float *)P(8) + batch * a[10];
        float *out = (float *)P(11) + batch * a[13];
        for (int column = 0; column < n; column++) {
            memset(sums, 0, sizeof *sums * m);
            for (int i = 0; i < k; i++) {
                float factor = a[1] ? right[(size_t)i * a[9] + column] : right[(size_t)column * a[9] + i];
                for (int row = 0; row < m; row++)
                    sums[row] += (a[0] ? left[(size_t)row * a[6] + i] : left[(size_t)i * a[6] + row]) * factor;
            }
            for (int row = 0; row < m; row++) out[(size_t)column * a[12] + row] = as_float(a[15]) * sums[row];
        }
    }
    free(sums);
}

int cublasGemmStridedBatchedEx(Blas *blas, int turn_left, int turn_right, int m, int n, int k, const float *alpha,
                               const void *left, int left_type, int left_lead, long long left_step, const void *right,
                               int right_type, int right_lead, long long right_step, const float *beta, void *out,
                               int out_type, int out_lead, long long out_step, int n_batches, int type, int algorithm) {
    (void)type, (void)algorithm;
    // Zero is f32.
    if (left_type || right_type || out_type || *beta != 0) return 15;
    Work *work = begin(multiply);
    uint64_t arguments[] = {
        turn_left, turn_right, m, n, k, (uint64_t)left, left_lead, left_step, (uint64_t)right, right_lead, right_step,
        (uint64_t)out, out_lead, out_step, n_batches,
    };
    memcpy(work->arg, arguments, sizeof arguments);
    memcpy(&work->arg[15], alpha, sizeof *alpha);
    return enqueue(blas->stream, work);
}

int curandCreateGenerator(void **generator, int type) { return *generator = &lock, (void)type, 0; }
int curandDestroyGenerator(void *generator) { return (void)generator, 0; }
int curandSetPseudoRandomGeneratorSeed(void *generator, uint64_t seed) { return (void)generator, (void)seed, 0; }
int curandSetStream(void *generator, void *stream) { return (void)generator, (void)stream, 0; }

// The runtime that candle's quantised kernels are linked against, and which is not used otherwise.
#define UNUSED(name) \
    long name(void) { return 0; }
UNUSED(__cudaGetKernel)
UNUSED(__cudaLaunchKernel_ptsz)
UNUSED(__cudaPopCallConfiguration)
UNUSED(__cudaPushCallConfiguration)
UNUSED(__cudaRegisterFatBinary)
UNUSED(__cudaRegisterFatBinaryEnd)
UNUSED(__cudaRegisterFunction)
UNUSED(__cudaRegisterVar)
UNUSED(__cudaUnregisterFatBinary)
UNUSED(cudaDeviceGetAttribute)
UNUSED(cudaFree)
UNUSED(cudaFreeAsync_ptsz)
UNUSED(cudaFuncGetAttributes)
UNUSED(cudaFuncSetAttribute)
UNUSED(cudaGetDevice)
UNUSED(cudaGetDeviceCount)
UNUSED(cudaGetErrorName)
UNUSED(cudaGetErrorString)
UNUSED(cudaGetLastError)
UNUSED(cudaMalloc)
UNUSED(cudaMallocAsync_ptsz)
UNUSED(cudaMemsetAsync_ptsz)
UNUSED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
UNUSED(cudaPeekAtLastError)
UNUSED(cudaSetDevice)
UNUSED(cudaStreamSynchronize_ptsz)

// What happened, as the last line of the process's standard error.
__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "stand-in: used %zu peak %zu uploads_from_registered %d uploads_from_own %d waiting_downloads %d\n",
            n_used, n_peak, n_uploads[REGISTERED], n_uploads[OWN], n_downloads[NOT_LOCKED]);
}

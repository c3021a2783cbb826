// Runs one of the CUDA kernels on the CPU, thread after thread.
//
//   emulate KERNEL BLOCKS_X BLOCKS_Y THREADS_X N_OUT NUMBER... < BUFFERS > OUT
//
// Numbers are the kernel's scalars in their order, buffers its inputs: each a length in bytes (64 bits) and the bytes.
// What a kernel changes in place is its first buffer.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned x, y;
} Place;
static Place threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define KERNEL static
#include "../../src/cuda/kernels.cu"

static void *buffer(size_t *n_bytes) {
    uint64_t length;
    if (fread(&length, sizeof length, 1, stdin) != 1) return NULL;
    // Exactly as large as it is told to be, so that a checker of memory sees a kernel that reaches beyond.
    void *bytes = malloc(length ? length : 1);
    if (!bytes || fread(bytes, 1, length, stdin) != length) exit(3);
    *n_bytes = length;
    return bytes;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    unsigned long long number[16] = {0};
    for (int i = 6; i < argc && i < 22; i++) number[i - 6] = strtoull(argv[i], NULL, 10);
    gridDim.x = (unsigned)strtoull(argv[2], NULL, 10);
    gridDim.y = (unsigned)strtoull(argv[3], NULL, 10);
    blockDim.x = (unsigned)strtoull(argv[4], NULL, 10);
    blockDim.y = 1;
    size_t n_out = strtoull(argv[5], NULL, 10), n_bytes[3] = {0};
    void *in[3];
    for (int i = 0; i < 3; i++) in[i] = buffer(&n_bytes[i]);
    float *out = malloc(n_out * sizeof(float) + 1);
    // A pattern of NaNs: what no thread writes shows.
    memset(out, 0xff, n_out * sizeof(float));

    const unsigned long long *n = number;
#define U(i) ((unsigned)n[i])
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) {
                if (!strcmp(argv[1], "planes"))
                    planes_f32(n[0], U(1), in[0], in[1], out);
                else if (!strcmp(argv[1], "im2col"))
                    im2col_f32(n[0], U(1), U(2), U(3), U(4), U(5), U(6), U(7), U(8), in[0], out);
                else if (!strcmp(argv[1], "depthwise"))
                    depthwise_f32(n[0], U(1), U(2), U(3), U(4), U(5), U(6), U(7), U(8), U(9), U(10), in[0], in[1],
                                  in[2], out);
                else if (!strcmp(argv[1], "max_pool"))
                    max_pool_f32(n[0], U(1), U(2), U(3), U(4), in[0], out);
                else if (!strcmp(argv[1], "bias_activation"))
                    bias_activation_f32(n[0], U(1), U(2), U(3), in[0], in[1]);
                else if (!strcmp(argv[1], "join"))
                    join_f32(n[0], U(1), U(2), in[0], in[1]);
                else
                    return 2;
            }
    int in_place = !strcmp(argv[1], "bias_activation") || !strcmp(argv[1], "join");
    if (in_place && n_bytes[0] != n_out * sizeof(float)) return 3;
    return fwrite(in_place ? in[0] : out, sizeof(float), n_out, stdout) == n_out ? 0 : 3;
}

// The layers' kernels, once for each type that weights may have. nodes/build.rs compiles this file to PTX; a test
// compiles it with a C compiler and runs it on the CPU, which is why it keeps to C.

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#ifndef KERNEL
#define KERNEL extern "C" __global__
#endif

#define IDENTITY 0u
#define RELU 1u
#define RELU6 2u
#define GELU 3u
#define GELU_TANH 4u
#define QUICK_GELU 5u

// A NaN passes all of them, so that it shows in the output: every comparison with it is false.
static __device__ float activate(float value, unsigned activation) {
    if (activation == GELU) return 0.5f * value * (1.0f + erff(value * 0.70710678118654752f));
    if (activation == GELU_TANH) return value / (1.0f + expf(-1.5957691216057308f * (value + 0.044715f * value * value * value)));
    if (activation == QUICK_GELU) return value / (1.0f + expf(-1.702f * value));
    if (activation != IDENTITY && value < 0.0f) return 0.0f;
    if (activation == RELU6 && value > 6.0f) return 6.0f;
    return value;
}

#define T float
#define NAME(kernel) kernel##_f32
#define TO_FLOAT(value) (value)
#define FROM_FLOAT(value) (value)
#include "kernels.inc"
#undef T
#undef NAME
#undef TO_FLOAT
#undef FROM_FLOAT

#ifdef __CUDACC__
#define T __half
#define NAME(kernel) kernel##_f16
#define TO_FLOAT(value) __half2float(value)
#define FROM_FLOAT(value) __float2half_rn(value)
#include "kernels.inc"
#undef T
#undef NAME
#undef TO_FLOAT
#undef FROM_FLOAT

#define T __nv_bfloat16
#define NAME(kernel) kernel##_bf16
#define TO_FLOAT(value) __bfloat162float(value)
#define FROM_FLOAT(value) __float2bfloat16_rn(value)
#include "kernels.inc"
#endif

/* cuda_runtime.h: the part of CUDA that emitted programs use, for g++. cuda_on_cpu.cpp implements
 * it. */
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __shared__      thread_local /* a block is a thread of the system */
#define __launch_bounds__(...)
#define __restrict__ __restrict

/* -- inside kernels -- */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads(void);
int __syncthreads_or(int any);
void __syncwarp(unsigned mask = 0xffffffffu);
void __threadfence(void);
void __nanosleep(unsigned ns);
long long clock64(void); /* of 1 GHz */

/* Every lane of the warp gives a value of up to 8 bytes and gets lane `from`'s. */
uint64_t cuda_on_cpu_shuffle(unsigned mask, uint64_t value, unsigned from);

template <typename T> static inline T cuda_on_cpu_exchange(unsigned mask, T value, unsigned from)
{
    uint64_t bits = 0;
    static_assert(sizeof value <= sizeof bits, "values of up to 8 bytes are exchanged");
    memcpy(&bits, &value, sizeof value);
    bits = cuda_on_cpu_shuffle(mask, bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, unsigned distance)
{
    return cuda_on_cpu_exchange(mask, value, (threadIdx.x % 32) ^ distance);
}

template <typename T> static inline T __shfl_sync(unsigned mask, T value, unsigned from)
{
    return cuda_on_cpu_exchange(mask, value, from % 32);
}

template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance)
{
    const unsigned lane = threadIdx.x % 32;
    return cuda_on_cpu_exchange(mask, value, lane + distance < 32 ? lane + distance : lane);
}

static inline unsigned atomicAdd(unsigned *p, unsigned v)
{
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}

static inline unsigned atomicAnd(unsigned *p, unsigned v)
{
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);
}

static inline unsigned atomicOr(unsigned *p, unsigned v)
{
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);
}

static inline int atomicMax(int *p, int v)
{
    int old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
    while (old < v &&
           !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

static inline int64_t __mul64hi(int64_t x, int64_t y)
{
    return (int64_t)((__int128)x * y >> 64);
}

static inline float __uint_as_float(unsigned v)
{
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}

/* -- the host's side -- */

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorLaunchFailure = 719,
} cudaError_t;

typedef enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
} cudaMemcpyKind;

typedef enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76
} cudaDeviceAttr;

typedef enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8
} cudaFuncAttribute;

typedef struct cuda_on_cpu_stream *cudaStream_t;

#define CUDART_VERSION          13000
#define cudaStreamNonBlocking   1
#define cudaHostRegisterDefault 0

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemset(void *p, int value, size_t size);
cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream);
cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **args,
                             size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 blocks, dim3 threads, void **args,
                                        size_t shared, cudaStream_t stream);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what, int value);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t e);

#endif

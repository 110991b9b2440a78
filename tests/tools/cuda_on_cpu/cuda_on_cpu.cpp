/* cuda_on_cpu.cpp: launches kernels on the processor: a thread of the system for every block, a
 * fiber in it for every thread of the block.
 *
 * A fiber runs until it waits: in a barrier of the block, or in a shuffle of its warp. Then the next
 * one runs, in order, or in an order drawn anew at every barrier. When all that are left wait, those
 * who wait for the same thing must be complete; if not, they would wait forever on a GPU, or it
 * would do something undefined: then the program ends with a message. */
#include "cuda_runtime.h"

#include <atomic>
#include <csetjmp>
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

static cudaError_t last_error = cudaSuccess;

static cudaError_t set_error(cudaError_t e)
{
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static bool fails(const char *what)
{
    return strcmp(variable("CUDA_ON_CPU_FAIL", ""), what) == 0;
}

/* -- fibers -- */

#define STACK (256u << 10)

enum waits { RUNS, IN_BARRIER, IN_SHUFFLE, ENDED };

struct fiber {
    jmp_buf at;
    unsigned id;
    waits state;
    bool begun;
    uint64_t value; /* of a shuffle */
    unsigned serial; /* shuffles so far */
};

struct block {
    std::vector<fiber> fibers;
    std::vector<unsigned> order;
    char *stacks;
    jmp_buf scheduler;
    unsigned running;
    uint64_t random;
    int any, found; /* of __syncthreads_or */
    void (*kernel)(void *);
    void *argument;
    std::vector<uint64_t> exchanged; /* by thread: what it gave to the shuffle that is over */
};

static thread_local block *current;

static void give_up(const block *b, const char *what)
{
    unsigned in_barrier = 0, in_shuffle = 0, ended = 0;
    for (const fiber &f : b->fibers) {
        in_barrier += f.state == IN_BARRIER;
        in_shuffle += f.state == IN_SHUFFLE;
        ended += f.state == ENDED;
    }
    fprintf(stderr,
            "cuda_on_cpu: block %u: %s: %u threads wait in a barrier, %u in a shuffle, %u have ended\n",
            blockIdx.x, what, in_barrier, in_shuffle, ended);
    fflush(stderr);
    _exit(70);
}

/* Back to the scheduler; returns when this fiber runs again. */
static void wait_as(waits state)
{
    block *b = current;
    fiber *f = &b->fibers[b->running];
    f->state = state;
    if (_setjmp(f->at) == 0)
        _longjmp(b->scheduler, 1);
}

static void begin_fiber(void)
{
    block *b = current;
    b->kernel(b->argument);
    b->fibers[b->running].state = ENDED;
    _longjmp(b->scheduler, 1);
}

static void run_fiber(block *b, unsigned id)
{
    fiber *f = &b->fibers[id];
    b->running = id;
    threadIdx = dim3(id, 0, 0);
    if (_setjmp(b->scheduler))
        return;
    if (f->begun)
        _longjmp(f->at, 1);
    f->begun = true;
    ucontext_t own;
    getcontext(&own);
    own.uc_stack.ss_sp = b->stacks + (size_t)id * STACK;
    own.uc_stack.ss_size = STACK;
    own.uc_link = NULL;
    makecontext(&own, begin_fiber, 0);
    setcontext(&own);
}

static uint64_t draw(block *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

static void shuffle_order(block *b)
{
    for (size_t i = b->order.size(); b->random && i > 1; i--)
        std::swap(b->order[i - 1], b->order[draw(b) % i]);
}

/* All threads of the block are in the barrier: they go on. */
static bool end_barrier(block *b)
{
    unsigned n = 0;
    for (const fiber &f : b->fibers)
        n += f.state == IN_BARRIER;
    if (n < b->fibers.size())
        return false;
    b->found = b->any;
    b->any = 0;
    for (fiber &f : b->fibers)
        f.state = RUNS;
    shuffle_order(b);
    return true;
}

/* Warps all of whose lanes are in a shuffle exchange their values. */
static bool end_shuffles(block *b)
{
    bool any = false;
    for (size_t w = 0; w < b->fibers.size(); w += 32) {
        const size_t end = w + 32 < b->fibers.size() ? w + 32 : b->fibers.size();
        bool all = true;
        for (size_t i = w; i < end; i++)
            all &= b->fibers[i].state == IN_SHUFFLE && b->fibers[i].serial == b->fibers[w].serial;
        if (!all)
            continue;
        for (size_t i = w; i < end; i++) {
            b->exchanged[i] = b->fibers[i].value;
            b->fibers[i].state = RUNS;
        }
        any = true;
    }
    return any;
}

static void run_block(block *b, unsigned threads)
{
    b->fibers.resize(threads);
    b->exchanged.resize(threads);
    b->order.resize(threads);
    for (unsigned i = 0; i < threads; i++) {
        b->fibers[i] = fiber();
        b->fibers[i].id = i;
        b->order[i] = i;
    }
    shuffle_order(b);
    b->stacks = (char *)mmap(NULL, (size_t)threads * STACK, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    current = b;
    for (;;) {
        unsigned ended = 0;
        for (unsigned id : b->order)
            if (b->fibers[id].state == RUNS)
                run_fiber(b, id);
        for (const fiber &f : b->fibers)
            ended += f.state == ENDED;
        if (ended == threads)
            break;
        if (!end_shuffles(b) && !end_barrier(b))
            give_up(b, "not all threads arrive");
    }
    munmap(b->stacks, (size_t)threads * STACK);
}

/* -- inside kernels -- */

void __syncthreads(void)
{
    wait_as(IN_BARRIER);
}

int __syncthreads_or(int any)
{
    current->any |= any != 0;
    wait_as(IN_BARRIER);
    return current->found;
}

void __syncwarp(unsigned mask)
{
    (void)cuda_on_cpu_shuffle(mask, 0, 0);
}

uint64_t cuda_on_cpu_shuffle(unsigned mask, uint64_t value, unsigned from)
{
    block *b = current;
    const unsigned id = b->running;
    if (mask != 0xffffffffu || b->fibers.size() % 32)
        give_up(b, "a shuffle of a part of a warp");
    b->fibers[id].value = value;
    b->fibers[id].serial++;
    wait_as(IN_SHUFFLE);
    return b->exchanged[id / 32 * 32 + from];
}

void __threadfence(void)
{
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void __nanosleep(unsigned)
{
    sched_yield();
}

long long clock64(void)
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* -- launches -- */

/* All kernels here have one parameter, a pointer. */
static cudaError_t launch(const void *kernel, dim3 blocks, dim3 threads, void **args)
{
    const uint64_t seed = strtoull(variable("CUDA_ON_CPU_ORDER", "0"), NULL, 10);
    static std::atomic<uint64_t> launches{0};
    std::vector<std::thread> list;
    if (fails("launch"))
        return set_error(cudaErrorLaunchFailure);
    const uint64_t number = launches++;
    for (unsigned i = 0; i < blocks.x; i++)
        list.emplace_back([=] {
            block own = block();
            blockIdx = dim3(i, 0, 0);
            blockDim = threads;
            gridDim = blocks;
            own.random = seed ? seed * 0x9e3779b97f4a7c15u + number * 1000003u + i + 1 : 0;
            own.kernel = (void (*)(void *))kernel;
            own.argument = *(void **)args[0];
            run_block(&own, threads.x);
        });
    for (std::thread &t : list)
        t.join();
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **args, size_t,
                             cudaStream_t)
{
    return launch(kernel, blocks, threads, args);
}

cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 blocks, dim3 threads, void **args,
                                        size_t, cudaStream_t)
{
    return launch(kernel, blocks, threads, args);
}

/* -- the host's side -- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = fails("driver") || fails("device") ? 0 : 1;
    return set_error(fails("driver")   ? cudaErrorInsufficientDriver
                     : fails("device") ? cudaErrorNoDevice
                                       : cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return fails("driver") ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int)
{
    const int capability = atoi(variable("CUDA_ON_CPU_CAPABILITY", "999"));
    *value = what == cudaDevAttrClockRate               ? 1000000
             : what == cudaDevAttrMultiProcessorCount      ? atoi(variable("CUDA_ON_CPU_BLOCKS", "2"))
             : what == cudaDevAttrComputeCapabilityMajor ? capability / 10
                                                         : capability % 10;
    return fails("driver") ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fails("driver") ? 12040 : 13000;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t size)
{
    *p = fails("memory") ? NULL : aligned_alloc(256, (size + 511) / 256 * 256);
    return set_error(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = *all = 1000;
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t)
{
    return cudaMemcpy(to, from, size, kind);
}

cudaError_t cudaMemset(void *p, int value, size_t size)
{
    memset(p, value, size);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t)
{
    return cudaMemset(p, value, size);
}

cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorNoKernelImageForDevice: return "no kernel image is available";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    }
    return "unknown error";
}

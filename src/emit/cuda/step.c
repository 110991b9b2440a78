/* step.c: a step as one kernel of the device: what blocks wait for each other with, what begins and
 * ends the step, and the functions that the host launches.
 *
 * Blocks synchronise by one counter of arrivals. Release and acquire are the two fences around it,
 * which a barrier of the block hands on to its other threads. */
#include "emit/cuda/cuda.h"

#include <inttypes.h>

/* -- what all programs have -- */

static const char each_text[] =
    "/* A loop that all threads of all blocks share. */\n"
    "#define OI_EACH(e, n)                                                       \\\n"
    "    for (size_t e = (size_t)blockIdx.x * OI_THREADS + threadIdx.x; e < (n); \\\n"
    "         e += (size_t)gridDim.x * OI_THREADS)\n\n";

static const char any_text[] =
    "/* The greatest error of the threads of this block, in all of them. */\n"
    "static __device__ int oi_any(int failed)\n"
    "{\n"
    "    static __shared__ int oi_worst;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        oi_worst = 0;\n"
    "    __syncthreads();\n"
    "    if (failed)\n"
    "        atomicMax(&oi_worst, failed);\n"
    "    __syncthreads();\n"
    "    return oi_worst;\n"
    "}\n\n";

static const char overflow_text[] =
    "/* The sum, difference or product in *out; true if 64 bits do not hold it. */\n"
    "static __device__ bool oi_add_overflow(int64_t x, int64_t y, int64_t *out)\n"
    "{\n"
    "    *out = (int64_t)((uint64_t)x + (uint64_t)y);\n"
    "    return (x < 0) == (y < 0) && (*out < 0) != (x < 0);\n"
    "}\n\n"
    "static __device__ bool oi_sub_overflow(int64_t x, int64_t y, int64_t *out)\n"
    "{\n"
    "    *out = (int64_t)((uint64_t)x - (uint64_t)y);\n"
    "    return (x < 0) != (y < 0) && (*out < 0) != (x < 0);\n"
    "}\n\n"
    "static __device__ bool oi_mul_overflow(int64_t x, int64_t y, int64_t *out)\n"
    "{\n"
    "    *out = (int64_t)((uint64_t)x * (uint64_t)y);\n"
    "    return __mul64hi(x, y) != *out >> 63;\n"
    "}\n\n";

static const char bits_text[] =
    "/* Changes element i of `bits` bits, whatever other threads do with those beside it. */\n"
    "static __device__ void oi_change_bits(uint8_t *p, int64_t i, unsigned bits, unsigned value)\n"
    "{\n"
    "    const uintptr_t byte = (uintptr_t)p + (uintptr_t)(i * bits / 8);\n"
    "    unsigned *const word = (unsigned *)(byte & ~(uintptr_t)3);\n"
    "    const unsigned shift = (unsigned)(byte & 3) * 8 + (unsigned)(i * bits % 8);\n"
    "    atomicAnd(word, ~(((1u << bits) - 1) << shift));\n"
    "    atomicOr(word, value << shift);\n"
    "}\n\n";

/* Helpers of this language that the text calls. */
void oi_cuda_put_helpers(oi_cprog *c, const char *text, oi_out *o)
{
    static const char *const overflows[] = {"oi_add_overflow", "oi_sub_overflow",
                                            "oi_mul_overflow"};
    const char *at = overflow_text;
    bool has_bits = false;
    if (oi_text_has_word(text, "OI_EACH"))
        oi_out_text(o, each_text);
    if (oi_text_has_word(text, "oi_any"))
        oi_out_text(o, any_text);
    for (size_t i = 0; i < OI_COUNT(overflows); i++) {
        const char *end = strstr(at, "}\n\n") + 3;
        if (oi_text_has_word(text, overflows[i]))
            oi_buf_add(&o->buf, at, (size_t)(end - at));
        at = end;
    }
    for (oi_dtype t = 0; t < OI_DTYPE_COUNT; t++) {
        const char *name = oi_arena_printf(c->arena, "oi_store_%s", oi_dtype_name(t));
        if (oi_dtype_bits(t) >= 8 || !oi_text_has_word(text, name))
            continue;
        if (!has_bits)
            oi_out_text(o, bits_text);
        has_bits = true;
        oi_out_line(o, "static __device__ void %s(uint8_t *p, int64_t i, %s value)", name,
                    oi_dialect_c.types[t]);
        oi_out_brace(o);
        oi_out_line(o, "uint8_t first = 0;");
        oi_out_line(o, "oi_put_%s(&first, 0, value);", oi_dtype_name(t));
        oi_out_line(o, "oi_change_bits(p, i, %u, first);", oi_dtype_bits(t));
        oi_out_close(o, "");
        oi_out_line(o, "%s", "");
    }
}

/* -- barriers -- */

static const char barrier_text[] =
    "#define OI_FAILED 0x80000000u /* bit of the counter: block 0 has failed, the step ends */\n\n"
    "/* Arrivals at barriers of this step. */\n"
    "static __device__ unsigned oi_arrivals(NAME_memory *s)\n"
    "{\n"
    "    return *(volatile unsigned *)&s->oi_sync.arrivals;\n"
    "}\n\n"
    "/* Thread 0: waits for so many arrivals. Returns the error of block 0. */\n"
    "static __device__ int oi_await(NAME_memory *s, unsigned arrivals)\n"
    "{\n"
    "    unsigned now = oi_arrivals(s);\n"
    "    for (; (now & ~OI_FAILED) < arrivals; now = oi_arrivals(s))\n"
    "        __nanosleep(20);\n"
    "    __threadfence();\n"
    "    return now & OI_FAILED ? *(volatile int *)&s->oi_sync.failed : 0;\n"
    "}\n\n"
    "/* Thread 0: one arrival more, after all that this block wrote. Returns how many there were. "
    "*/\n"
    "static __device__ unsigned oi_arrive(NAME_memory *s, int worker, int failed)\n"
    "{\n"
    "    const bool fails = worker == 0 && failed;\n"
    "    if (fails)\n"
    "        s->oi_sync.failed = failed;\n"
    "    __threadfence();\n"
    "    return atomicAdd(&s->oi_sync.arrivals, fails ? 1u + OI_FAILED : 1u) & ~OI_FAILED;\n"
    "}\n\n"
    "/* A barrier: no block returns before all have called it. Returns the error of block 0. */\n"
    "static __device__ int oi_barrier(NAME_memory *s, int worker, int failed, const void *next)\n"
    "{\n"
    "    __shared__ int oi_found;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        oi_found = (int)(oi_arrive(s, worker, failed) / gridDim.x);\n"
    "    (void)next;\n"
    "    if (threadIdx.x == 0)\n"
    "        oi_found = oi_await(s, ((unsigned)oi_found + 1) * gridDim.x);\n"
    "    __syncthreads();\n"
    "    return oi_found;\n"
    "}\n\n";

static const char enter_text[] =
    "/* A barrier in two steps: block 0 returns 1 once all others have arrived, and runs alone "
    "until\n"
    " * oi_release. The others return 0 after that. */\n"
    "static __device__ int oi_first_enters(NAME_memory *s, int worker, int *failed, const void "
    "*next)\n"
    "{\n"
    "    if (worker != 0) {\n"
    "        *failed = oi_barrier(s, worker, *failed, next);\n"
    "        return 0;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        (void)oi_await(s, oi_arrivals(s) / gridDim.x * gridDim.x + gridDim.x - 1);\n"
    "    __syncthreads();\n"
    "    return 1;\n"
    "}\n\n"
    "static __device__ void oi_release(NAME_memory *s, int failed)\n"
    "{\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        (void)oi_arrive(s, 0, failed);\n"
    "    __syncthreads();\n"
    "}\n\n";

static const char mark_text[] =
    "/* Timed programs: a thread of the first block looks at the clock before a kernel (-1) and "
    "after it. */\n"
    "static __device__ void oi_mark(NAME_memory *s, int kernel, int begins)\n"
    "{\n"
    "    if (threadIdx.x != 0)\n"
    "        return;\n"
    "    const uint64_t now = (uint64_t)clock64();\n"
    "    if (kernel >= 0) {\n"
    "        s->oi_marks.spent[kernel] += now - s->oi_marks.since;\n"
    "        s->oi_marks.runs[kernel] += (uint64_t)begins;\n"
    "    }\n"
    "    s->oi_marks.since = now;\n"
    "}\n\n";

static bool is_shared(const oi_cprog *c, uint32_t graph)
{
    const oi_sgraph *g = &c->p->graphs.at[graph];
    return g->blocks[g->program->entry].is_parallel;
}

static bool begins_work(uint32_t graph, const oi_tensor *t)
{
    const bool works = t->space == OI_SPACE_ARENA || t->space == OI_SPACE_OUTPUT;
    return works && t->graph == graph && t->var && t->start != OI_START_NONE;
}

bool oi_cuda_has_starts(const oi_cprog *c, uint32_t graph)
{
    bool has = c->p->graphs.at[graph].program->n_consumers > 0;
    for (size_t i = 0; i < c->p->tensors.n; i++)
        has |= begins_work(graph, &c->p->tensors.at[i]);
    return has;
}

void oi_cuda_put_sync(oi_cprog *c)
{
    bool waits = c->p->sync.barrier || c->p->sync.first_enters;
    for (uint32_t g = 0; g < c->p->graphs.n; g++)
        waits |= is_shared(c, g) && oi_cuda_has_starts(c, g);
    if (c->p->timed)
        oi_out_named(&c->out, mark_text, c->name);
    if (waits)
        oi_out_named(&c->out, barrier_text, c->name);
    if (c->p->sync.first_enters)
        oi_out_named(&c->out, enter_text, c->name);
}

/* -- rollback -- */

static const char log_text[] =
    "/* Logs n bytes that are about to change, for the rollback of a failed step. */\n"
    "static __device__ void oi_log_undo(NAME_memory *s, const void *at, size_t n)\n"
    "{\n"
    "    const size_t used = s->oi_undo_used, end = used + (n + 7) / 8 * 8;\n"
    "    const uint64_t head[2] = {\n"
    "        (uint64_t)((const unsigned char *)at - (const unsigned char *)&s->oi_state_data), "
    "n};\n"
    "    for (size_t e = threadIdx.x; e < n; e += OI_THREADS)\n"
    "        s->oi_undo_log[used + e] = ((const unsigned char *)at)[e];\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) {\n"
    "        memcpy(s->oi_undo_log + end, head, sizeof head);\n"
    "        s->oi_undo_used = end + sizeof head;\n"
    "    }\n"
    "    __syncthreads();\n"
    "}\n\n"
    "/* One block: takes back what a failed step has logged, last entry first. */\n"
    "static __global__ void oi_rollback(NAME_memory *s)\n"
    "{\n"
    "    size_t used = s->oi_undo_used;\n"
    "    while (used > 0) {\n"
    "        uint64_t head[2];\n"
    "        used -= sizeof head;\n"
    "        memcpy(head, s->oi_undo_log + used, sizeof head);\n"
    "        used -= (head[1] + 7) / 8 * 8;\n"
    "        for (size_t e = threadIdx.x; e < head[1]; e += OI_THREADS)\n"
    "            ((unsigned char *)&s->oi_state_data)[head[0] + e] = s->oi_undo_log[used + e];\n"
    "        __syncthreads();\n"
    "    }\n"
    "}\n\n";

void oi_cuda_put_undo(oi_cprog *c)
{
    if (c->p->undo.kind == OI_UNDO_LOG)
        oi_out_named(&c->out, log_text, c->name);
}

/* -- what the host launches -- */

static void put_starts(oi_cprog *c)
{
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        if (!begins_work(c->graph, t))
            continue;
        if (!t->run_dims)
            oi_c_put_start(c, &c->out, (uint32_t)i);
        for (uint32_t d = 0; d < t->rank; d++)
            if (t->run_dims >> d & 1)
                oi_out_line(&c->out, "%s = 0;", oi_c_length(c, (uint32_t)i, d));
    }
    if (c->p->graphs.at[c->graph].program->n_consumers)
        oi_c_async_reset(c);
}

static void put_entry(oi_cprog *c)
{
    oi_out *o = &c->out;
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    const bool is_all = is_shared(c, c->graph), logs = c->p->undo.kind == OI_UNDO_LOG;
    oi_out_line(o, "/* A step, run by %s. */", is_all ? "all blocks together" : "one block");
    oi_out_line(o, "static __global__ void __launch_bounds__(OI_THREADS, 1) oi_step%u(%s *s)",
                c->graph, c->self);
    oi_out_brace(o);
    if (is_all)
        oi_out_line(o, "const int worker = (int)blockIdx.x, workers = (int)gridDim.x;");
    put_starts(c);
    if (g->needs_undo && logs)
        oi_out_line(o, is_all ? "if (worker == 0)\n        s->oi_undo_used = 0;"
                              : "s->oi_undo_used = 0;");
    if (oi_cuda_has_starts(c, c->graph) && is_all)
        oi_out_line(o, "oi_barrier(s, worker, 0, NULL);");
    else if (oi_cuda_has_starts(c, c->graph) || (g->needs_undo && logs))
        oi_out_line(o, "__syncthreads();");
    oi_out_line(o, "const int failed = %s(s%s);", oi_c_block_name(c, g->program->entry),
                is_all ? ", worker, workers" : "");
    oi_out_line(o, is_all ? "if (worker == 0 && threadIdx.x == 0)" : "if (threadIdx.x == 0)");
    oi_out_line(o, "    s->oi_sync.result = failed;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

void oi_cuda_put_entries(oi_cprog *c)
{
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++)
        put_entry(c);
    c->graph = 0;
    oi_out_line(&c->out, "/* The persistent state gets its first values. */");
    oi_out_line(&c->out, "static __global__ void oi_reset(%s *s)", c->self);
    oi_out_brace(&c->out);
    oi_c_put_reset(c, &c->out);
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
}

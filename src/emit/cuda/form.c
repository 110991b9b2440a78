/* form.c: CUDA's form of steps: a worker is a block, whose threads run every statement together.
 * All of them read what decides; the first one alone writes what others read. */
#include "emit/cuda/cuda.h"

#include <inttypes.h>

static void begin_write(oi_cprog *c)
{
    oi_out_line(&c->out, "__syncthreads();");
    oi_out_open(&c->out, "if (threadIdx.x == 0)");
}

static void end_write(oi_cprog *c)
{
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "__syncthreads();");
}

static void wait(oi_cprog *c)
{
    oi_out_line(&c->out, "__syncthreads();");
}

/* -- copies that every block has -- */

static uint64_t copy_bytes(const oi_plan *p, const oi_tensor *t)
{
    return oi_plan_aligned(p, t->size_bytes);
}

/* Where the copy of a tensor begins, if all lie behind each other. */
static uint64_t copy_offset(const oi_plan *p, const oi_tensor *own)
{
    uint64_t n = 0;
    for (const oi_tensor *t = p->tensors.at; t < own; t++)
        n += t->is_private ? copy_bytes(p, t) : 0;
    return n;
}

static bool is_in_shared(const oi_plan *p, const oi_tensor *t)
{
    return copy_offset(p, t) + copy_bytes(p, t) <= OI_CUDA_COPY_BYTES;
}

uint64_t oi_cuda_copy_bytes(const oi_plan *p)
{
    const uint64_t all = copy_offset(p, p->tensors.at + p->tensors.n);
    return all > OI_CUDA_COPY_BYTES ? all : 0;
}

static const char *private_copy(oi_cprog *c, const oi_tensor *t, const char *name)
{
    const char *type = oi_c_type(t->dtype);
    if (is_in_shared(c->p, t))
        return oi_arena_printf(c->arena,
                               "    OI_ALIGNED(16) __shared__ %s %s[%" PRIu64
                               "]; /* each block has one */\n",
                               type, name, t->size_bytes / (oi_dtype_bits(t->dtype) / 8));
    return oi_arena_printf(c->arena,
                           "    %s *const %s = (%s *)(s->oi_copies + (size_t)worker * %" PRIu64
                           " + %" PRIu64 "); /* each block has one */\n",
                           type, name, type, oi_cuda_copy_bytes(c->p), copy_offset(c->p, t));
}

/* Kernels that programs report times of. */
uint64_t oi_cuda_kernels(const oi_plan *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->kernels.n; i++)
        n += p->kernels.at[i].is_used;
    return n ? n : 1;
}

static void put_members(oi_cprog *c, oi_out *o)
{
    if (oi_cuda_copy_bytes(c->p)) {
        oi_out_line(o, "unsigned char *oi_copies; /* of small tensors: each block has its own */");
        oi_c_count(c, 8, 8);
    }
    if (c->p->timed) {
        oi_out_open(o, "struct");
        oi_out_line(
            o, "uint64_t spent[%" PRIu64 "], runs[%" PRIu64 "], since; /* by kernel: cycles */",
            oi_cuda_kernels(c->p), oi_cuda_kernels(c->p));
        oi_out_close(o, " oi_marks;");
        oi_c_count(c, 8, 16 * oi_cuda_kernels(c->p) + 8);
    }
    oi_out_line(o, "/* barriers of the blocks; 0 when a step begins */");
    oi_out_open(o, "struct");
    oi_out_line(o, "unsigned arrivals; /* at barriers; the highest bit: block 0 has failed */");
    oi_out_line(o, "int failed; /* the error of block 0 */");
    oi_out_line(o, "int result; /* of the step */");
    oi_out_close(o, " oi_sync;");
    oi_c_count(c, 4, 12);
}

#define COMMON                                                                                \
    .function = "static __device__", .shared = "static __device__ __noinline__", .apart = "", \
    .overflow = "oi_", .is_remote = true, .lang = &oi_lang_cuda, .lang32 = &oi_lang_cuda32,   \
    .prefers_32 = true, .put_members = put_members, .copy_out = "oi_copy_out(s, at + 40);",   \
    .copy_in = "if (!oi_copy_in(s, at + 40))\n        return oi_failed();"

const oi_cform oi_cform_cuda = {
    COMMON,       .each = "OI_EACH(e, ",        .begin_write = begin_write,  .end_write = end_write,
    .wait = wait, .put_body = oi_cuda_put_body, .private_copy = private_copy};

const oi_cform oi_cform_cuda_host = {COMMON};

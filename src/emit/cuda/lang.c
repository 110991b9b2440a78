/* lang.c: CUDA C++ for elements, numbers and failures: as in C, but for packed elements. Threads
 * that write neighbours change one byte: each changes its own bits of the word around it. */
#include "emit/cuda/cuda.h"

static void store(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out)
{
    if (oi_dtype_bits(op->type) < 8)
        oi_buf_printf(out, "oi_store_%s(%s, %s, %s)", oi_dtype_name(op->type), p->ports[op->port],
                      at, value);
    else
        oi_lang_c.store(p, op, at, value, out);
}

static void load(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out)
{
    oi_lang_c.load(p, op, at, out);
}

static void load_part(const oi_nest_printer *p, const oi_sop *op, const char *at, unsigned part,
                      oi_buf *out)
{
    oi_lang_c.load_part(p, op, at, part, out);
}

static void fail(oi_out *o, int code, const char *why)
{
    oi_lang_c.fail(o, code, why);
}

static const oi_lane_words words = {.number = "unsigned",
                                    .barrier = "__syncthreads();",
                                    .shuffle = "__shfl_xor_sync(0xffffffffu, ",
                                    .subgroup = "32u",
                                    .subgroup_size = 32,
                                    .unroll_one = "#pragma unroll 16",
                                    .unroll_some = "#pragma unroll 8"};

#define SPELLING                                                                   \
    .dialect = &oi_dialect_c, .helpers = oi_helpers, .exact = "", .load = load,    \
    .load_part = load_part, .store = store, .fail = fail, .literal = oi_c_literal, \
    .lane_words = &words

const oi_lang oi_lang_cuda = {SPELLING, .index = "int64_t", .whole_index = "uint64_t"};
const oi_lang oi_lang_cuda32 = {SPELLING, .index = "int32_t", .whole_index = "uint32_t"};

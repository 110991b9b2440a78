/* trial.h: for the tests of bodies: a call as the simulator does it by its definition and as
 * its recipe does it, compared within the tolerances of the catalog. Every way of sharing out the
 * work must give the same bits. A test is built for every folder of bodies, OI_FOLDER. */
#ifndef OI_TRIAL_H
#define OI_TRIAL_H

#include "recipe/recipe.h"

#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef union trial_arg {
    const void *in;
    void *out;
    int64_t n;
    float real;
} trial_arg;

/* Calls the body of that name; defined by the test. */
typedef void trial_body(const char *function, const trial_arg *a);

typedef struct trial {
    oi_kernel_query q;
    oi_operand in[10], out;
    oi_operand outs[2]; /* q.n_out of them, all alike */
    oi_op_value attrs[OI_KERNEL_ATTRS];
    void *data[10];
    bool is_weight[10];
    uint64_t seed;
    int64_t reduced; /* length of the sums */
    bool is_small;   /* the target is a microcontroller */
    double atol;     /* more than the catalog's, where a case needs it; 0: that */
    bool is_exact;   /* bit for bit as the definition; a NaN is a NaN */
    bool finishes;   /* bodies of floats apply trial_finish */
} trial;

#ifndef OI_FOLDER
#define OI_FOLDER "" /* none: no test */
#endif

/* The folder that the test is built for, and what it runs: main is in trial.c, which is compiled
 * for any machine and looks first whether this one has the instructions. */
const char *const trial_folder_name = OI_FOLDER;
#if defined(OI_EMULATE_H)
const bool trial_is_emulated = true;
#else
const bool trial_is_emulated = false;
#endif
int trial_all(void);
const oi_recipe_folder *trial_folder(void);

static inline int64_t trial_count(const oi_operand *o)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        n *= o->dims[i];
    return n;
}

static inline size_t trial_bytes(const oi_operand *o)
{
    return ((size_t)trial_count(o) * oi_dtype_bits(o->dtype) + 7) / 8;
}

static inline void *trial_room(size_t n)
{
    void *p = aligned_alloc(64, (n + 64) / 64 * 64);
    assert_non_null(p);
    return p;
}

static inline oi_operand trial_operand(oi_dtype t, uint32_t rank, const int64_t *dims)
{
    oi_operand o = {.dtype = t, .rank = rank};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0; stride *= dims[i]) {
        o.dims[i] = dims[i];
        o.strides[i] = stride;
    }
    return o;
}

static inline double trial_random(trial *t)
{
    return (double)(oi_splitmix64(&t->seed) >> 11) * 0x1p-52 - 1;
}

static inline void trial_begin(trial *t, const char *op, uint64_t seed)
{
    *t = (trial){.seed = seed, .reduced = 1};
    t->q = (oi_kernel_query){.op = oi_op_find(op), .n_out = 1};
    for (uint32_t i = 0; i < t->q.op->n_attrs; i++)
        t->attrs[i] = t->q.op->attrs[i].def;
}

static inline oi_op_value *trial_attr(trial *t, const char *name)
{
    return &t->attrs[oi_op_attr_find(t->q.op, name) - t->q.op->attrs];
}

/* The next input, filled: floats within +-scale, integers over their whole range. */
static inline void trial_input(trial *t, bool is_weight, oi_dtype type, double scale, uint32_t rank,
                               const int64_t *dims)
{
    size_t at = t->q.n_in++;
    oi_operand o = trial_operand(type, rank, dims);
    t->in[at] = o;
    t->is_weight[at] = is_weight;
    t->data[at] = trial_room(trial_bytes(&o));
    memset(t->data[at], 0, trial_bytes(&o));
    for (int64_t i = 0; i < trial_count(&o); i++)
        if (oi_dtype_is_float(type))
            oi_element_set_f64(type, t->data[at], (uint64_t)i, scale * trial_random(t));
        else
            oi_element_set_i64(
                type, t->data[at], (uint64_t)i,
                oi_dtype_get(type)->min +
                    (int64_t)(oi_splitmix64(&t->seed) % ((uint64_t)oi_dtype_get(type)->max -
                                                         (uint64_t)oi_dtype_get(type)->min + 1)));
}

static inline void trial_reference(trial *t, void *out)
{
    uint64_t dims[11][OI_KERNEL_RANK];
    oi_view in[10];
    oi_op_arg attrs[OI_KERNEL_ATTRS];
    size_t n_attrs = 0;
    for (size_t i = 0; i <= t->q.n_in; i++)
        for (uint32_t d = 0; d < OI_KERNEL_RANK; d++)
            dims[i][d] = (uint64_t)(i < t->q.n_in ? t->in[i] : t->out).dims[d];
    for (size_t i = 0; i < t->q.n_in; i++)
        in[i] = (oi_view){
            .dtype = t->in[i].dtype, .rank = t->in[i].rank, .dims = dims[i], .data = t->data[i]};
    for (uint32_t i = 0; i < t->q.op->n_attrs; i++)
        if (t->attrs[i].tag != OI_VALUE_NONE)
            attrs[n_attrs++] = (oi_op_arg){t->q.op->attrs[i].name, t->attrs[i]};
    oi_op_out to[2];
    for (size_t i = 0; i < t->q.n_out; i++)
        to[i] = (oi_op_out){t->out.dtype, t->out.rank, dims[t->q.n_in],
                            (char *)out + i * trial_bytes(&t->out)};
    const oi_op_run_options options = {.device = "cpu:scalar"};
    oi_diag *d = oi_diag_new();
    if (oi_op_run(t->q.op->name, in, t->q.n_in, attrs, n_attrs, to, t->q.n_out, &options, d) !=
        OI_OK) {
        oi_diag_print(d, stderr, false);
        fail_msg("%s cannot be run", t->q.op->name);
    }
    oi_diag_free(d);
}

/* Arrays that the body wants made of an input first: row by row, the last one first. */
static inline void trial_ready(const trial *t, const oi_prologue *r, void **arrays,
                               trial_body *body)
{
    for (uint32_t i = 0; i < r->n_arrays; i++) {
        size_t n = (size_t)(r->rows * r->arrays[i].width) * oi_dtype_bits(r->arrays[i].dtype) / 8;
        arrays[i] = trial_room(n);
        memset(arrays[i], 0x55, n);
    }
    for (int64_t row = r->rows; r->function && row-- > 0;) {
        trial_arg a[OI_RECIPE_ARGS];
        uint32_t n = 0;
        a[n++].in = t->data[r->in];
        for (uint32_t i = 0; i < r->n_arrays; i++)
            a[n++].out = arrays[i];
        for (uint32_t i = 0; i < r->n_sizes; i++)
            a[n++].n = r->sizes[i];
        a[n++].n = row;
        a[n++].n = row + 1;
        body(r->function, a);
    }
}

/* An epilogue for results of floats. Ports: the result, its operand and the plan. */
static inline float trial_finished(float sum, int64_t at)
{
    return 2 * sum + (float)(at % 7);
}

static inline void trial_finish(void *const *ports, int64_t i, int64_t j, int64_t k, int64_t p,
                                float sum)
{
    float *out = ports[0];
    const oi_operand *o = ports[2];
    const oi_recipe_plan *plan = ports[3];
    int64_t each[2] = {1, 1};
    for (uint32_t d = plan->epilogue[0]; d < o->rank; d++)
        each[0] *= o->dims[d];
    for (uint32_t d = plan->epilogue[1]; d < o->rank; d++)
        each[1] *= o->dims[d];
    const int64_t at = i * each[0] + j * each[1] + k + p;
    out[at] = trial_finished(sum, at);
}

/* The last arguments of such a body: argument `i` of the plan is the epilogue. */
#define TRIAL_FINISH(i) a[i].in ? trial_finish : NULL, (void *const *)a[i].in

/* One part of the work, with scratch of its own. */
static inline void trial_part(const trial *t, const oi_recipe_plan *p, void *const *packed,
                              void *out, int64_t first, int64_t last, trial_body *body)
{
    trial_arg a[OI_RECIPE_ARGS];
    void *scratch[OI_RECIPE_SCRATCH], *ready[OI_PROLOGUE_ARRAYS];
    trial_ready(t, &p->prologue, ready, body);
    for (uint32_t i = 0; i < p->n_scratch; i++) {
        size_t n = (size_t)p->scratch[i].count * oi_dtype_bits(p->scratch[i].dtype) / 8;
        scratch[i] = trial_room(n);
        memset(scratch[i], 0x55, n);
    }
    void *ports[] = {out, t->q.n_in > 2 ? t->data[2] : NULL, (void *)&t->out, (void *)p};
    for (uint32_t i = 0; i < p->n_args; i++) {
        const oi_recipe_arg *arg = &p->args[i];
        switch (arg->kind) {
        case OI_ARG_IN: a[i].in = t->data[arg->n]; break;
        case OI_ARG_OUT: a[i].out = (char *)out + (size_t)arg->n * trial_bytes(&t->out); break;
        case OI_ARG_PACKED: a[i].in = packed[arg->n]; break;
        case OI_ARG_PROLOGUE: a[i].in = ready[arg->n]; break;
        case OI_ARG_SCRATCH: a[i].out = scratch[arg->n]; break;
        case OI_ARG_SIZE: a[i].n = arg->n; break;
        case OI_ARG_REAL: a[i].real = (float)arg->real; break;
        case OI_ARG_ATTR: a[i].n = t->attrs[arg->n].i; break;
        case OI_ARG_EPILOGUE: /* the test has the function */
            a[i].in = p->sums_in_result && !t->finishes ? NULL : ports;
            break;
        case OI_ARG_NEXT: a[i].in = NULL; break;
        case OI_ARG_FIRST: a[i].n = first; break;
        case OI_ARG_LAST: a[i].n = last; break;
        case OI_ARG_ROW: a[i].n = arg->n; break;
        case OI_ARG_ROW_END: a[i].n = arg->n; break;
        }
    }
    body(p->function, a);
    for (uint32_t i = 0; i < p->n_scratch; i++)
        free(scratch[i]);
    for (uint32_t i = 0; i < p->prologue.n_arrays; i++)
        free(ready[i]);
}

/* The work in parts of `units` units each, the last one first. */
static inline void trial_parts(const trial *t, const oi_recipe_plan *p, void *const *packed,
                               int64_t units, void *out, trial_body *body)
{
    int64_t step = units * (p->unit ? p->unit : 1);
    memset(out, 0x77, t->q.n_out * trial_bytes(&t->out));
    if (p->extent == 0)
        trial_part(t, p, packed, out, 0, 0, body);
    for (int64_t at = (p->extent - 1) / (step ? step : 1) * step; p->extent && at >= 0; at -= step)
        trial_part(t, p, packed, out, at, at + step < p->extent ? at + step : p->extent, body);
}

static inline void trial_compare(const trial *t, const void *got, const void *want)
{
    const oi_dtype type = t->out.dtype;
    double rtol = 1e-5 * sqrt((double)t->reduced), atol = 1e-5;
    if (type == OI_F16)
        atol = rtol = 1e-3;
    if (type == OI_BF16)
        atol = rtol = 8e-3;
    atol = t->atol > atol ? t->atol : atol;
    if (!oi_dtype_is_float(type))
        atol = rtol = 0;
    for (int64_t i = 0; i < trial_count(&t->out) * (int64_t)t->q.n_out; i++) {
        double a = oi_element_f64(type, got, (uint64_t)i);
        double b = oi_element_f64(type, want, (uint64_t)i);
        if (t->is_exact && !(isnan(a) && isnan(b)) && memcmp(&a, &b, sizeof a) != 0)
            fail_msg("element %lld: %a, expected %a", (long long)i, a, b);
        if (!(fabs(a - b) <= atol + rtol * fabs(b)) && !(isnan(a) && isnan(b)) && a != b)
            fail_msg("element %lld: %g, expected %g", (long long)i, a, b);
    }
}

/* Every result of a body of floats goes through its epilogue once. */
static inline void trial_epilogue(trial *t, const oi_recipe_plan *p, void *const *packed,
                                  const void *whole, void *parts, trial_body *body)
{
    float *want = trial_room(trial_bytes(&t->out));
    for (int64_t i = 0; i < trial_count(&t->out); i++)
        want[i] = trial_finished(((const float *)whole)[i], i);
    t->finishes = true;
    for (int64_t units = 1; units <= 4; units++) {
        trial_parts(t, p, packed, units < 4 ? units : INT32_MAX, parts, body);
        assert_memory_equal(parts, want, trial_bytes(&t->out));
    }
    t->finishes = false;
    free(want);
}

/* Whether narrower vectors would do: those of a folder that this one builds on. */
static inline bool trial_is_too_wide(const oi_recipe_call *c)
{
    for (const oi_recipe_folder *f = oi_recipe_folders; f->name; f++) {
        const oi_device_info target = {.cpu = {.isa = f->isa}};
        const oi_recipe_call narrower = {.q = c->q, .is_weight = c->is_weight, .target = &target};
        oi_recipe_plan p;
        if (f->lanes < trial_folder()->lanes && !(f->isa & ~trial_folder()->isa) &&
            oi_recipe_find(&narrower, &p))
            return true;
    }
    return false;
}

/* Parts of a packing are those of the whole. */
static inline void trial_pack_parts(const oi_packing *p, const void *const *in, const void *whole)
{
    if (!p->pack_some || p->step_bytes == 0)
        return;
    for (uint64_t from = 0, to; from < p->size_bytes; from = to) {
        to = from + 2 * p->step_bytes < p->size_bytes ? from + 2 * p->step_bytes : p->size_bytes;
        void *some = trial_room((size_t)(to - from));
        memset(some, 0x44, (size_t)(to - from));
        p->pack_some(p, in, from, to, some);
        assert_memory_equal(some, (const char *)whole + from, (size_t)(to - from));
        free(some);
    }
}

/* Whether a recipe takes the call, or would if it had room for a vector; the plan is judged and
 * everything freed. */
static inline bool trial_end(trial *t, oi_dtype type, uint32_t rank, const int64_t *dims,
                             trial_body *body)
{
    const oi_device_info target = {.type = t->is_small ? OI_DEVICE_MCU : OI_DEVICE_CPU,
                                   .cpu = {.isa = trial_folder()->isa},
                                   .mcu = {.stack_bytes = 4096}};
    const oi_recipe_call c = {
        .q = &t->q, .is_weight = t->is_weight, .target = &target, .may_regroup = !t->is_exact};
    oi_recipe_plan p;
    void *packed[OI_RECIPE_PACKS] = {0};
    t->out = trial_operand(type, rank, dims);
    t->q.in = t->in;
    t->outs[0] = t->outs[1] = t->out;
    t->q.out = t->outs;
    t->q.attrs = t->attrs;
    const oi_recipe *found = oi_recipe_find(&c, &p);
    const bool takes = found || trial_is_too_wide(&c);
    size_t n = t->q.n_out * trial_bytes(&t->out);
    void *want = trial_room(n), *whole = trial_room(n), *parts = trial_room(n);
    if (found) {
        for (uint32_t i = 0; i < p.n_packings; i++) {
            const void *from[OI_PACK_INPUTS];
            for (uint32_t j = 0; j < p.packings[i].n_in; j++)
                from[j] = t->data[p.packings[i].in[j]];
            packed[i] = trial_room((size_t)p.packings[i].size_bytes);
            memset(packed[i], 0x33, (size_t)p.packings[i].size_bytes);
            p.packings[i].pack(&p.packings[i], from, packed[i]);
            trial_pack_parts(&p.packings[i], from, packed[i]);
        }
        trial_reference(t, want);
        trial_parts(t, &p, packed, INT32_MAX, whole, body);
        trial_compare(t, whole, want);
        for (int64_t units = 1; p.extent && units <= 3; units++) {
            trial_parts(t, &p, packed, units, parts, body);
            assert_memory_equal(parts, whole, n);
        }
        if (p.sums_in_result && p.epilogue[1])
            trial_epilogue(t, &p, packed, whole, parts, body);
    }
    for (uint32_t i = 0; i < OI_RECIPE_PACKS; i++)
        free(packed[i]);
    for (size_t i = 0; i < t->q.n_in; i++)
        free(t->data[i]);
    free(want);
    free(whole);
    free(parts);
    return takes;
}

#endif

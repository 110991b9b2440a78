/* run.c: runs tuned bodies in the simulator. A call is planned as for a program with this machine's
 * instruction sets, and the numbers of the plan are passed to the body at run time. Nothing is
 * packed in advance: recipes that need packed weights are for programs only. */
#include "recipe/recipe.h"
#include "recipe/run.h"

#define MAX_PARTS 16    /* each with scratch of its own */
#define WORTH     16384 /* elements: below, waking other threads takes longer than the work */
#define ALIGN     64

typedef struct tuned {
    oi_recipe_plan plan;
    oi_recipe_call_fn *body;
    size_t part_bytes; /* scratch of a part */
    bool is_shared;    /* worth more than one thread */
} tuned;

/* -- choosing -- */

static const oi_device_info machines[OI_CPU_COUNT] = {
    [OI_CPU_AVX2] = {.cpu = {.isa = 1u << OI_ISA_AVX2 | 1u << OI_ISA_FMA | 1u << OI_ISA_F16C}},
    [OI_CPU_AVX512] = {.cpu = {.isa = 1u << OI_ISA_AVX2 | 1u << OI_ISA_FMA | 1u << OI_ISA_F16C |
                                      1u << OI_ISA_AVX512F | 1u << OI_ISA_AVX512BW}},
};

#if defined(__x86_64__)
extern const oi_recipe_body oi_k_bodies_avx2[], oi_k_bodies_avx512[]; /* isa/bodies.c */
static const oi_recipe_body *const bodies[OI_CPU_COUNT] = {
    [OI_CPU_AVX2] = oi_k_bodies_avx2, [OI_CPU_AVX512] = oi_k_bodies_avx512};
#else
static const oi_recipe_body *const bodies[OI_CPU_COUNT] = {NULL};
#endif

static oi_recipe_call_fn *body_of(const char *name, oi_cpu cpu)
{
    for (const oi_recipe_body *b = bodies[cpu]; b && b->name; b++)
        if (strcmp(b->name, name) == 0)
            return b->call;
    return NULL;
}

static size_t bytes_of(const oi_recipe_plan *p, uint32_t scratch)
{
    const size_t bits =
        (size_t)p->scratch[scratch].count * oi_dtype_bits(p->scratch[scratch].dtype);
    return (bits / 8 + ALIGN - 1) / ALIGN * ALIGN;
}

static bool recipe_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault);

bool oi_recipe_choose(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_choice *c)
{
    static const bool is_weight[OI_KERNEL_PORTS] = {false};
    const oi_recipe_call call = {.q = q, .is_weight = is_weight, .target = &machines[cpu]};
    int64_t elements = 0;
    oi_recipe_plan plan;
    oi_recipe_call_fn *body = NULL;
    if (!machines[cpu].cpu.isa || q->n_in > OI_KERNEL_PORTS)
        return false;
    for (size_t i = 0; i < q->n_in + q->n_out; i++) {
        const oi_operand *o = i < q->n_in ? &q->in[i] : &q->out[i - q->n_in];
        if (!oi_operand_is_dense(o) || oi_dtype_bits(o->dtype) < 8)
            return false;
        elements += oi_operand_count(o);
    }
    const oi_recipe *recipe = oi_recipe_find(&call, &plan);
    if (!recipe || plan.n_packings || plan.prologue.function ||
        !(body = body_of(plan.function, cpu)))
        return false;
    tuned *t = oi_arena_alloc(a, sizeof *t);
    *t = (tuned){.plan = plan, .body = body, .is_shared = elements >= WORTH && plan.extent > 0};
    for (uint32_t i = 0; i < plan.n_scratch; i++)
        t->part_bytes += bytes_of(&plan, i);
    *c = (oi_choice){.run = recipe_run, .cpu = cpu, .tuned = t};
    c->scratch_bytes = t->part_bytes * (t->is_shared ? MAX_PARTS : 1);
    return oi_choice_finish(q, plan.function, c);
}

/* -- running -- */

typedef struct job {
    const tuned *t;
    const oi_kernel_query *q;
    const oi_kernel_io *io;
    size_t n_parts;
} job;

static const void *input(const job *j, int64_t i)
{
    const int64_t size = (int64_t)oi_dtype_bits(j->q->in[i].dtype) / 8;
    return (const char *)j->io->in[i] + (j->io->in_at ? j->io->in_at[i] * size : 0);
}

static void *output(const job *j, int64_t i)
{
    const int64_t size = (int64_t)oi_dtype_bits(j->q->out[i].dtype) / 8;
    return (char *)j->io->out[i] + (j->io->out_at ? j->io->out_at[i] * size : 0);
}

static void run_part(void *ctx, size_t part)
{
    const job *j = ctx;
    const oi_recipe_plan *p = &j->t->plan;
    const int64_t unit = p->unit ? p->unit : 1, units = (p->extent + unit - 1) / unit;
    const int64_t from = units * (int64_t)part / (int64_t)j->n_parts * unit;
    const int64_t to = units * ((int64_t)part + 1) / (int64_t)j->n_parts * unit;
    oi_recipe_value a[OI_RECIPE_ARGS];
    char *scratch[OI_RECIPE_SCRATCH], *at = (char *)j->io->scratch + part * j->t->part_bytes;
    for (uint32_t i = 0; i < p->n_scratch; at += bytes_of(p, i++))
        scratch[i] = at;
    for (uint32_t i = 0; i < p->n_args; i++) {
        const oi_recipe_arg *arg = &p->args[i];
        switch (arg->kind) {
        case OI_ARG_IN: a[i].in = input(j, arg->n); break;
        case OI_ARG_OUT: a[i].out = output(j, arg->n); break;
        case OI_ARG_SCRATCH: a[i].out = scratch[arg->n]; break;
        case OI_ARG_SIZE: a[i].n = arg->n; break;
        case OI_ARG_REAL: a[i].real = (float)arg->real; break;
        case OI_ARG_ATTR: a[i].n = j->q->attrs[arg->n].i; break;
        case OI_ARG_FIRST: a[i].n = from; break;
        case OI_ARG_LAST: a[i].n = to < p->extent ? to : p->extent; break;
        case OI_ARG_ROW: a[i].n = 0; break;
        case OI_ARG_ROW_END: a[i].n = arg->n; break;
        default: a[i].in = NULL; break; /* a call with such is not chosen */
        }
    }
    j->t->body(a);
}

/* A part for every thread: parts lay out the same rows again. */
static bool recipe_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault)
{
    (void)fault;
    const tuned *t = c->tuned;
    const int64_t unit = t->plan.unit ? t->plan.unit : 1;
    const size_t units = (size_t)((t->plan.extent + unit - 1) / unit);
    job j = {t, q, io, io->parallel && t->is_shared ? io->n_threads : 1};
    j.n_parts = j.n_parts < MAX_PARTS ? j.n_parts : MAX_PARTS;
    j.n_parts = j.n_parts < units ? j.n_parts : units;
    j.n_parts = j.n_parts > 0 ? j.n_parts : 1;
    oi_parallel(io, j.n_parts, run_part, &j);
    return true;
}

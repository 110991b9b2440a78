/* fold.c: constant folding with the simulator's own kernels.
 * needs:  kernels as lowered, with their calls; a tensor per value (ssa.c)
 * keeps:  results, bit for bit if the target computes like the simulator
 * makes:  weights that hold the values; fewer kernels
 *
 * Folds tables of angles, bias sums, masks. Weights are not expanded: a result larger than both 64
 * KiB and its operands together remains a computation. A conversion to a wider type has a lower
 * limit: its readers convert what they load, and read fewer bytes. */
#include "oinf/oinf.h"
#include "synth/pass.h"

#define SMALL      (64u << 10)
#define SMALL_CAST 1024u

typedef struct folding {
    oi_unit *u;
    uint32_t graph;
    const oi_tally *uses; /* by tensor */
} folding;

const void *oi_tensor_contents(oi_unit *u, const oi_tensor *t)
{
    oi_view view;
    if (t->space != OI_SPACE_WEIGHTS || t->n_table)
        return NULL;
    if (t->bytes)
        return t->bytes;
    if (t->sources && t->sources[0] != OI_NO_SOURCE) {
        const char *name = t->model->tensors[t->sources[0]].name;
        return oi_model_tensor(t->model, name, &view, NULL) == OI_OK ? view.data : NULL;
    }
    uint8_t *all = oi_arena_alloc(u->arena, t->size_bytes + 8);
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= (uint64_t)t->dims[d];
    for (uint64_t e = 0; e < n; e++)
        for (unsigned bits = oi_dtype_bits(t->dtype), b = 0; b < bits; b++)
            all[(e * bits + b) / 8] |= (uint8_t)((t->init >> b & 1) << (e * bits + b) % 8);
    return all;
}

static bool is_foldable(folding *f, const oi_skernel *k)
{
    uint64_t in = 0, out = 0;
    if (!k->query || k->scalars.n || k->can_fail || k->is_dynamic)
        return false;
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &f->u->tensors.at[k->ports.at[i].tensor];
        if (!k->ports.at[i].is_written) {
            if (t->space != OI_SPACE_WEIGHTS || t->n_table)
                return false;
            in += t->size_bytes;
            continue;
        }
        bool own = t->space == OI_SPACE_ARENA && !t->n_table &&
                   f->uses[k->ports.at[i].tensor].writes == 1 &&
                   !oi_kernel_reads(k, k->ports.at[i].tensor);
        if (!own)
            return false;
        out += t->size_bytes;
    }
    return out <= (k->query->op->id == OI_OP_CAST ? SMALL_CAST : SMALL) || out <= in;
}

/* Runs the call; the outputs' bytes replace what the tensors were. */
static bool run(folding *f, const oi_skernel *k)
{
    const oi_kernel_query *q = k->query;
    oi_choice *c = oi_arena_alloc(f->u->arena, sizeof *c);
    oi_kernel_fault fault = {0};
    if (!oi_kernel_choose(q, OI_CPU_SCALAR, c))
        return false;
    const void **in = oi_arena_alloc(f->u->arena, (q->n_in + 1) * sizeof *in);
    void **out = oi_arena_alloc(f->u->arena, (q->n_out + 1) * sizeof *out);
    for (size_t i = 0; i < q->n_in; i++)
        if (!(in[i] = oi_tensor_contents(f->u, &f->u->tensors.at[k->in_tensors[i]])))
            return false;
    for (size_t i = 0; i < q->n_out; i++)
        out[i] = oi_arena_alloc(f->u->arena,
                                f->u->tensors.at[k->out_tensors[i]].size_bytes + OI_KERNEL_ALIGN);
    uint8_t *scratch = oi_arena_alloc(f->u->arena, c->scratch_bytes + 2 * OI_KERNEL_ALIGN);
    oi_kernel_io io = {.in = in, .out = out};
    io.scratch =
        (void *)(((uintptr_t)scratch + OI_KERNEL_ALIGN - 1) / OI_KERNEL_ALIGN * OI_KERNEL_ALIGN);
    if (!oi_kernel_call(q, c, &io, &fault))
        return false; /* the program reports the error when it runs */
    for (size_t i = 0; i < q->n_out; i++) {
        oi_tensor *t = &f->u->tensors.at[k->out_tensors[i]];
        t->space = OI_SPACE_WEIGHTS;
        t->start = OI_START_NONE;
        t->bytes = out[i];
        t->sources = NULL;
        t->is_written = false;
    }
    return true;
}

/* Whether something may read a tensor before the kernel that writes it. */
typedef struct looking {
    folding *f;
    uint32_t tensor, kernel;
    bool found, looks;
} looking;

static void look(void *ctx, const oi_mention *m)
{
    looking *x = ctx;
    x->looks |= m->tensor == x->tensor;
}

static void look_at(looking *x, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n && !x->found; i++) {
        oi_stmt *s = &list->at[i];
        x->found = s->kind == OI_STMT_KERNEL && s->kernel == x->kernel;
        if (x->found)
            return;
        const oi_sgraph *g = &x->f->u->graphs.at[x->f->graph];
        bool calls = s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD;
        for (uint32_t b = 0; calls && b < g->program->n_blocks; b++)
            if (b != g->program->entry)
                oi_stmts_mentions(x->f->u, x->f->graph, &g->blocks[b].stmts, look, x);
        oi_stmt_mentions(x->f->u, x->f->graph, s, look, x);
        look_at(x, &s->body);
    }
}

/* Otherwise other readers see the tensor's initial value. */
static bool is_first(folding *f, const oi_skernel *k, uint32_t kernel)
{
    const oi_sgraph *g = &f->u->graphs.at[f->graph];
    for (size_t i = 0; i < k->ports.n; i++) {
        looking x = {.f = f, .tensor = k->ports.at[i].tensor, .kernel = kernel};
        if (!k->ports.at[i].is_written)
            continue;
        look_at(&x, &g->blocks[g->program->entry].stmts);
        if (x.looks)
            return false;
    }
    return true;
}

static void fold_list(folding *f, oi_stmts *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        if (s->kind == OI_STMT_LOOP && oi_loop_surely_runs(s))
            fold_list(f, &s->body);
        const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &f->u->kernels.at[s->kernel] : NULL;
        if (!k || !is_foldable(f, k) || !is_first(f, k, s->kernel) || !run(f, k))
            list->at[n++] = *s;
    }
    list->n = n;
}

oi_status oi_pass_fold(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        folding f = {.u = u, .graph = g, .uses = oi_graph_tally(u, g)};
        const oi_sgraph *graph = &u->graphs.at[g];
        fold_list(&f, &graph->blocks[graph->program->entry].stmts);
    }
    return OI_OK;
}

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
    uint32_t *first;     /* by tensor: the statement of entry that mentions it first, or OI_NO_ID */
    uint32_t *kernel_at; /* by kernel: its statement */
    uint32_t at;
    bool has_called;
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

/* Marks the first statement that mentions each tensor, and where each kernel is. */
static void look(void *ctx, const oi_mention *m)
{
    folding *f = ctx;
    if (m->tensor != OI_NO_ID && f->first[m->tensor] == OI_NO_ID)
        f->first[m->tensor] = f->at;
}

static void look_at(folding *f, const oi_stmts *list)
{
    const oi_sgraph *g = &f->u->graphs.at[f->graph];
    for (size_t i = 0; i < list->n; i++, f->at++) {
        oi_stmt *s = &list->at[i];
        if (s->kind == OI_STMT_KERNEL)
            f->kernel_at[s->kernel] = f->at;
        const bool calls = s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD;
        for (uint32_t b = 0; calls && !f->has_called && b < g->program->n_blocks; b++)
            if (b != g->program->entry)
                oi_stmts_mentions(f->u, f->graph, &g->blocks[b].stmts, look, f);
        f->has_called |= calls; /* whichever block it was: all of them are marked */
        oi_stmt_mentions(f->u, f->graph, s, look, f);
        if (s->body.n) {
            f->at++;
            look_at(f, &s->body);
        }
    }
}

/* Whether nothing reads its results before it runs: such a reader sees the initial value. */
static bool is_first(const folding *f, const oi_skernel *k, uint32_t kernel)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].is_written && f->first[k->ports.at[i].tensor] < f->kernel_at[kernel])
            return false;
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
        oi_stmts *entry = &graph->blocks[graph->program->entry].stmts;
        f.first = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *f.first);
        f.kernel_at = oi_arena_alloc(u->arena, (u->kernels.n + 1) * sizeof *f.kernel_at);
        memset(f.first, 0xff, (u->tensors.n + 1) * sizeof *f.first);
        look_at(&f, entry);
        fold_list(&f, entry);
    }
    return OI_OK;
}

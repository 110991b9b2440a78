/* layout.c: where tensors lie on the device, and which values the host needs: numbers that
 * statements compute with, conditions of branches. The plan places weights and working memory; the
 * state, inputs and results follow each other here. */
#include "emit/vulkan/program.h"

typedef struct laying {
    const oi_plan *p;
    oi_vprogram *v;
} laying;

/* -- what the host needs -- */

static bool is_single(const oi_tensor *t)
{
    return t->size_bytes * 8 <= oi_dtype_bits(t->dtype) || t->size_bytes <= 1;
}

bool oi_v_needs(const oi_plan *p, const oi_stmt *s, const oi_stmt_use *use)
{
    const oi_tensor *t = &p->tensors.at[use->tensor];
    if (use->is_length || !use->reads)
        return false;
    if (s->kind == OI_STMT_LIMIT || s->kind == OI_STMT_LENGTH || s->kind == OI_STMT_BRANCH)
        return true;
    return !use->is_operand && is_single(t);
}

static void look(laying *x, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &x->p->kernels.at[s->kernel] : NULL;
        for (uint32_t u = 0; u < s->n_uses; u++)
            x->v->is_known[s->uses[u].tensor] |= oi_v_needs(x->p, s, &s->uses[u]);
        for (size_t port = 0; k && port < k->ports.n; port++)
            x->v->is_made[k->ports.at[port].tensor] |= k->ports.at[port].is_written;
        look(x, &s->body);
    }
}

/* -- places -- */

static uint64_t place(laying *x, uint64_t *end, uint32_t tensor)
{
    const uint64_t at = *end;
    x->v->at[tensor] = at;
    *end += oi_plan_aligned(x->p, oi_tensor_bytes(&x->p->tensors.at[tensor]));
    return at;
}

static void place_graph(laying *x, size_t g)
{
    const oi_sgraph *graph = &x->p->graphs.at[g];
    uint64_t *end = &x->v->io_bytes;
    x->v->in[g].first = *end;
    for (size_t i = 0; i < graph->inputs.n; i++)
        place(x, end, graph->inputs.at[i]);
    x->v->in[g].bytes = *end - x->v->in[g].first;
    x->v->out[g].first = *end;
    for (size_t i = 0; i < x->p->tensors.n; i++)
        if (x->p->tensors.at[i].space == OI_SPACE_OUTPUT && x->p->tensors.at[i].graph == g)
            place(x, end, (uint32_t)i);
    x->v->out[g].bytes = *end - x->v->out[g].first;
}

/* Inputs that a step changes are among its results. */
static void extend(laying *x, size_t g)
{
    const oi_sgraph *graph = &x->p->graphs.at[g];
    oi_vstretch *out = &x->v->out[g];
    for (size_t i = graph->inputs.n; i-- > 0;) {
        const uint32_t id = graph->inputs.at[i];
        const uint64_t end = out->first + out->bytes;
        if (!x->v->is_made[id])
            continue;
        out->first = x->v->at[id] < out->first ? x->v->at[id] : out->first;
        out->bytes = end - out->first;
    }
}

void oi_v_lay_out(const oi_plan *p, oi_vprogram *v)
{
    laying x = {p, v};
    const size_t n = p->tensors.n + 1;
    *v = (oi_vprogram){.at = oi_arena_alloc(p->arena, n * sizeof *v->at),
                       .in = oi_arena_alloc(p->arena, (p->graphs.n + 1) * sizeof *v->in),
                       .out = oi_arena_alloc(p->arena, (p->graphs.n + 1) * sizeof *v->out),
                       .is_known = oi_arena_alloc(p->arena, n),
                       .is_made = oi_arena_alloc(p->arena, n),
                       .known = oi_arena_alloc(p->arena, n * sizeof *v->known)};
    for (size_t g = 0; g < p->graphs.n; g++)
        for (uint32_t b = 0; b < p->graphs.at[g].n_order; b++)
            look(&x, &p->graphs.at[g].blocks[p->graphs.at[g].order[b]].stmts);
    for (size_t i = 0; i < p->tensors.n; i++) {
        const oi_tensor *t = &p->tensors.at[i];
        v->is_known[i] |= t->by_value;
        v->at[i] = t->space == OI_SPACE_WEIGHTS ? t->offset - OI_WEIGHTS_HEAD : t->offset;
        v->known[i] =
            v->is_known[i] && v->is_made[i] && t->space != OI_SPACE_VIEW ? v->n_known++ : OI_NO_ID;
    }
    for (size_t i = 0; i < p->stores.n; i++) {
        place(&x, &v->state_bytes, p->stores.at[i].tensor);
        if (p->stores.at[i].has_marks)
            place(&x, &v->state_bytes, p->stores.at[i].marks);
    }
    for (size_t g = 0; g < p->graphs.n; g++) {
        place_graph(&x, g);
        extend(&x, g);
    }
}

/* dead.c: kernels whose results nobody looks at go.
 * needs:  statements
 * keeps:  everything that the host, the state, a branch or an index sees
 * makes:  fewer statements */
#include "synth/pass.h"

typedef struct sweeping {
    oi_unit *u;
    uint32_t graph;
    uint32_t *reads; /* by tensor */
} sweeping;

static void read_code(sweeping *s, const oi_code *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].kind == OI_INS_VAR)
            s->reads[s->u->graphs.at[s->graph].tensor_of[c->at[i].id]]++;
}

static void read_value(sweeping *s, const oi_pvalue *v)
{
    if (v->kind == OI_PV_VAR)
        s->reads[s->u->graphs.at[s->graph].tensor_of[v->id]]++;
    else if (v->kind == OI_PV_CODE)
        read_code(s, &v->code);
}

static void read_port(sweeping *s, const oi_port *p)
{
    for (uint32_t i = 0; i < p->n_entry; i++)
        read_code(s, &p->entry[i]);
}

static void read_kernel(sweeping *s, const oi_skernel *k)
{
    for (size_t i = 0; i < k->ports.n; i++) {
        read_port(s, &k->ports.at[i]);
        /* a table's entry is written in part: the rest lives on */
        bool looks = !k->ports.at[i].is_written || k->ports.at[i].n_entry ||
                     oi_kernel_reads(k, k->ports.at[i].tensor);
        s->reads[k->ports.at[i].tensor] += looks;
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        read_value(s, &k->scalars.at[i].value);
}

static void read_node(sweeping *s, const oi_stmt *stmt)
{
    const oi_pnode *n = stmt->node;
    const uint32_t *of = s->u->graphs.at[s->graph].tensor_of;
    if (stmt->kind == OI_STMT_LOOP) {
        read_code(s, &n->as.loop.start);
        read_code(s, &n->as.loop.end);
    } else if (stmt->kind == OI_STMT_BRANCH) {
        if (n->as.branch.cond != OI_NO_ID && !n->as.branch.cond_is_index)
            s->reads[of[n->as.branch.cond]]++;
    } else if (stmt->kind == OI_STMT_CACHE) {
        for (uint32_t i = 0; i < n->as.move.cache.n; i++) {
            read_code(s, &n->as.move.cache.sels[i].start);
            read_code(s, &n->as.move.cache.sels[i].end);
        }
        s->reads[stmt->b.tensor] += n->kind == OI_NODE_CACHE_WRITE;
        bool counts = n->kind == OI_NODE_CACHE_INCREMENT || n->kind == OI_NODE_CACHE_DECREMENT;
        if (counts && n->as.move.amount_var != OI_NO_ID && !n->as.move.amount_is_index)
            s->reads[of[n->as.move.amount_var]]++;
    }
}

static void read_list(sweeping *s, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *stmt = &list->at[i];
        if (stmt->kind == OI_STMT_KERNEL)
            read_kernel(s, &s->u->kernels.at[stmt->kernel]);
        else
            read_node(s, stmt);
        read_port(s, &stmt->a);
        read_port(s, &stmt->b);
        if (stmt->kind == OI_STMT_SET)
            read_value(s, &stmt->value);
        if (stmt->kind == OI_STMT_LIMIT)
            s->reads[stmt->a.tensor]++;
        read_list(s, &stmt->body);
    }
}

static bool is_dead(const sweeping *s, const oi_stmt *stmt)
{
    if (stmt->kind != OI_STMT_KERNEL)
        return false;
    const oi_skernel *k = &s->u->kernels.at[stmt->kernel];
    bool dead = !k->can_fail;
    for (size_t i = 0; i < k->ports.n; i++) {
        uint32_t t = k->ports.at[i].tensor;
        if (k->ports.at[i].is_written)
            dead &= s->u->tensors.at[t].space == OI_SPACE_ARENA && s->reads[t] == 0;
    }
    return dead;
}

static bool sweep(sweeping *s, oi_stmts *list)
{
    bool any = false;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        any |= sweep(s, &list->at[i].body);
        if (is_dead(s, &list->at[i]))
            any = true;
        else
            list->at[n++] = list->at[i];
    }
    list->n = n;
    return any;
}

oi_status oi_pass_dead(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        const oi_sgraph *graph = &u->graphs.at[g];
        bool again = true;
        while (again) {
            sweeping s = {.u = u, .graph = g};
            s.reads = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *s.reads);
            for (uint32_t b = 0; b < graph->program->n_blocks; b++)
                read_list(&s, &graph->blocks[b].stmts);
            again = false;
            for (uint32_t b = 0; b < graph->program->n_blocks; b++)
                again |= sweep(&s, &graph->blocks[b].stmts);
        }
    }
    return OI_OK;
}

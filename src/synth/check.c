/* check.c: invariants that must hold between passes. A violation is our own bug, found before
 * anything is printed. */
#include "synth/pipeline.h"

typedef struct checking {
    const oi_unit *u;
    const oi_skernel *k;
    const char *why;
} checking;

static void demand(checking *c, bool holds, const char *what)
{
    if (!holds && !c->why)
        c->why = what;
}

static void check_sops(checking *c, const oi_snest *n, const oi_sops *ops, size_t base)
{
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        demand(c, op->port < c->k->ports.n || !oi_sop_is_access(op),
               "an instruction names no port");
        for (uint32_t a = 0; a < op->n_args; a++)
            demand(c, op->args[a] == OI_NO_ID || op->args[a] < base + i,
                   "an instruction uses a later one");
        if (!oi_sop_is_access(op) || c->why)
            continue;
        const oi_tensor *t = &c->u->tensors.at[c->k->ports.at[op->port].tensor];
        demand(c, op->type == t->dtype, "an element has another type than its tensor");
        demand(c, op->kind != OI_SOP_STORE || c->k->ports.at[op->port].is_written,
               "a store into what is only read");
        for (uint32_t d = 0; d < (op->is_flat ? 1 : t->rank); d++) {
            demand(c, op->at[d].index == OI_NEST_NONE || op->at[d].index < base + i,
                   "an index comes later");
            for (uint32_t a = n->n_axes; a < OI_NEST_AXES; a++)
                demand(c, op->at[d].step[a] == 0, "a coordinate runs over no axis");
        }
    }
}

/* An axis that is unrolled completely has no loop, so its level must cover it. Partial sums are
 * added pairwise, and workers have results of their own. */
static void check_levels(checking *c, const oi_snest *n)
{
    for (uint32_t a = 0; a < n->n_axes; a++) {
        const oi_saxis *x = &n->axes[a];
        for (uint32_t l = 0; l < OI_AXIS_LEVELS; l++) {
            const bool is_sum = x->is_reduced && l != OI_AXIS_UNROLLED;
            demand(c, x->factor[l] >= 0, "a level of negative size");
            demand(c, !is_sum || (x->factor[l] & (x->factor[l] - 1)) == 0,
                   "partial sums that are not a power of two");
        }
        demand(c, !x->is_reduced || (!x->factor[OI_AXIS_WORKER] && !x->factor[OI_AXIS_STREAM]),
               "workers share a sum");
        demand(c, !oi_nest_is_unrolled(n, a) || x->factor[OI_AXIS_UNROLLED] == x->extent,
               "the last axis is unrolled in part");
    }
}

static void check_kernel(checking *c)
{
    for (size_t i = 0; i < c->k->ports.n; i++)
        demand(c, c->k->ports.at[i].tensor < c->u->tensors.n, "a port names no tensor");
    for (size_t i = 0; i < c->k->nests.n && !c->why; i++) {
        const oi_snest *n = &c->k->nests.at[i];
        bool reduced = false;
        for (uint32_t a = 0; a < n->n_axes; a++) {
            demand(c, n->axes[a].extent >= 0, "an axis of negative length");
            demand(c, !reduced || n->axes[a].is_reduced, "a reduced axis before an output axis");
            reduced |= n->axes[a].is_reduced;
        }
        check_levels(c, n);
        check_sops(c, n, &n->pre, 0);
        check_sops(c, n, &n->post, n->pre.n);
        demand(c, n->kind == OI_NEST_MAP || n->element < n->pre.n, "nothing to combine");
    }
}

static const char *check_stmts(oi_unit *u, const oi_stmts *list)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < list->n && !wrong; i++) {
        const oi_stmt *s = &list->at[i];
        if (s->kind == OI_STMT_PIPELINE) {
            const oi_pipeline t = oi_pipeline_of(u, s);
            wrong = oi_pipeline_check(u, &t);
            if (wrong)
                wrong = oi_arena_printf(u->arena, "turns of %s: %s",
                                        u->kernels.at[s->body.at[0].kernel].name, wrong);
        } else {
            wrong = check_stmts(u, &s->body);
        }
    }
    return wrong;
}

const char *oi_unit_check(oi_unit *u)
{
    for (size_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++) {
            const char *wrong = check_stmts(u, &u->graphs.at[g].blocks[b].stmts);
            if (wrong)
                return wrong;
        }
    for (size_t i = 0; i < u->kernels.n; i++) {
        if (!u->kernels.at[i].is_used)
            continue; /* what passes left behind */
        checking c = {.u = u, .k = &u->kernels.at[i]};
        check_kernel(&c);
        if (c.why)
            return oi_arena_printf(u->arena, "kernel %s: %s", c.k->name, c.why);
    }
    return NULL;
}

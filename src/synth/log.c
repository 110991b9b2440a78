/* log.c: keeps what a failed step must restore before kernels write persistent memory.
 * needs:  statements in their final order
 * keeps:  results
 * makes:  a statement that logs the part of the state before each kernel that writes it
 *
 * One thread logs, before all write. The statement moves up in its list as far as its positions
 * are known there and valid: then a barrier that is there for other reasons orders the two. */
#include "synth/compose.h"
#include "synth/pass.h"

#define MOST_PASSED 64 /* statements: a barrier is nearer than that */

typedef struct logging {
    oi_unit *u;
    uint32_t graph;
    bool moves; /* barriers cost: workers share the step, or dispatches wait for each other */
} logging;

/* The part of the state that the kernel writes first; NULL: none. */
static const oi_port *written_state(const oi_unit *u, const oi_skernel *k, size_t *from)
{
    for (; *from < k->ports.n; ++*from) {
        const oi_port *p = &k->ports.at[*from];
        if (p->is_written && !p->is_dropped && u->tensors.at[p->tensor].space == OI_SPACE_STATE)
            return &k->ports.at[(*from)++];
    }
    return NULL;
}

/* -- moving up -- */

/* The statement only computes, and cannot fail: which failure a step reports does not change. */
static bool is_plain(const logging *l, const oi_stmt *s)
{
    if (s->kind == OI_STMT_LOG || s->kind == OI_STMT_VIEW || s->kind == OI_STMT_SIZES)
        return true;
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &l->u->kernels.at[s->kernel] : NULL;
    bool is = k && !k->can_fail;
    for (size_t i = 0; is && i < k->ports.n; i++)
        is = !oi_entry_may_fail(l->u->graphs.at[l->graph].program,
                                &l->u->tensors.at[k->ports.at[i].tensor], &k->ports.at[i]);
    return is;
}

static void move_up(logging *l, oi_stmts *list, size_t at)
{
    for (unsigned n = 0; at > 0 && n < MOST_PASSED; at--, n++) {
        const oi_stmt own = list->at[at], *before = &list->at[at - 1];
        if (!is_plain(l, before) || !oi_stmts_may_pass(l->u, l->graph, list, at, at - 1, at, true))
            return;
        list->at[at] = *before;
        list->at[at - 1] = own;
    }
}

static void log_writes(logging *l, const oi_stmt *s, oi_stmts *out)
{
    const oi_port *p;
    size_t from = 0;
    while (s->kind == OI_STMT_KERNEL &&
           (p = written_state(l->u, &l->u->kernels.at[s->kernel], &from)) != NULL) {
        oi_stmt *own = OI_PUSH(l->u->arena, out);
        *own = (oi_stmt){.kind = OI_STMT_LOG, .node = s->node, .a = *p};
        own->a.is_written = false;
    }
}

static void log_list(logging *l, oi_stmts *list)
{
    oi_stmts all = {0};
    OI_RESERVE(l->u->arena, &all, list->n);
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        log_writes(l, s, &all);
        for (size_t k = 0; s->kind == OI_STMT_PIPELINE && k < s->body.n; k++)
            log_writes(l, &s->body.at[k], &all);
        if (s->kind == OI_STMT_LOOP)
            log_list(l, &s->body);
        *OI_PUSH(l->u->arena, &all) = *s;
    }
    *list = all;
    for (size_t i = 0; l->moves && i < list->n; i++)
        if (list->at[i].kind == OI_STMT_NEED || list->at[i].kind == OI_STMT_LOG)
            move_up(l, list, i);
}

oi_status oi_pass_log(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        logging l = {u, g, (oi_caps_share(&u->can) || u->can.group_size) && !u->per_node};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                log_list(&l, &u->graphs.at[g].blocks[b].stmts);
    }
    return OI_OK;
}

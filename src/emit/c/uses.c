/* uses.c: what the code of statements refers to, from the statements: a function declares and
 * receives only what it uses. */
#include "emit/c/c.h"

/* Memory is reached through the program's struct, but for views and private copies. */
static bool is_in_struct(const oi_tensor *t, const oi_stmt_use *use)
{
    if (use->is_length)
        return t->run_dims != 0;
    return t->space != OI_SPACE_VIEW && t->space != OI_SPACE_LOCAL &&
           !(t->space == OI_SPACE_ARENA && t->is_private);
}

static void add_kernel(oi_cprog *c, const oi_stmt *s, bool is_shared, oi_cuses *out)
{
    const oi_skernel *k = &c->p->kernels.at[s->kernel];
    const bool is_part = is_shared && oi_kernel_partition(k).extent && !k->is_chunked;
    out->failed |= k->can_fail && !c->form->device;
    out->memory |= c->p->timed;
    out->worker |= is_part || k->has_prefetch || (c->p->timed && s->is_parallel);
    out->workers |= is_part || k->has_prefetch;
}

static void add_stmts(oi_cprog *c, const oi_stmts *list, bool is_shared, oi_cuses *out);

static void add_stmt(oi_cprog *c, const oi_stmt *s, bool is_shared, oi_cuses *out)
{
    for (uint32_t i = 0; i < s->n_uses; i++) /* a check looks at no operand, only at numbers */
        if (s->kind != OI_STMT_NEED || !s->uses[i].is_operand)
            out->memory |= is_in_struct(&c->p->tensors.at[s->uses[i].tensor], &s->uses[i]);
    out->worker |= is_shared && (s->barrier || s->chunks);
    out->workers |= is_shared && s->barrier && s->has_prefetch;
    out->memory |= is_shared && (s->barrier || s->chunks);
    switch (s->kind) {
    case OI_STMT_KERNEL: add_kernel(c, s, is_shared, out); break;
    case OI_STMT_VIEW: out->worker |= s->is_parallel && s->kernel != OI_NO_ID; break;
    case OI_STMT_LOOP: add_stmts(c, &s->body, is_shared && s->is_parallel, out); break;
    case OI_STMT_PIPELINE:
        out->memory |= s->is_parallel;
        out->worker |= s->is_parallel;
        out->workers |= s->is_parallel;
        add_stmts(c, &s->body, false, out);
        break;
    case OI_STMT_BRANCH:
        out->failed = out->memory = true;
        out->worker |= is_shared && s->is_parallel;
        out->workers |= is_shared && s->is_parallel;
        break;
    case OI_STMT_YIELD:
        out->failed |= oi_c_runs_consumers(c, s->node);
        out->memory |= s->may_fail;
        break;
    case OI_STMT_AWAIT: out->memory |= s->may_fail; break;
    case OI_STMT_CHECK: out->memory = true; break;
    case OI_STMT_NEED:
    case OI_STMT_RESIZE:
    case OI_STMT_LOG:
    case OI_STMT_SET:
    case OI_STMT_BARRIER:
    case OI_STMT_LIMIT:
    case OI_STMT_SHAPE:
    case OI_STMT_SIZES:
    case OI_STMT_LENGTH:
    case OI_STMT_RETURN:
    case OI_STMT_GONE: break;
    }
}

static void add_stmts(oi_cprog *c, const oi_stmts *list, bool is_shared, oi_cuses *out)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmts one = {.at = &list->at[i], .n = 1};
        add_stmt(c, &list->at[i], is_shared, out);
        out->worker |= is_shared && !list->at[i].is_parallel && oi_c_is_spelled(c, &one);
    }
}

oi_cuses oi_c_uses(oi_cprog *c, const oi_stmts *list, bool is_shared)
{
    oi_cuses out = {.failed = false};
    add_stmts(c, list, is_shared, &out);
    return out;
}

bool oi_c_is_spelled(const oi_cprog *c, const oi_stmts *list)
{
    bool is = false;
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        switch (s->kind) {
        case OI_STMT_BARRIER:
        case OI_STMT_RETURN:
        case OI_STMT_GONE: break;
        case OI_STMT_YIELD:
        case OI_STMT_AWAIT:
        case OI_STMT_SHAPE: is |= s->may_fail; break;
        case OI_STMT_LOG: is |= oi_c_logs(c, s); break;
        case OI_STMT_SIZES: is |= c->p->kernels.at[s->kernel].lengths.n > 0; break;
        default: is = true;
        }
    }
    return is;
}

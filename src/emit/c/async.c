/* async.c: yield and await without threads. A consumer runs, in declaration order, at the yield
 * that makes it ready, so it sees the snapshot. Values that it writes and others may read meanwhile
 * are private; the await publishes them (build.c made these tensors). */
#include "emit/c/c.h"

/* The flags of a graph have their own struct, so their names do not clash with variables. */
static const char *flags(oi_cprog *c)
{
    return c->p->graphs.n > 1
               ? oi_arena_printf(c->arena, "oi_waits_%s", c->p->graphs.at[c->graph].name)
               : "oi_waits";
}

static const char *member(oi_cprog *c, const char *what, const char *name)
{
    return oi_arena_printf(c->arena, "s->%s.%s_%s", flags(c), what, name);
}

static const char *lent(oi_cprog *c, uint32_t var)
{
    return member(c, "lent", oi_c_program(c)->vars[var].name);
}

static const char *ran(oi_cprog *c, uint32_t consumer)
{
    return member(c, "ran", oi_c_program(c)->blocks[consumer].source->name.text);
}

static bool awaits(const oi_pblock *b, uint32_t var)
{
    for (uint32_t i = 0; i < b->n_awaited; i++)
        if (b->awaited[i] == var)
            return true;
    return false;
}

static void run_consumer(oi_cprog *c, uint32_t block)
{
    const oi_pblock *b = &oi_c_program(c)->blocks[block];
    oi_buf ready = {0};
    for (uint32_t i = 0; i < b->n_awaited; i++)
        oi_buf_printf(&ready, "%s%s", i ? " && " : "", lent(c, b->awaited[i]));
    oi_out_open(&c->out, "if (%s && !%s)", oi_buf_to_arena(&ready, c->arena), ran(c, block));
    oi_c_begin_write(c);
    oi_out_line(&c->out, "%s = 1;", ran(c, block));
    oi_c_end_write(c);
    oi_out_line(&c->out, "failed = %s(s);", oi_c_block_name(c, block));
    oi_c_put_failed(c);
    oi_out_close(&c->out, "");
}

bool oi_c_runs_consumers(const oi_cprog *c, const oi_pnode *yield)
{
    const oi_program *p = oi_c_program(c);
    bool runs = false;
    for (uint32_t k = 0; yield->source->block == p->entry && k < p->n_consumers; k++)
        for (uint32_t i = 0; i < yield->as.list.n; i++)
            runs |= awaits(&p->blocks[p->consumers[k]], yield->as.list.vars[i]);
    return runs;
}

void oi_c_yield(oi_cprog *c, const oi_pnode *n)
{
    const oi_program *p = oi_c_program(c);
    if (n->source->block != p->entry)
        return; /* the end of a consumer, or of a called block */
    for (uint32_t i = 0; i < n->as.list.n; i++) {
        oi_out_line(&c->out, "if (%s)", lent(c, n->as.list.vars[i]));
        oi_out_line(&c->out, "    return 71; /* E071: already yielded */");
        oi_c_begin_write(c);
        oi_out_line(&c->out, "%s = 1;", lent(c, n->as.list.vars[i]));
        oi_c_end_write(c);
    }
    for (uint32_t k = 0; k < p->n_consumers; k++)
        for (uint32_t i = 0; i < n->as.list.n; i++)
            if (awaits(&p->blocks[p->consumers[k]], n->as.list.vars[i])) {
                run_consumer(c, p->consumers[k]);
                break;
            }
}

void oi_c_await(oi_cprog *c, const oi_pnode *n)
{
    const oi_program *p = oi_c_program(c);
    if (n->source->block != p->entry)
        return; /* a consumer starts when everything it waits for has been yielded */
    for (uint32_t i = 0; i < n->as.list.n; i++) {
        oi_out_line(&c->out, "if (!%s)", lent(c, n->as.list.vars[i]));
        oi_out_line(&c->out, "    return 73; /* E073: not yielded */");
    }
    for (uint32_t k = 0; k < p->n_consumers; k++) {
        const oi_pblock *b = &p->blocks[p->consumers[k]];
        bool waits = false;
        for (uint32_t i = 0; i < n->as.list.n; i++)
            waits |= awaits(b, n->as.list.vars[i]);
        if (!waits)
            continue;
        oi_out_line(&c->out, "if (!%s)", ran(c, p->consumers[k]));
        oi_out_line(&c->out,
                    "    return 76; /* E076: it waits for a variable that is never yielded */");
        oi_c_begin_write(c);
        oi_out_line(&c->out, "%s = 0;", ran(c, p->consumers[k]));
        oi_c_end_write(c);
    }
    oi_c_begin_write(c);
    for (uint32_t i = 0; i < n->as.list.n; i++)
        oi_out_line(&c->out, "%s = 0;", lent(c, n->as.list.vars[i]));
    oi_c_end_write(c);
}

static bool is_awaited(const oi_program *p, uint32_t var)
{
    for (uint32_t k = 0; k < p->n_consumers; k++)
        if (awaits(&p->blocks[p->consumers[k]], var))
            return true;
    return false;
}

void oi_c_async_members(oi_cprog *c, oi_out *o)
{
    const oi_program *p = oi_c_program(c);
    uint64_t n = p->n_consumers;
    if (n == 0)
        return;
    oi_out_open(o, "struct");
    for (uint32_t v = 0; v < p->n_vars; v++)
        if (is_awaited(p, v)) {
            oi_out_line(o, "uint8_t lent_%s;", p->vars[v].name);
            n++;
        }
    for (uint32_t k = 0; k < p->n_consumers; k++)
        oi_out_line(o, "uint8_t ran_%s;", p->blocks[p->consumers[k]].source->name.text);
    oi_out_close(
        o, oi_arena_printf(c->arena, " %s; /* progress of yield and await in a step */", flags(c)));
    oi_c_count(c, 1, n);
}

/* After a failed step, no variable stays yielded. */
void oi_c_async_reset(oi_cprog *c)
{
    const oi_program *p = oi_c_program(c);
    for (uint32_t v = 0; v < p->n_vars; v++)
        if (is_awaited(p, v))
            oi_out_line(&c->out, "%s = 0;", lent(c, v));
    for (uint32_t k = 0; k < p->n_consumers; k++)
        oi_out_line(&c->out, "%s = 0;", ran(c, p->consumers[k]));
}

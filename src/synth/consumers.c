/* consumers.c: yield and await on one thread. A consumer runs, in declaration order, at the yield
 * that makes it ready. What it reads is then what the snapshot holds; what it writes must not be
 * seen by entry or by other consumers before entry awaits it, so such variables get a private
 * tensor that the await publishes. */
#include "synth/consumers.h"

typedef struct scan {
    oi_uses *uses;
    const oi_pblock *consumer;
    bool is_lent; /* between the yield and the await */
} scan;

static bool concerns(const scan *s, const oi_pnode *n)
{
    for (uint32_t i = 0; i < n->as.list.n; i++)
        for (uint32_t k = 0; k < s->consumer->n_awaited; k++)
            if (n->as.list.vars[i] == s->consumer->awaited[k])
                return true;
    return false;
}

static void scan_list(scan *s, const oi_ids *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_pnode *n = &s->uses->p->nodes[list->at[i]];
        if (n->kind == OI_NODE_YIELD && concerns(s, n))
            s->is_lent = true;
        else if (n->kind == OI_NODE_AWAIT && concerns(s, n))
            s->is_lent = false;
        else if (s->is_lent && n->kind != OI_NODE_RETURN)
            oi_uses_of_node(s->uses, n);
        else if (n->kind == OI_NODE_LOOP) {
            bool before = s->is_lent;
            scan_list(s, &n->source->as.loop.body);
            if (s->is_lent != before)
                oi_uses_of_node(s->uses, n); /* a round that reaches into the next iteration */
        }
    }
}

void oi_consumer_meanwhile(oi_uses *uses, uint32_t consumer)
{
    const oi_program *p = uses->p;
    scan s = {.uses = uses, .consumer = &p->blocks[consumer]};
    oi_uses_clear(uses);
    scan_list(&s, &p->blocks[p->entry].source->nodes);
}

/* A consumer that waits a second time starts here when everything it waits for is lent. */
static uint32_t count_awaits(const oi_program *p, const oi_ids *list)
{
    uint32_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const oi_pnode *node = &p->nodes[list->at[i]];
        n += node->kind == OI_NODE_AWAIT;
        if (node->kind == OI_NODE_LOOP)
            n += 2 * count_awaits(p, &node->source->as.loop.body);
    }
    return n;
}

void oi_consumer_check(oi_unit *u, uint32_t graph, const oi_uses *uses, uint32_t consumer)
{
    const oi_program *p = uses->p;
    const oi_pblock *b = &p->blocks[consumer];
    if (count_awaits(p, &b->source->nodes) < 2)
        return;
    for (uint32_t v = 0; v < p->n_vars; v++)
        if (oi_mask_has(b->uses, v) && oi_uses_writes(uses, v)) {
            oi_unit_refuse(u, graph, NULL, b->source->name.span, "E060",
                           "consumer '%s' waits twice while the entry changes '%s', which it reads",
                           b->source->name.text, p->vars[v].name);
            return;
        }
}

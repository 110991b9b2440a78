/* check_block.c: how blocks end (E004-E007, E039), whom they call (E035-E037), what never runs
 * (W107), and what dep may name (E038); spec/dsl.md §8. */
#include "graph/check.h"

#include "base/ops.h"

#define MAX_NOTES 4u /* calls of a cycle that are shown */

static oi_place at_block(const oi_checker *c, const oi_block *b, oi_span span)
{
    return oi_graph_place_block(c->g, c->a, b, span);
}

/* -- facts -- */

static void add_call(oi_checker *c, uint32_t branch, const oi_name *target, bool surely)
{
    const oi_node *n = &c->g->nodes.at[branch];
    uint32_t to = target->text ? oi_graph_find_block(c->g, target->text) : OI_NO_ID;
    if (to == OI_NO_ID)
        return;
    *OI_PUSH(c->a, &c->blocks[n->block].calls) = (oi_call_edge){n, to, surely};
    if (c->blocks[to].call == OI_NO_ID)
        c->blocks[to].call = branch;
}

static void gather(oi_checker *c)
{
    const oi_graph *g = c->g;
    c->blocks = oi_arena_alloc(c->a, (g->blocks.n + 1) * sizeof *c->blocks);
    c->entry = oi_graph_find_block(g, "entry");
    for (size_t i = 0; i < g->blocks.n; i++)
        c->blocks[i].call = OI_NO_ID;
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        const oi_node *n = &g->nodes.at[i];
        oi_block_facts *b = &c->blocks[n->block];
        if (n->kind == OI_NODE_AWAIT) {
            *OI_PUSH(c->a, &b->awaits) = i;
            b->is_consumer = n->block != c->entry;
        } else if (n->kind == OI_NODE_BRANCH) {
            add_call(c, i, &n->as.branch.then_block, !n->as.branch.cond.text);
            add_call(c, i, &n->as.branch.else_block, false);
        }
    }
}

/* -- calls -- */

/* Targets exist (E035) and are neither entry nor a consumer (E036). */
static void branch_target(const oi_checker *c, const oi_node *n, const oi_name *name)
{
    if (!name->text)
        return;
    uint32_t to = oi_graph_find_block(c->g, name->text);
    oi_place at = oi_check_at(c, n, name->span);
    if (to == OI_NO_ID) {
        oi_diag_error(c->d, at, "E035", "there is no block '%s'", name->text);
        oi_nearest near = oi_nearest_start(name->text);
        for (size_t i = 0; i < c->g->blocks.n; i++)
            oi_nearest_offer(&near, c->g->blocks.at[i].name.text);
        oi_check_hint(c, &near);
        return;
    }
    const oi_block *b = &c->g->blocks.at[to];
    if (to == c->entry)
        oi_diag_error(c->d, at, "E036", "branch to block entry");
    else if (c->blocks[to].is_consumer)
        oi_diag_error(c->d, at, "E036",
                      "branch to '%s', which awaits and so runs by itself as a consumer",
                      name->text);
    else
        return;
    oi_diag_note(c->d, at_block(c, b, b->name.span), "block '%s' is here", b->name.text);
}

typedef enum visit { UNSEEN, OPEN, DONE } visit;

typedef struct frame {
    uint32_t block;
    size_t next; /* call to follow next */
} frame;

typedef struct search {
    visit *seen;
    OI_VEC(frame) stack;
    bool cyclic;
} search;

/* E037: the branch that closes a cycle of calls, with the calls that lead back to it. */
static void cycle(const oi_checker *c, const search *s, const oi_call_edge *closing)
{
    const oi_name *to = &c->g->blocks.at[closing->to].name;
    const oi_node *n = closing->branch;
    bool is_then = strcmp(n->as.branch.then_block.text, to->text) == 0;
    oi_span span = is_then ? n->as.branch.then_block.span : n->as.branch.else_block.span;
    oi_diag_error(c->d, oi_check_at(c, n, span), "E037",
                  "block '%s' calls itself through this branch", to->text);
    size_t first = s->stack.n - 1;
    while (s->stack.at[first].block != closing->to)
        first--;
    for (size_t i = first; i + 1 < s->stack.n && i < first + MAX_NOTES; i++) {
        const frame *f = &s->stack.at[i];
        const oi_call_edge *e = &c->blocks[f->block].calls.at[f->next - 1];
        oi_diag_note(c->d, oi_check_at(c, e->branch, e->branch->span), "'%s' calls '%s' here",
                     c->g->blocks.at[f->block].name.text, c->g->blocks.at[e->to].name.text);
    }
}

/* One call of the block on top of the stack; false when it has none left. */
static bool advance(const oi_checker *c, search *s)
{
    frame *f = &s->stack.at[s->stack.n - 1];
    const oi_call_edges *calls = &c->blocks[f->block].calls;
    if (f->next >= calls->n)
        return false;
    const oi_call_edge *e = &calls->at[f->next++];
    if (s->seen[e->to] == OPEN) {
        s->cyclic = true;
        if (!oi_check_stop(c))
            cycle(c, s, e);
    } else if (s->seen[e->to] == UNSEEN) {
        s->seen[e->to] = OPEN;
        *OI_PUSH(c->a, &s->stack) = (frame){e->to, 0};
    }
    return true;
}

/* Depth first over all calls with a stack of our own: reports cycles, orders callers before
 * callees. */
static void order_calls(oi_checker *c)
{
    size_t n = c->g->blocks.n;
    search s = {.seen = oi_arena_alloc(c->a, (n + 1) * sizeof *s.seen)};
    uint32_t *done = oi_arena_alloc(c->a, (n + 1) * sizeof *done);
    size_t left = n;
    for (uint32_t i = 0; i < n; i++) {
        if (s.seen[i] != UNSEEN)
            continue;
        s.seen[i] = OPEN;
        *OI_PUSH(c->a, &s.stack) = (frame){i, 0};
        while (s.stack.n) {
            if (advance(c, &s))
                continue;
            uint32_t block = s.stack.at[--s.stack.n].block;
            s.seen[block] = DONE;
            done[--left] = block;
        }
    }
    if (!s.cyclic)
        c->order = (oi_ids){.at = done, .n = n, .cap = n};
}

/* E037 too: later stages recurse over calls, and emitted programs call as deep. One message: what
 * such a block calls is too deep as well. */
static void call_depth(const oi_checker *c)
{
    uint32_t *depth = oi_arena_alloc(c->a, (c->g->blocks.n + 1) * sizeof *depth);
    for (size_t i = 0; i < c->order.n && !oi_check_stop(c); i++) {
        const oi_call_edges *calls = &c->blocks[c->order.at[i]].calls;
        for (size_t k = 0; k < calls->n; k++) {
            const oi_call_edge *e = &calls->at[k];
            uint32_t now = depth[c->order.at[i]] + 1;
            for (uint32_t loop = e->branch->parent; loop != OI_NO_ID;
                 loop = c->g->nodes.at[loop].parent)
                now++;
            if (now > OI_MAX_CALL_DEPTH) {
                oi_diag_error(c->d, oi_check_at(c, e->branch, e->branch->span), "E037",
                              "block '%s' is called %u levels deep, at most %u are allowed",
                              c->g->blocks.at[e->to].name.text, now, OI_MAX_CALL_DEPTH);
                oi_diag_hint(c->d, "each block on the way and each loop around a branch counts");
                return;
            }
            if (now > depth[e->to])
                depth[e->to] = now;
        }
    }
}

/* -- what runs -- */

static void reach(const oi_checker *c, oi_ids *work)
{
    while (work->n) {
        const oi_call_edges *calls = &c->blocks[work->at[--work->n]].calls;
        for (size_t k = 0; k < calls->n; k++) {
            uint32_t to = calls->at[k].to;
            if (c->blocks[to].runs)
                continue;
            c->blocks[to].runs = true;
            *OI_PUSH(c->a, work) = to;
        }
    }
}

/* W107: a block that neither entry nor a consumer reaches. */
static void dead_blocks(oi_checker *c)
{
    oi_ids work = {0};
    for (uint32_t i = 0; i < c->g->blocks.n; i++)
        if (i == c->entry || c->blocks[i].is_consumer) {
            c->blocks[i].runs = true;
            *OI_PUSH(c->a, &work) = i;
        }
    reach(c, &work);
    for (uint32_t i = 0; i < c->g->blocks.n && c->entry != OI_NO_ID; i++) {
        const oi_block *b = &c->g->blocks.at[i];
        if (c->blocks[i].runs || oi_graph_find_block(c->g, b->name.text) != i)
            continue;
        oi_diag_warn(c->d, at_block(c, b, b->name.span), "W107",
                     "block '%s' never runs: no branch reaches it and it awaits nothing",
                     b->name.text);
    }
}

/* -- ends of blocks -- */

static bool ends(const oi_checker *c, const oi_node *n)
{
    return n->kind == OI_NODE_RETURN || (n->kind == OI_NODE_YIELD && n->block != c->entry);
}

/* Each block ends with one terminator (E005) and nothing follows it (E006). */
static void check_end(const oi_checker *c, uint32_t id)
{
    const oi_block *b = &c->g->blocks.at[id];
    for (size_t i = 0; i < b->nodes.n; i++) {
        const oi_node *n = &c->g->nodes.at[b->nodes.at[i]];
        if (!ends(c, n))
            continue;
        if (i + 1 == b->nodes.n)
            return;
        const oi_node *next = &c->g->nodes.at[b->nodes.at[i + 1]];
        oi_diag_error(c->d, oi_check_at(c, next, next->span), "E006",
                      "nothing may follow the %s of block '%s'", oi_node_table[n->kind].keyword,
                      b->name.text);
        oi_diag_note(c->d, oi_check_at(c, n, n->span), "the block ends here");
        return;
    }
    oi_diag_error(c->d, at_block(c, b, b->end), "E005", "block '%s' does not end with %s",
                  b->name.text, id == c->entry ? "return" : "return or yield");
    oi_diag_note(c->d, at_block(c, b, b->name.span), "block '%s' begins here", b->name.text);
}

/* Terminators stand outside loops (E007); only entry returns values (E039). */
static void terminator(const oi_checker *c, const oi_node *n)
{
    const char *word = oi_node_table[n->kind].keyword;
    if (n->parent != OI_NO_ID) {
        const oi_node *loop = &c->g->nodes.at[n->parent];
        oi_diag_error(c->d, oi_check_at(c, n, n->span), "E007", "%s inside a loop", word);
        oi_diag_note(c->d, oi_check_at(c, loop, loop->span), "loop '%s' begins here",
                     loop->name.text);
    }
    if (n->kind == OI_NODE_RETURN && n->as.list.names.n && n->block != c->entry) {
        oi_diag_error(c->d, oi_check_at(c, n, n->as.list.names.at[0].span), "E039",
                      "only block entry returns values");
        oi_diag_hint(c->d, "all variables are global: return; is enough");
    }
}

/* -- dep -- */

/* What dep calls a node: the op's own name whatever alias was written, or the kind. */
static const char *dep_name(const oi_node *n)
{
    if (n->kind != OI_NODE_OP)
        return oi_node_table[n->kind].target;
    const oi_op *row = oi_op_find(n->name.text);
    return row ? row->name : n->name.text;
}

static const char *dep_target(const char *name)
{
    const oi_op *row = oi_op_find(name);
    return row ? row->name : name;
}

static void no_target(const oi_checker *c, const oi_node *n, const oi_name *name, bool after,
                      const oi_ids *list)
{
    oi_diag_error(c->d, oi_check_at(c, n, name->span), "E038", "no %s node matches '%s' here",
                  after ? "earlier" : "later", name->text);
    oi_nearest near = oi_nearest_start(name->text);
    for (size_t i = 0; i < list->n; i++) {
        const oi_node *other = &c->g->nodes.at[list->at[i]];
        const char *is = dep_name(other);
        if (!is)
            continue;
        if (strcmp(is, dep_target(name->text)) == 0) {
            oi_diag_note(c->d, oi_check_at(c, other, other->span), "this one comes %s the dep",
                         after ? "after" : "before");
            return;
        }
        if ((after && other->position < n->position) || (!after && other->position > n->position))
            oi_nearest_offer(&near, is);
    }
    oi_check_hint(c, &near);
}

/* E038: after(T) needs an earlier node, before(U) a later one, in the same node list. Two sweeps
 * with the names seen so far keep this linear. */
static void deps(const oi_checker *c, const oi_ids *list)
{
    oi_map before = {.arena = c->a}, behind = {.arena = c->a};
    bool any = false;
    for (size_t i = 0; i < list->n && !oi_check_stop(c); i++) {
        const oi_node *n = &c->g->nodes.at[list->at[i]];
        if (n->kind == OI_NODE_DEP) {
            any = true;
            if (oi_map_get(&before, dep_target(n->as.dep.after.text)) == OI_MAP_NONE)
                no_target(c, n, &n->as.dep.after, true, list);
        } else if (dep_name(n)) {
            oi_map_put(&before, dep_name(n), 0);
        }
    }
    for (size_t i = list->n; any && i-- && !oi_check_stop(c);) {
        const oi_node *n = &c->g->nodes.at[list->at[i]];
        if (n->kind == OI_NODE_DEP) {
            if (oi_map_get(&behind, dep_target(n->as.dep.before.text)) == OI_MAP_NONE)
                no_target(c, n, &n->as.dep.before, false, list);
        } else if (dep_name(n)) {
            oi_map_put(&behind, dep_name(n), 0);
        }
    }
}

/* E004, at the first block there is. */
static void no_entry(const oi_checker *c)
{
    const oi_graph *g = c->g;
    oi_place at = {.file = g->origin ? g->origin : "graph", .pointer = "/blocks"};
    if (g->blocks.n)
        at = at_block(c, &g->blocks.at[0], g->blocks.at[0].name.span);
    else if (g->source.name)
        at = (oi_place){.source = &g->source, .span = {1, 1, 1}};
    oi_diag_error(c->d, at, "E004", "there is no block 'entry'");
    if (g->blocks.n)
        oi_diag_hint(c->d, "the block that runs first is called entry");
}

void oi_check_blocks(oi_checker *c)
{
    gather(c);
    if (c->entry == OI_NO_ID)
        no_entry(c);
    for (uint32_t i = 0; i < c->g->blocks.n && !oi_check_stop(c); i++) {
        check_end(c, i);
        deps(c, &c->g->blocks.at[i].nodes);
    }
    for (size_t i = 0; i < c->g->nodes.n && !oi_check_stop(c); i++) {
        const oi_node *n = &c->g->nodes.at[i];
        if (ends(c, n))
            terminator(c, n);
        else if (n->kind == OI_NODE_LOOP)
            deps(c, &n->as.loop.body);
        else if (n->kind == OI_NODE_BRANCH) {
            branch_target(c, n, &n->as.branch.then_block);
            branch_target(c, n, &n->as.branch.else_block);
        }
    }
    order_calls(c);
    call_depth(c);
    dead_blocks(c);
}

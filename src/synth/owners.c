/* owners.c: copies a block that entry and a consumer, or two consumers, call, because each consumer
 * may have its own tensors behind the same names. */
#include "synth/consumers.h"

typedef struct splitting {
    oi_arena *arena;
    OI_VEC(oi_pnode) nodes;
    OI_VEC(oi_pblock) blocks;
} splitting;

static uint32_t clone_node(splitting *s, uint32_t node, uint32_t block, uint32_t parent);

static oi_ids clone_list(splitting *s, const oi_ids *list, uint32_t block, uint32_t parent)
{
    oi_ids own = {0};
    for (size_t i = 0; i < list->n; i++) {
        uint32_t id = clone_node(s, list->at[i], block, parent);
        *OI_PUSH(s->arena, &own) = id;
    }
    return own;
}

static uint32_t clone_node(splitting *s, uint32_t node, uint32_t block, uint32_t parent)
{
    uint32_t id = (uint32_t)s->nodes.n;
    oi_node *source = oi_arena_alloc(s->arena, sizeof *source);
    oi_pnode *own = OI_PUSH(s->arena, &s->nodes);
    *own = s->nodes.at[node];
    *source = *own->source;
    own->source = source;
    source->block = block;
    source->parent = parent;
    if (source->kind == OI_NODE_LOOP)
        source->as.loop.body = clone_list(s, &source->as.loop.body, block, id);
    return id;
}

static uint32_t clone_block(splitting *s, uint32_t block)
{
    uint32_t id = (uint32_t)s->blocks.n;
    oi_block *source = oi_arena_alloc(s->arena, sizeof *source);
    oi_pblock *own = OI_PUSH(s->arena, &s->blocks);
    *own = s->blocks.at[block];
    *source = *own->source;
    source->nodes = clone_list(s, &source->nodes, id, OI_NO_ID);
    s->blocks.at[id].source = source;
    return id;
}

static void call_own(splitting *s, const oi_ids *list, const uint32_t *own)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_pnode *n = &s->nodes.at[list->at[i]];
        if (n->kind == OI_NODE_LOOP)
            call_own(s, &n->source->as.loop.body, own);
        if (n->kind != OI_NODE_BRANCH)
            continue;
        n->as.branch.then_block = own[n->as.branch.then_block];
        if (n->as.branch.else_block != OI_NO_ID)
            n->as.branch.else_block = own[n->as.branch.else_block];
    }
}

/* What the consumer calls and somebody before it does, too, becomes its own. */
static void split_from(splitting *s, oi_uses *reached, uint32_t consumer, bool *taken,
                       uint32_t *own)
{
    const uint32_t n = reached->p->n_blocks;
    oi_uses_clear(reached);
    oi_uses_of_block(reached, consumer);
    for (uint32_t b = 0; b < n; b++)
        own[b] = oi_uses_saw(reached, b) && taken[b] ? clone_block(s, b) : b;
    for (uint32_t b = 0; b < n; b++) {
        if (oi_uses_saw(reached, b))
            call_own(s, &s->blocks.at[own[b]].source->nodes, own);
        taken[b] |= oi_uses_saw(reached, b);
    }
}

const oi_program *oi_program_split(oi_arena *a, const oi_program *p)
{
    splitting s = {.arena = a};
    if (p->n_consumers == 0)
        return p;
    for (size_t i = 0; i < p->graph->nodes.n; i++)
        *OI_PUSH(a, &s.nodes) = p->nodes[i];
    for (uint32_t b = 0; b < p->n_blocks; b++)
        *OI_PUSH(a, &s.blocks) = p->blocks[b];
    oi_uses uses = oi_uses_new(a, p);
    bool *taken = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *taken);
    uint32_t *own = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *own);
    oi_uses_of_block(&uses, p->entry);
    for (uint32_t b = 0; b < p->n_blocks; b++)
        taken[b] = oi_uses_saw(&uses, b);
    for (uint32_t k = 0; k < p->n_consumers; k++)
        split_from(&s, &uses, p->consumers[k], taken, own);
    oi_program *split = oi_arena_alloc(a, sizeof *split);
    *split = *p;
    split->nodes = s.nodes.at;
    split->blocks = s.blocks.at;
    split->n_blocks = (uint32_t)s.blocks.n;
    return split;
}

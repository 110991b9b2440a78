/* freeze.c: the plan that passes leave: what emitters and the checker read. */
#include "synth/pipeline.h"

/* -- what statements refer to -- */

typedef struct referring {
    oi_unit *u;
    OI_VEC(oi_stmt_use) uses;
    OI_VEC(uint32_t) indices;
} referring;

static void add_index(referring *r, uint32_t index)
{
    for (size_t i = 0; i < r->indices.n; i++)
        if (r->indices.at[i] == index)
            return;
    *OI_PUSH(r->u->arena, &r->indices) = index;
}

static void add_use(void *ctx, const oi_mention *m)
{
    referring *r = ctx;
    if (m->index != OI_NO_ID)
        add_index(r, m->index);
    if (m->tensor == OI_NO_ID)
        return;
    for (size_t i = 0; i < r->uses.n; i++) {
        oi_stmt_use *own = &r->uses.at[i];
        if (own->tensor != m->tensor || own->is_length != m->is_length ||
            own->is_operand != (m->port != NULL))
            continue;
        own->reads |= m->reads;
        own->writes |= m->writes;
        return;
    }
    *OI_PUSH(r->u->arena, &r->uses) =
        (oi_stmt_use){m->tensor, m->reads, m->writes, m->is_length, m->port != NULL};
}

static void set_range(oi_unit *u, oi_stmt *s)
{
    const oi_pipeline t = oi_pipeline_of(u, s);
    const int64_t step = t.schedules[t.n - 1].step;
    s->range = (oi_row_range){(t.producers[t.n - 1].rows + step - 1) / step, oi_pipeline_first(&t),
                              oi_pipeline_end(&t)};
}

static void refer(oi_unit *u, uint32_t graph, oi_stmts *list, oi_sync *sync)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        referring r = {.u = u};
        oi_stmt_mentions(u, graph, s, add_use, &r);
        s->uses = r.uses.at;
        s->n_uses = (uint32_t)r.uses.n;
        s->indices = r.indices.at;
        s->n_indices = (uint32_t)r.indices.n;
        if (s->kind == OI_STMT_PIPELINE && s->is_parallel)
            set_range(u, s);
        sync->first_enters |= s->barrier && s->first_enters && !s->is_parallel;
        sync->barrier |= s->barrier && !s->first_enters;
        sync->chunks |= s->chunks > 0;
        refer(u, graph, &s->body, sync);
    }
}

void oi_unit_refer(oi_unit *u)
{
    oi_sync none = {.barrier = false};
    u->sync = none;
    for (uint32_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++) {
            oi_sblock *block = &u->graphs.at[g].blocks[b];
            refer(u, g, &block->stmts, block->is_used && block->is_parallel ? &u->sync : &none);
        }
}

/* -- the plan -- */

void oi_unit_freeze(const oi_unit *u, oi_plan *out)
{
    *out = (oi_plan){.name = u->name,
                     .device = u->device,
                     .target = u->target,
                     .can = u->can,
                     .host_lang = u->host_lang,
                     .per_node = u->per_node,
                     .timed = u->timed,
                     .embeds = u->embeds,
                     .is_parallel = oi_unit_is_parallel(u),
                     .align = u->can.alignment,
                     .graphs = {u->graphs.at, u->graphs.n},
                     .tensors = {u->tensors.at, u->tensors.n},
                     .stores = {u->stores.at, u->stores.n},
                     .kernels = {u->kernels.at, u->kernels.n},
                     .undo = u->undo,
                     .sync = u->sync,
                     .weights_bytes = u->weights_bytes,
                     .state_bytes = u->state_bytes,
                     .arena_bytes = u->arena_bytes,
                     .arena_bound = u->arena_bound,
                     .arena_alive = u->arena_alive,
                     .notes = {u->notes.at, u->notes.n},
                     .renamed = {u->renamed.at, u->renamed.n},
                     .arena = u->arena,
                     .diag = u->diag};
}

/* places.c: names for tensors of working memory and weights inside the functions of a step:
 * pointers, defined at the top of the function that uses them. */
#include "emit/c/c.h"

#include <inttypes.h>

/* Names of the current graph that are no places: views, loop indices. */
static void collect_called(oi_cprog *c)
{
    if (c->called_graph == c->graph + 1)
        return;
    c->called = (oi_map){.arena = c->arena};
    c->called_graph = c->graph + 1;
    for (size_t i = 0; i < c->p->tensors.n; i++)
        if (c->p->tensors.at[i].space == OI_SPACE_VIEW)
            oi_map_set(&c->called, oi_c_lent(c, &c->p->tensors.at[i]), 1);
    for (uint32_t i = 0; i < oi_c_program(c)->n_indices; i++)
        oi_map_set(&c->called, oi_c_index(c, i), 1);
}

static bool is_taken(const oi_cprog *c, const char *name)
{
    return oi_map_get(&c->places->names, name) != OI_MAP_NONE ||
           oi_map_get(&c->called, name) != OI_MAP_NONE;
}

static const char *numbered(oi_cprog *c, const char *stem, uint32_t n)
{
    return n == 1 ? oi_arena_printf(c->arena, OI_FROM_GRAPH "%s", stem)
                  : oi_arena_printf(c->arena, OI_FROM_GRAPH "%s_%u", stem, n);
}

/* The graph's name, or the nearest free one. */
const char *oi_c_place(oi_cprog *c, uint32_t tensor)
{
    oi_cplaces *places = c->places;
    const oi_tensor *t = &c->p->tensors.at[tensor];
    const oi_pvar *var = t->var ? t->var : t->origin;
    places->of.arena = places->names.arena = places->next.arena = c->arena;
    uint32_t at = oi_map_get(&places->of, t->name);
    if (at != OI_MAP_NONE)
        return places->at[at].name;
    collect_called(c);
    const char *stem = var ? var->name : t->label ? t->label : t->name, *name;
    uint32_t n = oi_map_get(&places->next, stem);
    for (n = n == OI_MAP_NONE ? 1 : n; is_taken(c, name = numbered(c, stem, n)); n++)
        ;
    oi_map_set(&places->next, stem, n + 1);
    oi_map_set(&places->names, name, 1);
    oi_map_set(&places->of, t->name, (uint32_t)places->n);
    *OI_PUSH(c->arena, places) = (oi_cplace){tensor, name};
    return name;
}

const char *oi_c_place_lines(oi_cprog *c)
{
    oi_buf b = {0};
    for (size_t i = 0; i < c->places->n; i++) {
        const oi_tensor *t = &c->p->tensors.at[c->places->at[i].tensor];
        bool fixed = t->space == OI_SPACE_WEIGHTS;
        const char *type = oi_c_type(t->dtype), *constant = fixed ? "const " : "";
        if (c->form->device) {
            oi_buf_puts(
                &b, c->form->device->place_line(c, c->places->at[i].tensor, c->places->at[i].name));
            continue;
        }
        if (t->is_private && c->form->private_copy) {
            oi_buf_puts(&b, c->form->private_copy(c, t, c->places->at[i].name));
            continue;
        }
        if (t->is_private) {
            oi_buf_printf(&b,
                          "    OI_ALIGNED(%u) %s %s[%" PRIu64 "]; /* private to each thread */\n",
                          (unsigned)c->p->align, type, c->places->at[i].name,
                          t->size_bytes / (uint64_t)(oi_dtype_bits(t->dtype) / 8));
            continue;
        }
        oi_buf_printf(&b, "    %s%s *const %s = (%s%s *)(s->%s + %" PRIu64 ");\n", constant, type,
                      c->places->at[i].name, constant, type, fixed ? "oi_weights" : "oi_arena",
                      t->offset);
    }
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

/* places.c: inside the functions of a step, tensors of the working memory and weights go by their
 * names: pointers, defined at the top of the function that uses them. */
#include "emit/c/c.h"

#include <inttypes.h>

/* Whether the function has something else of that name from the graph. */
static bool is_called_so(oi_cprog *c, const char *name)
{
    for (size_t i = 0; i < c->places->n; i++)
        if (strcmp(c->places->at[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < c->u->tensors.n; i++)
        if (c->u->tensors.at[i].space == OI_SPACE_LENT &&
            strcmp(oi_c_lent(c, &c->u->tensors.at[i]), name) == 0)
            return true;
    const oi_program *p = oi_c_program(c);
    for (uint32_t i = 0; i < p->n_indices; i++)
        if (strcmp(oi_c_index(c, i), name) == 0)
            return true;
    return false;
}

/* What the graph calls it, or as near as possible. */
const char *oi_c_place(oi_cprog *c, uint32_t tensor)
{
    const oi_tensor *t = &c->u->tensors.at[tensor];
    const oi_pvar *var = t->var ? t->var : t->origin;
    for (size_t i = 0; i < c->places->n; i++)
        if (c->places->at[i].tensor == tensor)
            return c->places->at[i].name;
    const char *stem = var ? var->name : t->label ? t->label : t->name;
    const char *name = oi_arena_printf(c->arena, OI_FROM_GRAPH "%s", stem);
    for (unsigned n = 2; is_called_so(c, name); n++)
        name = oi_arena_printf(c->arena, OI_FROM_GRAPH "%s_%u", stem, n);
    *OI_PUSH(c->arena, c->places) = (oi_cplace){tensor, name};
    return name;
}

const char *oi_c_place_lines(oi_cprog *c)
{
    oi_buf b = {0};
    for (size_t i = 0; i < c->places->n; i++) {
        const oi_tensor *t = &c->u->tensors.at[c->places->at[i].tensor];
        bool fixed = t->space == OI_SPACE_WEIGHTS;
        const char *type = oi_c_type(t->dtype), *constant = fixed ? "const " : "";
        if (t->is_own) {
            oi_buf_printf(&b, "    OI_ALIGNED(%u) %s %s[%" PRIu64 "]; /* of each thread */\n",
                          (unsigned)oi_unit_align(c->u), type, c->places->at[i].name,
                          t->size_bytes / (uint64_t)(oi_dtype_bits(t->dtype) / 8));
            continue;
        }
        oi_buf_printf(&b, "    %s%s *const %s = (%s%s *)(s->%s + %" PRIu64 ");\n", constant, type,
                      c->places->at[i].name, constant, type, fixed ? "oi_weights" : "oi_arena",
                      t->offset);
    }
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

/* formula.c: prints numbers that depend on lengths as expressions, with operators that all C-like
 * languages share and one helper. */
#include "emit/emit.h"

#include <inttypes.h>

static void put_terms(oi_buf *b, const oi_formula *f, oi_spell_scalar *spell, void *ctx)
{
    for (uint32_t t = 0; t < f->n_terms; t++) {
        int64_t factor = f->terms[t].factor;
        uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
        oi_buf_puts(b, t == 0 ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ");
        for (uint32_t i = 0; i < f->terms[t].n; i++)
            oi_buf_printf(b, "%s%s", i ? " * " : "", spell(ctx, f->terms[t].of[i]));
        if (size != 1)
            oi_buf_printf(b, " * %" PRIu64, size);
    }
    if (f->base || f->n_terms == 0) {
        uint64_t size = f->base < 0 ? 0 - (uint64_t)f->base : (uint64_t)f->base;
        oi_buf_printf(b, "%s%" PRIu64,
                      f->n_terms ? (f->base < 0 ? " - " : " + ") : (f->base < 0 ? "-" : ""), size);
    }
}

/* a != 1 ? a : b != 1 ? b : c */
static void put_pick(oi_buf *b, const oi_formula *f, oi_spell_scalar *spell, void *ctx)
{
    for (uint32_t i = 0; i < f->n_pick; i++) {
        const char *own = spell(ctx, f->pick[i]);
        if (i + 1 < f->n_pick)
            oi_buf_printf(b, "%s != 1 ? %s : ", own, own);
        else
            oi_buf_puts(b, own);
    }
}

const char *oi_formula_text(oi_arena *a, const oi_formula *f, oi_spell_scalar *spell, void *ctx)
{
    oi_buf b = {0};
    if (f->n_pick) {
        put_pick(&b, f, spell, ctx);
        return oi_buf_to_arena(&b, a);
    }
    put_terms(&b, f, spell, ctx);
    const char *text = oi_buf_to_arena(&b, a);
    if (f->by != 1)
        text = oi_arena_printf(a, "oi_floor_quotient(%s, %" PRId64 ")", text, f->by);
    if (f->has_least)
        text = oi_arena_printf(a, "(%s > %" PRId64 " ? %s : %" PRId64 ")", text, f->least, text,
                               f->least);
    if (f->has_most)
        text = oi_arena_printf(a, "(%s < %" PRId64 " ? %s : %" PRId64 ")", text, f->most, text,
                               f->most);
    if (f->unless_one != OI_NO_ID)
        text = oi_arena_printf(a, "%s == 1 ? 0 : %s", spell(ctx, f->unless_one), text);
    return text;
}

bool oi_formula_is_length(const oi_formula *f, uint32_t *scalar)
{
    if (f->n_pick > 1 || (!f->n_pick && (f->n_terms != 1 || f->terms[0].factor != 1 ||
                                         f->terms[0].n != 1 || f->base || f->by != 1 ||
                                         f->has_least || f->has_most || f->unless_one != OI_NO_ID)))
        return false;
    *scalar = f->n_pick ? f->pick[0] : f->terms[0].of[0];
    return true;
}

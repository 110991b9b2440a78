/* fit.c: checks that the device can hold the program, and reports where the memory goes if not. */
#include "emit/emit.h"

#include <inttypes.h>

#define N_LARGEST 5 /* tensors named in a refusal: enough to see the cause */

static bool is_ram(const oi_tensor *t)
{
    return t->space == OI_SPACE_INPUT || t->space == OI_SPACE_OUTPUT ||
           t->space == OI_SPACE_STATE || t->space == OI_SPACE_ARENA;
}

/* The largest tensors of the exceeded memory, in descending order; returns how many. */
static size_t find_largest(const oi_plan *u, bool ram, uint32_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (ram ? !is_ram(t) : t->space != OI_SPACE_WEIGHTS || t->view)
            continue;
        size_t at = n;
        while (at > 0 && oi_tensor_bytes(&u->tensors.at[out[at - 1]]) < oi_tensor_bytes(t))
            at--;
        if (at == N_LARGEST)
            continue;
        n = n < N_LARGEST ? n + 1 : n;
        memmove(out + at + 1, out + at, (n - 1 - at) * sizeof *out);
        out[at] = (uint32_t)i;
    }
    return n;
}

static const char *shape_text(const oi_plan *u, const oi_tensor *t)
{
    oi_buf b = {0};
    oi_buf_printf(&b, "%s[", oi_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++)
        oi_buf_printf(&b, "%s%" PRId64, d ? ", " : "", t->dims[d]);
    oi_buf_puts(&b, "]");
    return oi_buf_to_arena(&b, u->arena);
}

static void note_largest(const oi_plan *u, const uint32_t *largest, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const oi_tensor *t = &u->tensors.at[largest[i]];
        const oi_graph *g = u->graphs.at[t->graph].program->graph;
        oi_place at = {.file = g->origin ? g->origin : "graph"};
        if (g->source.name && t->var && t->var->symbol)
            at = (oi_place){.source = &g->source, .span = t->var->symbol->span};
        oi_diag_note(u->diag, at, "%" PRIu64 " bytes: '%s' %s", oi_tensor_bytes(t), t->name,
                     shape_text(u, t));
    }
}

static oi_status refuse(const oi_plan *u, const oi_certificate *c, bool ram, uint64_t needs,
                        uint64_t has)
{
    uint32_t largest[N_LARGEST + 1];
    size_t n = find_largest(u, ram, largest);
    const oi_tensor *t = n ? &u->tensors.at[largest[0]] : NULL;
    oi_span at = {0};
    if (t && t->var && t->var->symbol)
        at = t->var->symbol->span;
    oi_status status =
        oi_plan_refuse(u, t ? t->graph : 0, NULL, at, "E062",
                       "the program needs %" PRIu64 " bytes of %s, '%s' has %" PRIu64, needs,
                       ram ? "RAM" : "read-only memory", u->target->name, has);
    oi_place plan = {.file = u->name};
    oi_diag_note(u->diag, plan,
                 "RAM %" PRIu64 ": inputs and outputs %" PRIu64 ", state %" PRIu64
                 ", working memory %" PRIu64 ", to take a step back %" PRIu64 ", stack %" PRIu64
                 "; weights %" PRIu64,
                 c->ram_bytes, c->io_bytes, c->state_bytes, c->arena_bytes, c->undo_bytes,
                 c->stack_bytes, c->weights_bytes);
    note_largest(u, largest, n);
    return status;
}

oi_status oi_fit_check(const oi_plan *u, const oi_certificate *c)
{
    const oi_caps *can = &u->can;
    uint64_t all = c->ram_bytes + c->weights_bytes;
    if (can->has_rom && c->weights_bytes > can->rom_bytes)
        return refuse(u, c, false, c->weights_bytes, can->rom_bytes);
    if (can->has_rom && c->ram_bytes > can->ram_bytes)
        return refuse(u, c, true, c->ram_bytes, can->ram_bytes);
    if (can->stack_bytes && c->is_measured && c->measured.program_stack_bytes > can->stack_bytes)
        return oi_plan_refuse(u, 0, NULL, (oi_span){0}, "E062",
                              "the program needs up to %" PRIu64
                              " bytes of stack, mcu.stack_bytes of '%s' is %" PRIu64,
                              c->measured.program_stack_bytes, u->target->name, can->stack_bytes);
    if (!can->has_rom && can->ram_bytes && all > can->ram_bytes)
        return refuse(u, c, c->ram_bytes > c->weights_bytes, all, can->ram_bytes);
    return OI_OK;
}

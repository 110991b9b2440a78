/* undo.c: rollback of a failed step. The persistent state is restored from an undo log, if the log
 * is bounded and smaller than the state; else from a copy made before the step. */
#include "emit/c/c.h"

#include <inttypes.h>

static const char log_text[] =
    "/* Logs n bytes that are about to change, for the rollback of a failed step. */\n"
    "static void oi_log_undo(NAME *s, void *at, size_t n)\n"
    "{\n"
    "    const uint64_t head[2] = {(uint64_t)((unsigned char *)at - (unsigned char "
    "*)&s->oi_state_data), "
    "n};\n"
    "    memcpy(s->oi_undo_log + s->oi_undo_used, at, n);\n"
    "    s->oi_undo_used += (n + 7) / 8 * 8;\n"
    "    memcpy(s->oi_undo_log + s->oi_undo_used, head, sizeof head);\n"
    "    s->oi_undo_used += sizeof head;\n"
    "}\n\n"
    "static void oi_rollback(NAME *s)\n"
    "{\n"
    "    while (s->oi_undo_used > 0) {\n"
    "        uint64_t head[2];\n"
    "        s->oi_undo_used -= sizeof head;\n"
    "        memcpy(head, s->oi_undo_log + s->oi_undo_used, sizeof head);\n"
    "        s->oi_undo_used -= (head[1] + 7) / 8 * 8;\n"
    "        memcpy((unsigned char *)&s->oi_state_data + head[0], s->oi_undo_log + "
    "s->oi_undo_used, head[1]);\n"
    "    }\n"
    "}\n\n";

void oi_c_undo_functions(oi_cprog *c)
{
    if (c->undo == OI_UNDO_LOG)
        oi_out_named(&c->out, log_text, c->name);
}

/* At least the size of the state struct, whatever the padding. */
static uint64_t keep_size(const oi_unit *u)
{
    const uint64_t align = oi_unit_align(u);
    uint64_t n = 0;
    for (size_t i = 0; i < u->stores.n; i++) {
        const oi_store_var *v = &u->stores.at[i];
        uint64_t marks = 1;
        for (uint32_t a = 0; a < v->n_table; a++)
            marks *= (uint64_t)v->most[a];
        n += oi_tensor_bytes(&u->tensors.at[v->tensor]) + 2 * align + (v->grows ? 8 * v->rank : 0) +
             (v->has_marks ? marks : 0);
    }
    return (n / align + 2) * align;
}

/* Blocks are printed once on trial, to learn whether a step can fail and how much it changes. */
void oi_c_undo_plan(oi_cprog *c)
{
    c->keep_bytes = keep_size(c->u);
    c->undo = OI_UNDO_LOG;
    for (c->graph = 0; c->graph < c->u->graphs.n; c->graph++) {
        uint64_t before = c->log_bytes;
        c->log_bytes = 0;
        oi_c_blocks(c);
        c->log_bytes = c->log_bytes > before ? c->log_bytes : before;
    }
    oi_buf_free(&c->out.buf);
    c->out = (oi_out){0};
    if (!c->fails || c->log_bytes == 0)
        c->undo = OI_UNDO_NONE;
    else if (c->log_bytes >= c->keep_bytes)
        c->undo = OI_UNDO_COPY;
    c->log_bytes = oi_unit_aligned(c->u, c->log_bytes);
}

void oi_c_undo_members(oi_cprog *c, oi_out *o)
{
    if (c->undo == OI_UNDO_NONE)
        return;
    oi_out_line(o, "/* for the rollback of a failed step */");
    oi_out_line(o, "OI_ALIGNED(%u) unsigned char oi_undo_log[%" PRIu64 "];",
                (unsigned)oi_unit_align(c->u),
                c->undo == OI_UNDO_LOG ? c->log_bytes : c->keep_bytes);
    c->certificate.undo_bytes = c->undo == OI_UNDO_LOG ? c->log_bytes : c->keep_bytes;
    oi_c_count(c, oi_unit_align(c->u), c->certificate.undo_bytes);
    if (c->undo == OI_UNDO_LOG) {
        oi_out_line(o, "size_t oi_undo_used;");
        oi_c_count(c, oi_c_pointer_bytes(c), oi_c_pointer_bytes(c));
    }
}

/* undo.c: prints the rollback of a failed step, which the plan has decided (synth/undo.c). */
#include "emit/c/c.h"

#include <inttypes.h>

static const char log_text[] =
    "/* Logs n bytes that are about to change, for the rollback of a failed step. */\n"
    "static void oi_log_undo(NAME *s, void *at, size_t n)\n"
    "{\n"
    "    const size_t head[2] = {(size_t)((unsigned char *)at - (unsigned char "
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
    "        size_t head[2];\n"
    "        s->oi_undo_used -= sizeof head;\n"
    "        memcpy(head, s->oi_undo_log + s->oi_undo_used, sizeof head);\n"
    "        s->oi_undo_used -= (head[1] + 7) / 8 * 8;\n"
    "        memcpy((unsigned char *)&s->oi_state_data + head[0], s->oi_undo_log + "
    "s->oi_undo_used, head[1]);\n"
    "    }\n"
    "}\n\n";

void oi_c_undo_functions(oi_cprog *c)
{
    if (c->p->undo.kind == OI_UNDO_LOG)
        oi_out_named(&c->out, log_text, c->name);
}

void oi_c_undo_members(oi_cprog *c, oi_out *o)
{
    const oi_undo *undo = &c->p->undo;
    if (undo->kind == OI_UNDO_NONE)
        return;
    oi_out_line(o, "/* for the rollback of a failed step */");
    oi_out_line(o, "OI_ALIGNED(%u) unsigned char oi_undo_log[%" PRIu64 "];", (unsigned)c->p->align,
                undo->bytes);
    c->certificate.undo_bytes = undo->bytes;
    oi_c_count(c, c->p->align, undo->bytes);
    if (undo->kind == OI_UNDO_LOG) {
        oi_out_line(o, "size_t oi_undo_used;");
        oi_c_count(c, oi_c_pointer_bytes(c), oi_c_pointer_bytes(c));
    }
}

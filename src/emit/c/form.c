/* form.c: C's own form of steps: a worker is one thread. */
#include "emit/c/c.h"

const oi_cform oi_cform_c = {.function = "static",
                             .apart = "restrict ",
                             .overflow = "__builtin_",
                             .has_team = true,
                             .copy_out = "memcpy(at + 40, &s->oi_state_data, OI_STATE_BYTES);",
                             .copy_in = "memcpy(&s->oi_state_data, at + 40, OI_STATE_BYTES);",
                             .lang = &oi_lang_c,
                             .lang32 = &oi_lang_c32};

void oi_c_begin_write(oi_cprog *c)
{
    if (c->form->begin_write)
        c->form->begin_write(c);
}

void oi_c_end_write(oi_cprog *c)
{
    if (c->form->end_write)
        c->form->end_write(c);
}

void oi_c_wait(oi_cprog *c)
{
    if (c->form->wait)
        c->form->wait(c);
}

/* written.c: how far a device's default_precision takes a program from the graph as written: a
 * second simulator of every graph takes the same steps on the same inputs, and goes its own way. */
#include "verify/verify.h"

#include <math.h>

oi_status oi_written_new(oi_work *w, oi_sim_options options)
{
    oi_trial *t = &w->trial;
    options.precision = OI_NONE;
    for (size_t i = 0; i < t->n_graphs; i++)
        t->lowered.n_ops += oi_sim_n_lowered(t->graphs[i].sim);
    t->lowered.name = "";
    for (size_t i = 0; t->lowered.n_ops && i < t->n_graphs; i++) {
        oi_verify_graph *g = &t->graphs[i];
        /* what is wrong with the graph has been said: only memory can be missing */
        if (oi_sim_new(w->model, w->graphs[i].graph, &options, &g->written_sim, NULL) != OI_OK)
            return oi_diag_env(w->diag, g->name, "out of memory");
        OI_TRY(i ? oi_exec_new_shared(g->written_sim, oi_work_beside(t, i, g->written_sim)->written,
                                      &g->written, w->diag)
                 : oi_exec_new(g->written_sim, &g->written, w->diag));
    }
    return OI_OK;
}

static double greatest(const oi_view *v)
{
    double most = 0;
    for (uint64_t e = 0; e < v->n_elements; e++) {
        double x = fabs(oi_element_f64(v->dtype, v->data, e));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

static void judge_floats(oi_trial *t, const char *name, uint64_t step, const oi_view *want,
                         const oi_view *got)
{
    oi_verify_lowered *l = &t->lowered;
    double worst = 0, most = greatest(want);
    for (uint64_t e = 0; e < want->n_elements; e++) {
        double a = oi_element_f64(want->dtype, want->data, e);
        double b = oi_element_f64(got->dtype, got->data, e), d = fabs(a - b);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        worst = isnan(d) ? INFINITY : d > worst ? d : worst;
    }
    double share = most > 0 ? worst / most : worst > 0 ? INFINITY : 0;
    if (*l->name && share <= l->worst)
        return;
    l->worst = share;
    l->greatest = most;
    l->name = oi_arena_text(t->arena, name, strlen(name));
    l->step = step;
}

void oi_written_step(oi_trial *t, const oi_verify_graph *g, uint64_t step)
{
    const char *name;
    oi_view want, got;
    if (!g->written || oi_step(g->written, NULL) != OI_OK)
        return;
    for (size_t i = 0; oi_output(g->written, i, &name, &want, NULL) == OI_OK; i++) {
        if (oi_fetch(g->exec, name, &got, NULL) != OI_OK || got.n_elements != want.n_elements)
            continue; /* a length that hangs on values */
        if (oi_dtype_is_float(want.dtype)) {
            judge_floats(t, name, step, &want, &got);
            continue;
        }
        t->lowered.n_others += want.n_elements;
        for (uint64_t e = 0; e < want.n_elements; e++)
            t->lowered.n_different += oi_element_bits(want.dtype, want.data, e) !=
                                      oi_element_bits(got.dtype, got.data, e);
    }
}

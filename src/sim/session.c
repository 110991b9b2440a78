/* session.c: many graphs over one model and one memory that lasts: a simulator and an executor per
 * graph, made when it first runs. */
#include "sim/sim.h"

#include <stdlib.h>

typedef struct member {
    const oi_graph *graph;
    oi_sim *sim;
    oi_exec *exec;
} member;

struct oi_session {
    oi_model *model;
    oi_sim_options options;
    oi_size *sizes; /* copies */
    char *names;
    member *members;
    size_t n, cap;
    member *last; /* which ran last; NULL before the first step */
};

static bool copy_sizes(oi_session *s, const oi_sim_options *o)
{
    size_t room = 1;
    for (size_t i = 0; i < o->n_sizes; i++)
        room += strlen(o->sizes[i].name) + 1;
    s->sizes = calloc(o->n_sizes + 1, sizeof *s->sizes);
    s->names = malloc(room);
    if (!s->sizes || !s->names)
        return false;
    char *name = s->names;
    for (size_t i = 0; i < o->n_sizes; i++) {
        size_t n = strlen(o->sizes[i].name) + 1;
        memcpy(name, o->sizes[i].name, n);
        s->sizes[i] = (oi_size){name, o->sizes[i].value};
        name += n;
    }
    s->options.sizes = s->sizes;
    return true;
}

oi_status oi_session_new(oi_model *model, const oi_sim_options *options, oi_session **out,
                         oi_diag *diag)
{
    oi_session *s = calloc(1, sizeof *s);
    if (s)
        s->model = model;
    if (s && options)
        s->options = *options;
    if (!s || !copy_sizes(s, &s->options)) {
        oi_session_free(s);
        return oi_diag_env(diag, "session", "out of memory");
    }
    *out = s;
    return OI_OK;
}

void oi_session_free(oi_session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        oi_exec_free(s->members[i].exec);
        oi_sim_free(s->members[i].sim);
    }
    free(s->members);
    free(s->sizes);
    free(s->names);
    free(s);
}

static bool make_room(oi_session *s)
{
    if (s->n < s->cap)
        return true;
    size_t cap = s->cap ? 2 * s->cap : 4, last = s->last ? (size_t)(s->last - s->members) : 0;
    member *more = realloc(s->members, cap * sizeof *more);
    if (!more)
        return false;
    s->last = s->last ? more + last : NULL;
    s->members = more;
    s->cap = cap;
    return true;
}

static oi_status find(oi_session *s, const oi_graph *graph, member **out, oi_diag *diag)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->members[i].graph == graph) {
            *out = &s->members[i];
            return OI_OK;
        }
    if (!make_room(s))
        return oi_diag_env(diag, "session", "out of memory");
    member *m = &s->members[s->n];
    *m = (member){.graph = graph};
    OI_TRY(oi_sim_new(s->model, graph, &s->options, &m->sim, diag));
    oi_status status = s->n ? oi_exec_new_shared(m->sim, s->members[0].exec, &m->exec, diag)
                            : oi_exec_new(m->sim, &m->exec, diag);
    if (status != OI_OK) {
        oi_sim_free(m->sim);
        return status;
    }
    s->n++;
    *out = m;
    return OI_OK;
}

oi_status oi_session_run_step(oi_session *s, const oi_graph *graph, const oi_named_view *inputs,
                              size_t n_inputs, oi_diag *diag)
{
    member *m = NULL;
    OI_TRY(find(s, graph, &m, diag));
    for (size_t i = 0; i < n_inputs; i++)
        OI_TRY(oi_insert(m->exec, inputs[i].name, &inputs[i].value, diag));
    s->last = m;
    return oi_step(m->exec, diag);
}

oi_status oi_session_fetch(oi_session *s, const char *name, oi_view *out, oi_diag *diag)
{
    if (!s->last)
        return oi_diag_error(diag, (oi_place){.file = "session"}, "", "nothing has run yet");
    return oi_fetch(s->last->exec, name, out, diag);
}

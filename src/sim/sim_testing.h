/* sim_testing.h: what the tests of the executor share: a graph, a model in memory, steps, values.
 */
#ifndef SIM_TESTING_H
#define SIM_TESTING_H

#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct rig {
    void *bytes;
    oi_model *model;
    oi_graph *graph;
    oi_sim *sim;
    oi_exec *exec;
    oi_diag *diag;
} rig;

/* Fills the model; NULL for a graph that needs none. */
typedef void rig_fill(oi_writer *w);

static inline void rig_show(const rig *r)
{
    for (size_t i = 0; i < oi_diag_count(r->diag); i++) {
        oi_message m = oi_diag_at(r->diag, i);
        print_error("%s:%u:%u: %s: %s\n", m.file, m.line, m.col, m.code, m.text);
    }
}

static inline void rig_must(rig *r, oi_status status)
{
    if (status == OI_OK)
        return;
    rig_show(r);
    fail_msg("failed with status %d", (int)status);
}

static inline void rig_model(rig *r, rig_fill *fill)
{
    size_t n;
    oi_writer *w = oi_writer_new();
    fill(w);
    rig_must(r, oi_writer_finish_memory(w, &r->bytes, &n, r->diag));
    oi_writer_free(w);
    rig_must(r, oi_model_open_memory(r->bytes, n, NULL, &r->model, r->diag));
}

static inline oi_status rig_try(rig *r, rig_fill *fill, const char *text,
                                const oi_sim_options *options)
{
    *r = (rig){.diag = oi_diag_new()};
    if (fill)
        rig_model(r, fill);
    rig_must(r, oi_graph_parse(text, strlen(text), "test.oi", &r->graph, r->diag));
    oi_status status = oi_sim_new(r->model, r->graph, options, &r->sim, r->diag);
    return status == OI_OK ? oi_exec_new(r->sim, &r->exec, r->diag) : status;
}

static inline void rig_open(rig *r, rig_fill *fill, const char *text, const oi_sim_options *options)
{
    rig_must(r, rig_try(r, fill, text, options));
}

static inline void rig_close(rig *r)
{
    oi_exec_free(r->exec);
    oi_sim_free(r->sim);
    oi_graph_free(r->graph);
    oi_model_close(r->model);
    oi_free(r->bytes);
    oi_diag_free(r->diag);
}

static inline void rig_step(rig *r)
{
    rig_must(r, oi_step(r->exec, r->diag));
}

static inline bool rig_has_code(const rig *r, const char *code)
{
    for (size_t i = 0; i < oi_diag_count(r->diag); i++)
        if (strcmp(oi_diag_at(r->diag, i).code, code) == 0)
            return true;
    return false;
}

/* The step fails with this code, at this line. */
static inline void rig_refuse(rig *r, const char *code, uint32_t line)
{
    oi_diag_clear(r->diag);
    if (oi_step(r->exec, r->diag) != OI_ERR_INPUT || oi_diag_count(r->diag) == 0)
        fail_msg("the step did not fail");
    oi_message m = oi_diag_at(r->diag, 0);
    if (strcmp(m.code, code) != 0 || m.line != line) {
        rig_show(r);
        fail_msg("wanted %s at line %u", code, line);
    }
    oi_diag_clear(r->diag);
}

static inline void rig_insert(rig *r, const char *name, oi_dtype t, const void *data, uint64_t n)
{
    rig_must(r, oi_insert_flat(r->exec, name, t, data, n, r->diag));
}

static inline void expect_view(const char *name, const oi_view *v, uint32_t rank,
                               const uint64_t *dims, const double *values)
{
    bool same = v->rank == rank;
    for (uint32_t i = 0; same && i < rank; i++)
        same = v->dims[i] == dims[i];
    for (uint64_t i = 0; same && values && i < v->n_elements; i++)
        same = oi_element_f64(v->dtype, v->data, i) == values[i];
    if (same)
        return;
    print_error("%s: rank %u [", name, v->rank);
    for (uint32_t i = 0; i < v->rank; i++)
        print_error(" %llu", (unsigned long long)v->dims[i]);
    print_error(" ] =");
    for (uint64_t i = 0; i < v->n_elements && i < 64; i++)
        print_error(" %g", oi_element_f64(v->dtype, v->data, i));
    print_error("\n");
    fail_msg("%s is not what was wanted", name);
}

static inline void rig_expect(rig *r, const char *name, uint32_t rank, const uint64_t *dims,
                              const double *values)
{
    oi_view v;
    rig_must(r, oi_fetch(r->exec, name, &v, r->diag));
    expect_view(name, &v, rank, dims, values);
}

#define DIMS(...)      \
    (const uint64_t[]) \
    {                  \
        __VA_ARGS__    \
    }
#define VALUES(...)  \
    (const double[]) \
    {                \
        __VA_ARGS__  \
    }
/* A number, of any rank-0 type. */
#define EXPECT_NUMBER(r, name, value) rig_expect((r), (name), 0, NULL, VALUES(value))

#endif

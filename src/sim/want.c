/* want.c: which values steps are asked for. */
#include "sim/sim.h"

#include <stdlib.h>

bool oi_exec_skips(const oi_exec *e, const oi_pnode *n)
{
    return e->needed && !oi_mask_has(e->needed, (uint32_t)(n - e->sim->program->nodes));
}

static void forget(oi_exec *e)
{
    free(e->needed);
    free(e->stale);
    e->needed = e->stale = NULL;
}

/* The variable of "y" or "W[2]". */
static oi_status find(const oi_exec *e, const char *name, uint32_t *out, oi_diag *d)
{
    const oi_program *p = e->sim->program;
    const size_t n = strcspn(name, "[");
    for (*out = 0; *out < p->n_vars; ++*out)
        if (strncmp(p->vars[*out].name, name, n) == 0 && !p->vars[*out].name[n])
            return OI_OK;
    return oi_fetch_unknown(e, name, d);
}

oi_status oi_exec_want(oi_exec *e, const char *const *names, size_t n, oi_diag *diag)
{
    const oi_program *p = e->sim->program;
    const size_t n_words = p->graph->nodes.n / 64 + 1;
    if (e->in_step && !e->at_end)
        return oi_diag_error(diag, (oi_place){.file = "executor"}, "",
                             "what a step is asked for cannot change while it runs");
    forget(e);
    if (n == 0)
        return OI_OK;
    uint64_t *wanted = calloc(p->n_mask, sizeof *wanted);
    e->needed = calloc(n_words, sizeof *e->needed);
    e->stale = calloc(p->n_mask, sizeof *e->stale);
    oi_status status = wanted && e->needed && e->stale ? OI_OK : OI_ERR_ENV;
    for (size_t i = 0; i < n && status == OI_OK; i++) {
        uint32_t id;
        status = find(e, names[i], &id, diag);
        if (status == OI_OK)
            wanted[id / 64] |= (uint64_t)1 << id % 64;
    }
    if (status == OI_OK && !oi_program_needed(p, wanted, e->needed, e->stale))
        status = OI_ERR_ENV;
    if (status == OI_ERR_ENV)
        oi_diag_env(diag, "executor", "out of memory");
    free(wanted);
    if (status != OI_OK)
        forget(e);
    return status;
}

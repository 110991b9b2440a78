/* nest_scan.c: scans (cumsum): a row of accumulators walks along the scanned axis, and every step
 * is written. */
#include "kernel/nest_run.h"

static void scan_chunk(const oi_nest_job *j, int64_t *pos, size_t n, uint32_t along)
{
    const oi_choice *c = j->c;
    const oi_lane *x = &j->reads[0], *w = &j->write;
    uint64_t accs[OI_CHUNK], buffer[2 * OI_CHUNK];
    int64_t length = along < j->n_axes ? j->extent[along] : 1, at[2];
    uint32_t last = j->n_out_axes - 1;
    oi_lane_row row;
    oi_reduce_row r = {.n = n, .acc = accs, .attrs = c->attrs};
    c->reduce->init(&r);
    for (int64_t s = 0; s < length; s++) {
        if (along < j->n_axes)
            pos[along] = s;
        oi_lane_start(j, x, pos, &row);
        at[0] = row.at;
        oi_lane_start(j, w, pos, &row);
        at[1] = row.at;
        r.x = oi_load_row(&c->load[0], x->data, at[0], x->step[last], n, buffer);
        if (j->n->excludes)
            oi_store_row(&c->store, w->data, at[1], w->step[last], accs, n);
        c->reduce->each(&r);
        if (!j->n->excludes)
            oi_store_row(&c->store, w->data, at[1], w->step[last], accs, n);
    }
}

void oi_nest_scan_task(void *ctx, size_t task)
{
    const oi_nest_job *j = ctx;
    uint32_t last = j->n_out_axes - 1;
    int64_t inner = j->extent[last], chunks = (inner + OI_CHUNK - 1) / OI_CHUNK;
    int64_t pos[OI_NEST_AXES] = {0}, start = (int64_t)task % chunks * OI_CHUNK;
    oi_nest_seek(j, last, (int64_t)task / chunks, pos);
    pos[last] = start;
    scan_chunk(j, pos, (size_t)(inner - start < OI_CHUNK ? inner - start : OI_CHUNK),
               j->n_out_axes);
}

/* nest_rows.c: a row of a nest's iterations: elements that move as they are, maps of rows through
 * the generated kernels, and elements combined into the output (scatter). */
#include "kernel/nest_run.h"

/* -- single elements -- */

static void copy_element(unsigned bits, char *to, int64_t to_at, const char *from, int64_t from_at)
{
    switch (bits) {
    case 8: to[to_at] = from[from_at]; break;
    case 16: memcpy(to + to_at * 2, from + from_at * 2, 2); break;
    case 32: memcpy(to + to_at * 4, from + from_at * 4, 4); break;
    case 64: memcpy(to + to_at * 8, from + from_at * 8, 8); break;
    default: {
        int64_t per = 8 / (int64_t)bits;
        unsigned mask = (1u << bits) - 1, shift = (unsigned)(to_at % per) * bits;
        unsigned v = (unsigned char)from[from_at / per] >> (unsigned)(from_at % per) * bits & mask;
        unsigned old = (unsigned char)to[to_at / per] & ~(mask << shift);
        to[to_at / per] = (char)(old | v << shift);
        break;
    }
    }
}

/* n elements from where each is, one after the other; false when an index is out of range. */
static bool collect(const oi_nest_job *j, const oi_lane *l, const int64_t *pos, int64_t n, char *to)
{
    oi_lane_row row;
    unsigned bits = oi_dtype_bits(l->dtype);
    oi_lane_start(j, l, pos, &row);
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        oi_where where = oi_nest_guarded(j, pos, i) ? OI_OUTSIDE : oi_lane_at(j, l, &row, i, &at);
        if (where == OI_FAULTY)
            return false;
        if (where == OI_INSIDE)
            copy_element(bits, to, i, l->data, at);
        else
            copy_element(bits, to, i, (const char *)&j->fill, 0);
    }
    return true;
}

/* -- copies -- */

static bool copy_each(const oi_nest_job *j, const int64_t *pos, int64_t n)
{
    const oi_nest *nest = j->n;
    const oi_lane *w = &j->write, *r = nest->n_reads ? &j->reads[0] : NULL;
    oi_lane_row to, from;
    unsigned bits = oi_dtype_bits(w->dtype);
    oi_lane_start(j, w, pos, &to);
    if (r)
        oi_lane_start(j, r, pos, &from);
    for (int64_t i = 0; i < n; i++) {
        int64_t to_at, from_at = 0;
        oi_where there = oi_lane_at(j, w, &to, i, &to_at), here = OI_OUTSIDE;
        if (r && r->name != OI_NEST_NONE)
            here = oi_nest_guarded(j, pos, i) ? OI_OUTSIDE : oi_lane_at(j, r, &from, i, &from_at);
        if (there == OI_FAULTY || here == OI_FAULTY)
            return false;
        if (there == OI_OUTSIDE ||
            (here == OI_OUTSIDE && nest->leave == OI_LEAVE_SKIP && r && r->name != OI_NEST_NONE))
            continue;
        if (here == OI_INSIDE)
            copy_element(bits, w->data, to_at, r->data, from_at);
        else
            copy_element(bits, w->data, to_at, (const char *)&j->fill, 0);
    }
    return true;
}

/* Everything moves evenly along the row: one place decides for all. */
static bool copy_evenly(const oi_nest_job *j, const int64_t *pos, int64_t n)
{
    const oi_lane *w = &j->write, *r = &j->reads[0];
    bool reads = j->n->n_reads && r->name != OI_NEST_NONE;
    uint32_t last = j->n_axes - 1;
    oi_dtype raw = oi_copy_dtype(w->dtype);
    oi_lane_row row;
    int64_t to, from = 0;
    oi_lane_start(j, w, pos, &row);
    oi_where there = oi_lane_at(j, w, &row, 0, &to), here = OI_OUTSIDE;
    if (reads) {
        oi_lane_start(j, r, pos, &row);
        here = oi_lane_at(j, r, &row, 0, &from);
    }
    if (there == OI_FAULTY || here == OI_FAULTY)
        return false;
    if (there == OI_OUTSIDE || (reads && here == OI_OUTSIDE && j->n->leave == OI_LEAVE_SKIP))
        return true;
    const void *data = here == OI_INSIDE ? (const void *)r->data : &j->fill;
    oi_copy_row(raw, w->data, to, w->step[last], data, from, here == OI_INSIDE ? r->step[last] : 0,
                (size_t)n);
    return true;
}

/* -- maps -- */

/* A read's row in the form the kernel computes in. */
static const void *load(const oi_nest_job *j, const oi_lane *l, const int64_t *pos, size_t n,
                        uint64_t *buffer, bool *ok)
{
    uint32_t last = j->n_axes - 1;
    oi_lane_row row;
    oi_lane_start(j, l, pos, &row);
    if (l->is_position) {
        int64_t *v = (int64_t *)buffer;
        for (size_t i = 0; i < n; i++)
            v[i] = row.at + (int64_t)i * l->step[last];
        return v;
    }
    const oi_load *how = &j->c->load[l->name];
    int64_t at;
    if (l->is_even && !j->n->has_guard && oi_lane_at(j, l, &row, 0, &at) == OI_INSIDE)
        return oi_load_row(how, l->data, at, l->step[last], n, buffer);
    uint64_t gathered[OI_CHUNK];
    *ok &= collect(j, l, pos, (int64_t)n, (char *)gathered);
    if (!how->cast)
        how->load(buffer, gathered, 0, 1, n); /* never in place: `gathered` ends here */
    return how->cast ? oi_load_row(how, gathered, 0, 1, n, buffer) : buffer;
}

static bool map_chunk(const oi_nest_job *j, const int64_t *pos, size_t n)
{
    uint64_t buffers[3][2 * OI_CHUNK], results[OI_CHUNK];
    oi_map_row row = {.n = n, .attrs = j->c->attrs, .out = results};
    bool ok = true;
    for (uint32_t k = 0; k < j->n->n_reads; k++) {
        const oi_lane *l = &j->reads[k];
        if (l->name != OI_NEST_NONE)
            row.in[l->name] = load(j, l, pos, n, buffers[l->name], &ok);
    }
    oi_lane_row to;
    int64_t at;
    oi_lane_start(j, &j->write, pos, &to);
    if (!ok || oi_lane_at(j, &j->write, &to, 0, &at) != OI_INSIDE)
        return false;
    j->c->map(&row);
    oi_store_row(&j->c->store, j->write.data, at, j->write.step[j->n_axes - 1], results, n);
    return true;
}

/* -- combining into the output -- */

/* Elements that follow each other in storage but may be the same one go one at a time. */
static bool combine_chunk(const oi_nest_job *j, const int64_t *pos, size_t n)
{
    const oi_lane *w = &j->write;
    uint64_t buffer[2 * OI_CHUNK], accs[2 * OI_CHUNK];
    bool ok = true;
    const char *x = load(j, &j->reads[0], pos, n, buffer, &ok);
    oi_lane_row to;
    oi_lane_start(j, w, pos, &to);
    int64_t step = w->step[j->n_axes - 1], at;
    size_t m = w->is_even && step != 0 ? n : 1;
    for (size_t i = 0; ok && i < n; i += m) {
        oi_where where = oi_lane_at(j, w, &to, (int64_t)i, &at);
        if (where == OI_FAULTY)
            return false;
        if (where == OI_OUTSIDE)
            continue;
        j->c->load[0].load(accs, w->data, at, step, m);
        oi_reduce_row r = {
            .n = m, .acc = accs, .x = x + i * j->c->load[0].size, .attrs = j->c->attrs};
        j->c->reduce->each(&r);
        oi_store_row(&j->c->store, w->data, at, step, accs, m);
    }
    return ok;
}

/* -- a row -- */

static bool in_chunks(const oi_nest_job *j, const int64_t *pos, int64_t n,
                      bool (*chunk)(const oi_nest_job *j, const int64_t *pos, size_t n))
{
    int64_t here[OI_NEST_AXES];
    uint32_t last = j->n_axes - 1;
    memcpy(here, pos, j->n_axes * sizeof *here);
    for (int64_t i = 0; i < n; i += OI_CHUNK) {
        here[last] = pos[last] + i;
        if (!chunk(j, here, (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK)))
            return false;
    }
    return true;
}

bool oi_nest_row(const oi_nest_job *j, const int64_t *pos, int64_t n)
{
    if (j->n->combines_out)
        return in_chunks(j, pos, n, combine_chunk);
    if (!j->n->is_copy)
        return in_chunks(j, pos, n, map_chunk);
    bool even = j->write.is_even && (!j->n->n_reads || j->reads[0].is_even) && !j->n->has_guard &&
                (!j->n->is_serial || j->write.step[j->n_axes - 1] != 0);
    return even ? copy_evenly(j, pos, n) : copy_each(j, pos, n);
}

bool oi_nest_row_check(const oi_nest_job *j, const int64_t *pos, int64_t n)
{
    for (uint32_t k = 0; k <= j->n->n_reads; k++) {
        const oi_lane *l = k < j->n->n_reads ? &j->reads[k] : &j->write;
        oi_lane_row row;
        int64_t at;
        oi_lane_start(j, l, pos, &row);
        for (int64_t i = 0; l->n_special && i < (l->is_even ? 1 : n); i++)
            if (oi_lane_at(j, l, &row, i, &at) == OI_FAULTY)
                return false;
    }
    return true;
}

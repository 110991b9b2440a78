/* trace.c: what ran, in the order of the execution model: as JSON (spec/graph-json.md §2) and as a
 * Chrome trace. */
#include "sim/sim.h"

#include <time.h>

uint64_t oi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -- texts of nodes -- */

typedef OI_VEC(const char *) texts;

static void add_access(oi_arena *a, texts *to, const oi_access *x)
{
    *OI_PUSH(a, to) = oi_access_text(a, x);
}

static void add_names(oi_arena *a, texts *to, const oi_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        *OI_PUSH(a, to) = names->at[i].text;
}

static void node_texts(oi_arena *a, const oi_node *n, texts *params, texts *output)
{
    switch (n->kind) {
    case OI_NODE_ASSIGN: *OI_PUSH(a, output) = n->name.text; return;
    case OI_NODE_OP:
        for (size_t i = 0; i < n->as.op.inputs.n; i++)
            add_access(a, params, &n->as.op.inputs.at[i]);
        for (size_t i = 0; i < n->as.op.outputs.n; i++)
            add_access(a, output, &n->as.op.outputs.at[i]);
        return;
    case OI_NODE_BRANCH:
        if (n->as.branch.cond.text)
            *OI_PUSH(a, params) = n->as.branch.cond.text;
        return;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_TRANSFER:
        add_access(a, params, &n->as.move.from);
        add_access(a, output, &n->as.move.to);
        return;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT:
    case OI_NODE_CACHE_RESET: add_access(a, output, &n->as.move.to); return;
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT:
    case OI_NODE_RETURN: add_names(a, params, &n->as.list.names); return;
    default: return;
    }
}

/* Call inside the arena's guard. */
void oi_trace_prepare(oi_sim *s)
{
    const oi_graph *g = s->program->graph;
    s->texts = oi_arena_alloc(s->arena, (g->nodes.n + 1) * sizeof *s->texts);
    s->uuids = oi_arena_alloc(s->arena, (g->nodes.n + 1) * sizeof *s->uuids);
    for (size_t i = 0; i < g->nodes.n; i++) {
        texts params = {0}, output = {0};
        node_texts(s->arena, &g->nodes.at[i], &params, &output);
        s->texts[i] = (oi_node_text){params.at, output.at, (uint32_t)params.n, (uint32_t)output.n};
        oi_uuid_print(g->nodes.at[i].uuid, s->uuids[i]);
    }
}

static const char *kind_name(oi_node_kind k)
{
    return k == OI_NODE_OP ? "OpExecute" : oi_node_table[k].json;
}

/* "" where there is only the host. */
static const char *where(const oi_sim *s, bool on_device)
{
    return !s->remotes ? "" : on_device ? oi_remote_name(s) : "host";
}

void oi_event_fill(const oi_ctx *c, const oi_pnode *n, uint64_t ns, oi_event *out)
{
    const oi_sim *s = c->exec->sim;
    const oi_graph *g = s->program->graph;
    size_t id = (size_t)(n - s->program->nodes);
    *out = (oi_event){.block_name = g->blocks.at[n->source->block].name.text,
                      .node_index = n->source->index,
                      .node_uuid = s->uuids[id],
                      .kind = kind_name(n->kind),
                      .op = n->kind == OI_NODE_OP ? n->source->name.text : "",
                      .params = s->texts[id].params,
                      .output = s->texts[id].output,
                      .n_params = s->texts[id].n_params,
                      .n_output = s->texts[id].n_output,
                      .micros = {ns / 1000000, ns / 1000 % 1000, ns % 1000},
                      .step = c->exec->n_steps,
                      .line = n->source->span.line,
                      .col = n->source->span.col,
                      .device = where(s, c->on_device)};
}

/* -- records -- */

static uint32_t loops_around(const oi_graph *g, const oi_node *n)
{
    uint32_t k = 0;
    for (; n->parent != OI_NO_ID; n = &g->nodes.at[n->parent])
        k++;
    return k;
}

/* Values of the loops around the node, outermost first. */
static int64_t *iteration(const oi_ctx *c, const oi_node *n)
{
    const oi_program *p = c->exec->sim->program;
    uint32_t k = loops_around(p->graph, n);
    int64_t *iter = k ? malloc(k * sizeof *iter) : NULL;
    for (; iter && n->parent != OI_NO_ID; n = &p->graph->nodes.at[n->parent])
        iter[--k] = c->indices[p->nodes[n->parent].as.loop.index];
    return iter;
}

/* The variable a node writes, the first of several; NULL for nodes without. */
static const oi_pref *written(const oi_pnode *n)
{
    if (n->kind == OI_NODE_OP)
        return &n->as.op.out[0];
    return n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_READ ? &n->as.move.to : NULL;
}

/* Lengths that only the run knows. */
static uint64_t *run_dims(oi_ctx *c, const oi_pnode *n)
{
    const oi_pref *ref = written(n);
    oi_input in;
    if (!ref || !c->exec->sim->program->vars[ref->var].has_run_dims)
        return NULL;
    oi_fail kept = c->fail;
    oi_status status = oi_mem_read(c, ref, &in);
    oi_mem_release(c);
    c->fail = kept;
    uint64_t *dims = status == OI_OK ? malloc((in.rank + 1) * sizeof *dims) : NULL;
    if (dims)
        memcpy(dims, in.dims, in.rank * sizeof *dims);
    return dims;
}

static char *statistics(oi_ctx *c, const oi_pnode *n);

static void drop_record(oi_record *r)
{
    free(r->iter);
    free(r->dims);
    free(r->stats);
}

void oi_trace_add(oi_ctx *c, const oi_pnode *n, uint64_t start_ns, uint64_t ns)
{
    oi_exec *e = c->exec;
    oi_record r = {.node = (uint32_t)(n - e->sim->program->nodes),
                   .ctx = c->id,
                   .step = e->n_steps,
                   .start_ns = start_ns ? start_ns - e->start_ns : 0,
                   .ns = ns,
                   .order = c->order,
                   .on_device = c->on_device,
                   .iter = iteration(c, n->source),
                   .dims = run_dims(c, n)};
    if (e->sim->options.trace_values)
        r.stats = statistics(c, n);
    pthread_mutex_lock(&e->trace_lock);
    if (e->n_records == e->cap_records) {
        size_t cap = e->cap_records ? 2 * e->cap_records : 64;
        oi_record *grown = realloc(e->records, cap * sizeof *grown);
        if (grown) {
            e->records = grown;
            e->cap_records = cap;
        }
    }
    r.seq = e->n_records;
    if (e->n_records < e->cap_records) {
        e->records[e->n_records++] = r;
    } else {
        e->records_failed = true;
        drop_record(&r);
    }
    pthread_mutex_unlock(&e->trace_lock);
}

static int by_order(const void *a, const void *b)
{
    const oi_record *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->ctx != y->ctx)
        return x->ctx < y->ctx ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void oi_trace_sort(oi_exec *e)
{
    size_t n = e->n_records - e->step_records;
    if (n > 1)
        qsort(e->records + e->step_records, n, sizeof *e->records, by_order);
}

void oi_trace_clear(oi_exec *e)
{
    for (size_t i = 0; i < e->n_records; i++)
        drop_record(&e->records[i]);
    e->n_records = e->step_records = 0;
    e->records_failed = false;
}

/* -- statistics -- */

typedef struct figures {
    uint64_t n, n_nan, n_inf;
    double min, max, sum;
} figures;

static figures measure(oi_dtype t, const void *data, uint64_t n)
{
    figures f = {.n = n};
    uint64_t finite = 0;
    for (uint64_t i = 0; i < n; i++) {
        double v = oi_element_f64(t, data, i);
        if (v != v) {
            f.n_nan++;
        } else if (v - v != 0) {
            f.n_inf++;
        } else {
            f.min = finite == 0 || v < f.min ? v : f.min;
            f.max = finite == 0 || v > f.max ? v : f.max;
            f.sum += v;
            finite++;
        }
    }
    f.sum = finite ? f.sum / (double)finite : 0;
    return f;
}

static void put_figures(oi_jsonw *w, oi_dtype t, uint32_t rank, const uint64_t *dims,
                        const figures *f)
{
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "dtype");
    oi_jsonw_str(w, oi_dtype_name(t));
    oi_jsonw_key(w, "inf");
    oi_jsonw_u64(w, f->n_inf);
    oi_jsonw_key(w, "max");
    oi_jsonw_f64(w, f->max);
    oi_jsonw_key(w, "mean");
    oi_jsonw_f64(w, f->sum);
    oi_jsonw_key(w, "min");
    oi_jsonw_f64(w, f->min);
    oi_jsonw_key(w, "nan");
    oi_jsonw_u64(w, f->n_nan);
    oi_jsonw_key(w, "shape");
    oi_jsonw_open(w, '[');
    for (uint32_t i = 0; i < rank; i++)
        oi_jsonw_u64(w, dims[i]);
    oi_jsonw_close(w, ']');
    oi_jsonw_close(w, '}');
}

static void put_written(oi_jsonw *w, oi_ctx *c, const oi_pref *ref)
{
    oi_input in;
    oi_fail kept = c->fail;
    if (oi_mem_read(c, ref, &in) == OI_OK) {
        figures f = measure(in.dtype, in.data, in.n_elements);
        oi_jsonw_key(w, ref->source->base.text);
        put_figures(w, in.dtype, in.rank, in.dims, &f);
    }
    oi_mem_release(c);
    c->fail = kept;
}

/* {"y": {"max": …}} for what an op, a transfer or a cache.read has written. NULL: nothing to say.
 */
static char *statistics(oi_ctx *c, const oi_pnode *n)
{
    oi_buf out = {0};
    oi_jsonw w = {.out = &out, .compact = true, .any_order = true};
    char *text = NULL;
    if (!written(n))
        return NULL;
    oi_jsonw_open(&w, '{');
    if (n->kind != OI_NODE_OP)
        put_written(&w, c, written(n));
    for (uint32_t i = 0; n->kind == OI_NODE_OP && i < n->as.op.n_out; i++)
        put_written(&w, c, &n->as.op.out[i]);
    oi_jsonw_close(&w, '}');
    return oi_buf_take(&out, &text) == OI_OK ? text : NULL;
}

/* -- JSON -- */

static void put_list(oi_buf *out, const char *const *texts_, uint32_t n)
{
    oi_jsonw w = {.out = out, .compact = true};
    oi_buf_putc(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        oi_jsonw_str(&w, texts_[i]);
    }
    oi_buf_putc(out, ']');
}

static void put_iter(oi_buf *out, const oi_program *p, const oi_record *r)
{
    const char *names[OI_MAX_LOOP_DEPTH];
    const oi_node *n = p->nodes[r->node].source;
    uint32_t k = loops_around(p->graph, n), all = k;
    for (; n->parent != OI_NO_ID; n = &p->graph->nodes.at[n->parent])
        names[--k] = p->graph->nodes.at[n->parent].as.loop.index.text;
    oi_buf_puts(out, ",\n    \"iter\": [");
    for (uint32_t i = 0; r->iter && i < all; i++)
        oi_buf_printf(out, "%s[\"%s\", %lld]", i ? ", " : "", names[i], (long long)r->iter[i]);
    oi_buf_putc(out, ']');
}

/* Of what was written. */
static void put_type(oi_buf *out, const oi_program *p, const oi_record *r)
{
    const oi_pref *ref = written(&p->nodes[r->node]);
    if (!ref)
        return;
    const oi_pvar *v = &p->vars[ref->var];
    const uint64_t *dims = v->has_run_dims ? r->dims : v->dims;
    oi_buf_puts(out, ",\n    \"shape\": [");
    for (uint32_t i = 0; dims && i < v->rank; i++)
        oi_buf_printf(out, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    oi_buf_printf(out, "],\n    \"dtype\": \"%s\"", oi_dtype_name(v->dtype));
}

static void put_ext(oi_buf *out, const oi_exec *e, const oi_record *r, bool timeless)
{
    const oi_program *p = e->sim->program;
    const oi_pnode *n = &p->nodes[r->node];
    if (n->kind == OI_NODE_OP)
        oi_buf_printf(out, ",\n    \"op\": \"%s\"", n->source->name.text);
    oi_buf_printf(out, ",\n    \"step\": %llu", (unsigned long long)r->step);
    put_iter(out, p, r);
    oi_buf_printf(out, ",\n    \"thread\": %u", r->ctx);
    oi_buf_printf(out, ",\n    \"start_ns\": %llu",
                  timeless ? 0ull : (unsigned long long)r->start_ns);
    put_type(out, p, r);
}

static void put_event(oi_buf *out, const oi_exec *e, const oi_record *r, const oi_trace_options *o)
{
    const oi_sim *s = e->sim;
    const oi_node *n = s->program->nodes[r->node].source;
    const oi_node_text *t = &s->texts[r->node];
    uint64_t ns = o->deterministic ? 0 : r->ns;
    oi_jsonw w = {.out = out, .compact = true};
    oi_buf_puts(out, "  {\n    \"block_name\": ");
    oi_jsonw_str(&w, s->program->graph->blocks.at[n->block].name.text);
    oi_buf_printf(out, ",\n    \"node_index\": %llu", (unsigned long long)n->index);
    oi_buf_printf(out, ",\n    \"node_uuid\": \"%s\"", s->uuids[r->node]);
    oi_buf_printf(out, ",\n    \"kind\": \"%s\",\n    \"params\": ", kind_name(n->kind));
    put_list(out, t->params, t->n_params);
    oi_buf_puts(out, ",\n    \"output\": ");
    put_list(out, t->output, t->n_output);
    oi_buf_printf(out, ",\n    \"micros\": [%llu, %llu, %llu]", (unsigned long long)(ns / 1000000),
                  (unsigned long long)(ns / 1000 % 1000), (unsigned long long)(ns % 1000));
    if (s->remotes)
        oi_buf_printf(out, ",\n    \"device\": \"%s\"", where(s, r->on_device));
    if (o->ext)
        put_ext(out, e, r, o->deterministic);
    if (r->stats)
        oi_buf_printf(out, ",\n    \"stats\": %s", r->stats);
    oi_buf_puts(out, "\n  }");
}

/* -- Chrome -- */

static void put_microseconds(oi_buf *out, const char *key, uint64_t ns)
{
    oi_buf_printf(out, ", \"%s\": %llu.%03llu", key, (unsigned long long)(ns / 1000),
                  (unsigned long long)(ns % 1000));
}

static void put_chrome(oi_buf *out, const oi_exec *e, const oi_record *r, bool timeless)
{
    const oi_node *n = e->sim->program->nodes[r->node].source;
    const char *name = n->kind == OI_NODE_OP ? n->name.text : oi_node_table[n->kind].keyword;
    const char *block = e->sim->program->graph->blocks.at[n->block].name.text;
    oi_buf_printf(out,
                  "  {\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %u",
                  name, kind_name(n->kind), r->ctx);
    put_microseconds(out, "ts", timeless ? 0 : r->start_ns);
    put_microseconds(out, "dur", timeless ? 0 : r->ns);
    oi_buf_printf(out, ", \"args\": {\"block\": \"%s\", \"node\": %llu, \"step\": %llu", block,
                  (unsigned long long)n->index, (unsigned long long)r->step);
    if (e->sim->remotes)
        oi_buf_printf(out, ", \"device\": \"%s\"", where(e->sim, r->on_device));
    oi_buf_puts(out, "}}");
}

/* Threads get the names of their blocks. */
static void put_threads(oi_buf *out, const oi_exec *e)
{
    const oi_program *p = e->sim->program;
    for (uint32_t i = 0; i <= p->n_consumers; i++) {
        uint32_t block = i ? p->consumers[i - 1] : p->entry;
        oi_buf_printf(out,
                      "  {\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %u, "
                      "\"args\": {\"name\": \"%s\"}}%s\n",
                      i, p->graph->blocks.at[block].name.text,
                      i < p->n_consumers || e->n_records ? "," : "");
    }
}

oi_status oi_trace_json(oi_exec *e, const oi_trace_options *options, char **out, oi_diag *diag)
{
    oi_trace_options o = options ? *options : (oi_trace_options){0};
    bool chrome = o.format == OI_TRACE_CHROME;
    oi_buf text = {0};
    if (e->records_failed)
        return oi_diag_env(diag, "trace", "memory ran out while tracing: events are missing");
    oi_buf_puts(&text, chrome ? "{\"traceEvents\": [\n" : e->n_records ? "[\n" : "[]\n");
    if (chrome)
        put_threads(&text, e);
    for (size_t i = 0; i < e->n_records; i++) {
        if (chrome)
            put_chrome(&text, e, &e->records[i], o.deterministic);
        else
            put_event(&text, e, &e->records[i], &o);
        oi_buf_puts(&text, i + 1 < e->n_records ? ",\n" : "\n");
    }
    oi_buf_puts(&text, chrome ? "]}\n" : e->n_records ? "]\n" : "");
    if (oi_buf_take(&text, out) != OI_OK)
        return oi_diag_env(diag, "trace", "out of memory");
    return OI_OK;
}

/* compare.c: `openinfer compare`: a run held against what another program computed.
 *
 * The dump names what a node wrote: `h` the value a variable has at the end of the step, `h#3` what
 * it held after it was written for the fourth time, `2:h` and `2:h#3` the same in the third step.
 * A value can only be known to be the last one when the step is over, so a step's rows are
 * collected, put in the order of the nodes, and then shown. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static cli_session s;
static cli_list references, maps;
static const char *atol_text, *rtol_text;
static uint64_t steps = 1;
static bool all, json;

static const cli_option options[] = {
    SESSION_OPTIONS(s),
    OPT_LIST("reference", 'r', "FILE", &references, "a dump: .npz, or .npy named like a variable"),
    OPT_LIST("map", 0, "NAME=KEY", &maps,
             "what a variable is called there; {n} is the number of the write, {step} of the step"),
    OPT_TEXT("atol", 0, "X", &atol_text, "absolute tolerance (default: 1e-5)"),
    OPT_TEXT("rtol", 0, "X", &rtol_text, "relative tolerance (default: 1e-4)"),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps (default: 1)"),
    OPT_FLAG("all", 0, &all, "go on after the first value that departs"),
    OPT_FLAG("json", 0, &json, "print the rows as JSON"),
    OPT_END,
};

/* -- the dump -- */

typedef struct dumped {
    const char *key;
    size_t file, member;
    bool used;
} dumped;

static struct {
    cli_npz *files; /* .npy files have no members */
    char **names;   /* of .npy files: their keys */
    dumped *at;
    size_t n;
} dump;

static bool is_npy(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".npy");
}

/* "out/h.npy" -> "h" */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(name) - strlen(".npy");
    char *out = malloc(n + 1);
    if (out) {
        memcpy(out, name, n);
        out[n] = '\0';
    }
    return out;
}

static dumped *find_key(const char *key)
{
    for (size_t i = 0; i < dump.n; i++)
        if (!strcmp(dump.at[i].key, key))
            return &dump.at[i];
    return NULL;
}

static oi_status add_key(const char *key, size_t file, size_t member)
{
    if (!key)
        return cli_fail(OI_ERR_ENV, "out of memory");
    if (find_key(key))
        return cli_fail(OI_ERR_INPUT, "%s: '%s' is there twice", references.at[file], key);
    dumped *more = realloc(dump.at, (dump.n + 1) * sizeof *more);
    if (!more)
        return cli_fail(OI_ERR_ENV, "out of memory");
    dump.at = more;
    dump.at[dump.n++] = (dumped){.key = key, .file = file, .member = member};
    return OI_OK;
}

static oi_status open_dump(void)
{
    if (references.n == 0)
        return cli_usage_error("--reference FILE is wanted");
    dump.files = calloc(references.n, sizeof *dump.files);
    dump.names = calloc(references.n, sizeof *dump.names);
    oi_status status = dump.files && dump.names ? OI_OK : cli_fail(OI_ERR_ENV, "out of memory");
    for (size_t i = 0; status == OI_OK && i < references.n; i++) {
        if (is_npy(references.at[i])) {
            dump.names[i] = stem_of(references.at[i]);
            status = add_key(dump.names[i], i, 0);
            continue;
        }
        status = cli_npz_open(references.at[i], &dump.files[i]);
        for (size_t k = 0; status == OI_OK && cli_npz_name(&dump.files[i], k); k++)
            status = add_key(cli_npz_name(&dump.files[i], k), i, k);
    }
    return status;
}

static void close_dump(void)
{
    for (size_t i = 0; dump.files && i < references.n; i++)
        cli_npz_close(&dump.files[i]);
    for (size_t i = 0; dump.names && i < references.n; i++)
        free(dump.names[i]);
    free(dump.files);
    free(dump.names);
    free(dump.at);
    free(references.at);
    free(maps.at);
}

static oi_status read_dumped(const dumped *d, cli_array *out)
{
    return dump.names[d->file] ? cli_npy_read(references.at[d->file], out)
                               : cli_npz_read(&dump.files[d->file], d->member, out);
}

/* -- which key belongs to a write -- */

enum { KEY_ROOM = 512, LAST = -1 };

/* "blk.{n}.out" with its marks filled in; `has_n` tells whether {n} was there. */
static void fill_in(char *out, const char *pattern, uint64_t step, long write, bool *has_n)
{
    size_t n = 0;
    *has_n = strstr(pattern, "{n}") != NULL;
    for (const char *at = pattern; *at && n + 24 < KEY_ROOM;) {
        if (!strncmp(at, "{n}", 3)) {
            n += (size_t)snprintf(out + n, KEY_ROOM - n, "%ld", write);
            at += 3;
        } else if (!strncmp(at, "{step}", 6)) {
            n += (size_t)snprintf(out + n, KEY_ROOM - n, "%llu", (unsigned long long)step);
            at += 6;
        } else {
            out[n++] = *at++;
        }
    }
    out[n] = '\0';
}

/* A --map for the variable. Without {step} it speaks of the first step. */
static dumped *mapped(const char *name, uint64_t step, long write)
{
    char key[KEY_ROOM];
    size_t n = strlen(name);
    for (size_t i = 0; i < maps.n; i++) {
        const char *map = maps.at[i];
        bool has_n;
        if (strncmp(map, name, n) != 0 || map[n] != '=')
            continue;
        fill_in(key, map + n + 1, step, write, &has_n);
        if (has_n != (write != LAST) || (step > 0 && !strstr(map, "{step}")))
            continue;
        dumped *d = find_key(key);
        if (d)
            return d;
    }
    return NULL;
}

/* What the dump has for the write-th value of a variable, or for its last. */
static dumped *find_dumped(const char *name, uint64_t step, long write)
{
    char key[KEY_ROOM], number[32] = "";
    dumped *d = mapped(name, step, write);
    if (d)
        return d;
    if (write != LAST)
        snprintf(number, sizeof number, "#%ld", write);
    snprintf(key, sizeof key, "%llu:%s%s", (unsigned long long)step, name, number);
    d = find_key(key);
    return d || step > 0 ? d : find_key(strchr(key, ':') + 1);
}

/* -- one value against another -- */

static struct {
    double absolute, relative;
} allowed = {1e-5, 1e-4};

typedef struct row {
    oi_event event;   /* the node that wrote it */
    uint64_t seq;     /* of the node within the run */
    const char *name; /* of the variable */
    const char *key;
    oi_dtype dtype;
    uint32_t rank;
    uint64_t dims[CLI_MAX_RANK], n_elements;
    bool same_shape;
    uint64_t n_wrong, worst; /* elements beyond tolerance; the element farthest beyond it */
    double max_abs, max_rel, here, there;
} row;

static struct {
    row *at;
    size_t n;
} rows;

static bool is_integer(oi_dtype t)
{
    const char *name = oi_dtype_name(t);
    return t == OI_BOOL || name[0] == 'i' || name[0] == 'u' || name[0] == 't';
}

/* How far two elements are apart. Equal ones, NaN and NaN among them, are not; a NaN or an infinity
 * on one side only is infinitely far. */
static double distance(const oi_view *a, const oi_view *b, uint64_t e, double *here, double *there)
{
    *here = oi_element_f64(a->dtype, a->data, e);
    *there = oi_element_f64(b->dtype, b->data, e);
    if (is_integer(a->dtype) && is_integer(b->dtype)) {
        bool large = a->dtype == OI_U64 || b->dtype == OI_U64;
        bool same =
            large ? oi_element_u64(a->dtype, a->data, e) == oi_element_u64(b->dtype, b->data, e) &&
                        (*here < 0) == (*there < 0)
                  : oi_element_i64(a->dtype, a->data, e) == oi_element_i64(b->dtype, b->data, e);
        double d = fabs(*here - *there);
        return same ? 0 : d > 0 ? d : 1;
    }
    if (*here == *there || (isnan(*here) && isnan(*there)))
        return 0;
    double d = fabs(*here - *there);
    return isnan(d) ? (double)INFINITY : d;
}

static void measure(row *r, const oi_view *ours, const oi_view *reference)
{
    double farthest = -1, here, there;
    for (uint64_t e = 0; e < ours->n_elements; e++) {
        double d = distance(ours, reference, e, &here, &there);
        double most = allowed.absolute + allowed.relative * fabs(there);
        double rel = d == 0 ? 0 : isfinite(there) ? d / fabs(there) : d;
        bool is_wrong = isinf(d) || d > most;
        double beyond = d == 0 ? 0 : d - (isfinite(most) ? most : 0);
        r->n_wrong += is_wrong;
        r->max_abs = d > r->max_abs ? d : r->max_abs;
        r->max_rel = rel > r->max_rel ? rel : r->max_rel;
        if (beyond > farthest) {
            farthest = beyond;
            r->worst = e;
            r->here = here;
            r->there = there;
        }
    }
}

/* [1, 4] and [4] are the same: tools differ in whether they keep axes of one. */
static bool same_shape(const oi_view *a, const oi_view *b)
{
    uint32_t i = 0, k = 0;
    if (a->n_elements != b->n_elements)
        return false;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1)
            i++;
        while (k < b->rank && b->dims[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++])
            return false;
    }
}

/* Adds a row for what the variable holds now. */
static oi_status compare(const char *name, dumped *d, const oi_event *e, uint64_t seq)
{
    oi_view ours;
    cli_array reference;
    oi_status status = oi_fetch(s.exec, name, &ours, s.diag);
    if (status != OI_OK)
        return status;
    status = read_dumped(d, &reference);
    if (status != OI_OK)
        return status;
    row *more = realloc(rows.at, (rows.n + 1) * sizeof *more);
    if (!more) {
        cli_array_free(&reference);
        return cli_fail(OI_ERR_ENV, "out of memory");
    }
    rows.at = more;
    row *r = &rows.at[rows.n++];
    *r = (row){.event = *e, .seq = seq, .name = name, .key = d->key, .dtype = ours.dtype};
    r->rank = ours.rank < CLI_MAX_RANK ? ours.rank : CLI_MAX_RANK;
    memcpy(r->dims, ours.dims, r->rank * sizeof *r->dims);
    r->n_elements = ours.n_elements;
    r->same_shape = same_shape(&ours, &reference.view);
    d->used = true;
    if (r->same_shape)
        measure(r, &ours, &reference.view);
    else
        cli_note("'%s' has %llu elements there in another shape, here %llu", d->key,
                 (unsigned long long)reference.view.n_elements,
                 (unsigned long long)ours.n_elements);
    cli_array_free(&reference);
    return OI_OK;
}

static bool departs(const row *r)
{
    return !r->same_shape || r->n_wrong > 0;
}

/* -- what is shown -- */

static void print_shape(FILE *to, const row *r)
{
    fprintf(to, "%s[", oi_dtype_name(r->dtype));
    for (uint32_t i = 0; i < r->rank; i++)
        fprintf(to, "%s%llu", i ? ", " : "", (unsigned long long)r->dims[i]);
    fputs("]", to);
}

static void print_position(FILE *to, const row *r)
{
    uint64_t stride = r->n_elements, rest = r->worst;
    fputs("[", to);
    for (uint32_t i = 0; i < r->rank; i++) {
        stride = r->dims[i] ? stride / r->dims[i] : 1;
        fprintf(to, "%s%llu", i ? ", " : "", (unsigned long long)(rest / (stride ? stride : 1)));
        rest %= stride ? stride : 1;
    }
    fputs("]", to);
}

static void print_row(const row *r)
{
    printf("%-6s %-16s %10.3g %10.3g  line %-5u ", departs(r) ? "DIFF" : "ok", r->key, r->max_abs,
           r->max_rel, r->event.line);
    print_shape(stdout, r);
    printf("\n");
}

static void print_first(const row *r)
{
    printf("\nfirst departs: '%s' in step %llu, node %llu of %s, line %u: ", r->key,
           (unsigned long long)r->event.step, (unsigned long long)r->event.node_index,
           r->event.block_name, r->event.line);
    cli_describe(stdout, &r->event);
    printf("\n");
    if (!r->same_shape) {
        printf("  the shapes differ\n");
        return;
    }
    printf("  %llu of %llu elements differ by more than %g + %g * |reference|\n",
           (unsigned long long)r->n_wrong, (unsigned long long)r->n_elements, allowed.absolute,
           allowed.relative);
    printf("  worst at ");
    print_position(stdout, r);
    printf(": %.9g here, %.9g in the reference\n", r->here, r->there);
}

/* JSON has no infinities. */
static void print_number(const char *key, double v)
{
    if (isfinite(v))
        printf(", \"%s\": %.17g", key, v);
    else
        printf(", \"%s\": \"%s\"", key, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void print_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++)
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if ((unsigned char)*c < ' ')
            printf("\\u%04x", *c);
        else
            putchar(*c);
    putchar('"');
}

static void print_json_row(const row *r, bool is_last)
{
    printf("  {\"key\": ");
    print_text(r->key);
    printf(", \"variable\": \"%s\", \"step\": %llu, \"block\": \"%s\", \"node_index\": %llu",
           r->name, (unsigned long long)r->event.step, r->event.block_name,
           (unsigned long long)r->event.node_index);
    printf(", \"op\": \"%s\", \"line\": %u, \"dtype\": \"%s\", \"elements\": %llu", r->event.op,
           r->event.line, oi_dtype_name(r->dtype), (unsigned long long)r->n_elements);
    printf(", \"same_shape\": %s, \"wrong\": %llu", r->same_shape ? "true" : "false",
           (unsigned long long)r->n_wrong);
    print_number("max_abs", r->max_abs);
    print_number("max_rel", r->max_rel);
    printf(", \"at\": ");
    print_position(stdout, r);
    print_number("here", r->here);
    print_number("there", r->there);
    printf(", \"departs\": %s}%s\n", departs(r) ? "true" : "false", is_last ? "" : ",");
}

/* Rows up to the first that departs, or all. */
static oi_status show_rows(void)
{
    const row *first = NULL;
    size_t n = 0;
    for (; n < rows.n && (all || !first); n++)
        if (!first && departs(&rows.at[n]))
            first = &rows.at[n];
    if (json)
        printf("[\n");
    else
        printf("%-6s %-16s %10s %10s  %-10s shape\n", "", "key", "max abs", "max rel", "node");
    for (size_t i = 0; i < n; i++)
        if (json)
            print_json_row(&rows.at[i], i + 1 == n);
        else
            print_row(&rows.at[i]);
    if (json)
        printf("]\n");
    else if (first)
        print_first(first);
    else
        printf("\n%zu values agree within %g + %g * |reference|\n", rows.n, allowed.absolute,
               allowed.relative);
    return first ? OI_ERR_INPUT : OI_OK;
}

/* -- running -- */

typedef struct written {
    oi_event last;
    uint64_t seq;
    long n; /* writes in this step */
} written;

static written *writes; /* per variable */
static uint64_t seq;

/* Every variable the node has written. */
static oi_status after_node(const oi_event *e)
{
    seq++;
    if (!strcmp(e->kind, "Assign")) /* makes a variable, writes nothing */
        return OI_OK;
    for (size_t i = 0; i < e->n_output; i++) {
        char name[256];
        oi_var_info var;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(e->output[i], "["), e->output[i]);
        size_t at = oi_sim_find_var(s.sim, name);
        if (at == SIZE_MAX || !oi_sim_var(s.sim, at, &var) || var.is_prefix)
            continue;
        written *w = &writes[at];
        w->last = *e;
        w->seq = seq;
        dumped *d = find_dumped(var.name, s.step, w->n++);
        oi_status status = d ? compare(var.name, d, e, seq) : OI_OK;
        if (status != OI_OK)
            return status;
    }
    return OI_OK;
}

/* What variables hold when the step is over. */
static oi_status after_step(void)
{
    oi_var_info var;
    for (size_t i = 0; oi_sim_var(s.sim, i, &var); i++) {
        written *w = &writes[i];
        dumped *d = w->n ? find_dumped(var.name, s.step, LAST) : NULL;
        oi_status status = d ? compare(var.name, d, &w->last, w->seq) : OI_OK;
        if (status != OI_OK)
            return status;
        *w = (written){0};
    }
    return OI_OK;
}

static int by_seq(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return strcmp(x->key, y->key);
}

static oi_status one_step(void)
{
    oi_event e = {0};
    size_t first = rows.n;
    oi_status status = cli_session_feed(&s);
    while (status == OI_OK && oi_next(s.exec, &e, s.diag))
        status = after_node(&e);
    if (status == OI_OK)
        status = e.status;
    if (status == OI_OK)
        status = after_step();
    if (rows.n > first)
        qsort(rows.at + first, rows.n - first, sizeof *rows.at, by_seq);
    return status;
}

static bool any_departs(void)
{
    for (size_t i = 0; i < rows.n; i++)
        if (departs(&rows.at[i]))
            return true;
    return false;
}

/* The array as elements of the variable: dumps keep token ids as i64 and halves as f32. */
static oi_status as_type_of(const oi_var_info *var, const char *key, cli_array *a)
{
    uint64_t n = a->view.n_elements, bytes = 0;
    if (a->view.dtype == var->dtype)
        return OI_OK;
    void *data =
        oi_dtype_bytes(var->dtype, n, &bytes) ? calloc(1, bytes ? (size_t)bytes : 1) : NULL;
    if (!data)
        return cli_fail(OI_ERR_ENV, "no memory for '%s'", key);
    uint64_t done = oi_convert(var->dtype, data, a->view.dtype, a->data, n);
    free(a->data);
    a->data = data;
    a->view.data = data;
    a->view.size_bytes = bytes;
    a->view.dtype = var->dtype;
    if (done == n)
        return OI_OK;
    return cli_fail(OI_ERR_INPUT, "'%s': element %llu is no value of %s", key,
                    (unsigned long long)done, oi_dtype_name(var->dtype));
}

/* An input that the dump holds is taken from it. */
static oi_status from_dump(const oi_var_info *var, uint64_t step, cli_array *out)
{
    dumped *d = find_dumped(var->name, step, LAST);
    if (!d)
        return OI_NOT_FOUND;
    d->used = true;
    oi_status status = read_dumped(d, out);
    return status == OI_OK ? as_type_of(var, d->key, out) : status;
}

static void note_unused(void)
{
    const char *names[64];
    oi_var_info var;
    size_t n = 0;
    for (size_t i = 0; n < 64 && oi_sim_var(s.sim, i, &var); i++)
        names[n++] = var.name;
    for (size_t i = 0; i < dump.n; i++) {
        const char *near = dump.at[i].used ? NULL : oi_did_you_mean(dump.at[i].key, names, n);
        if (near)
            cli_note("nothing here is called '%s': did you mean '%s'?", dump.at[i].key, near);
        else if (!dump.at[i].used)
            cli_note("nothing here is called '%s'", dump.at[i].key);
    }
}

static oi_status run_all(void)
{
    oi_status status = OI_OK;
    writes = calloc(oi_sim_n_vars(s.sim) + 1, sizeof *writes);
    if (!writes)
        return cli_fail(OI_ERR_ENV, "out of memory");
    for (s.step = 0; status == OI_OK && s.step < steps && (all || !any_departs()); s.step++)
        status = one_step();
    if (status != OI_OK)
        return status;
    if (all || !any_departs())
        note_unused();
    if (rows.n == 0)
        return cli_fail(OI_ERR_INPUT, "the dump holds nothing that this graph writes");
    return show_rows();
}

static oi_status tolerance(const char *option, const char *text, double *out)
{
    char *end = NULL;
    if (!text)
        return OI_OK;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0) || isinf(*out))
        return cli_usage_error("--%s: '%s' is not a number from 0 up", option, text);
    return OI_OK;
}

static oi_status check_maps(void)
{
    for (size_t i = 0; i < maps.n; i++) {
        char name[256];
        const char *eq = strchr(maps.at[i], '=');
        if (!eq || eq == maps.at[i])
            return cli_usage_error("--map %s: write NAME=KEY", maps.at[i]);
        snprintf(name, sizeof name, "%.*s", (int)(eq - maps.at[i]), maps.at[i]);
        if (oi_sim_find_var(s.sim, name) == SIZE_MAX)
            return cli_usage_error("--map %s: there is no variable '%s'", maps.at[i], name);
    }
    return OI_OK;
}

static oi_status run(cli_args args)
{
    oi_status status = tolerance("atol", atol_text, &allowed.absolute);
    if (status == OI_OK)
        status = tolerance("rtol", rtol_text, &allowed.relative);
    if (status == OI_OK)
        status = open_dump();
    if (status == OI_OK) {
        s.find_value = from_dump;
        status = cli_session_open(&s, args.at[0]);
    }
    if (status == OI_OK)
        status = check_maps();
    if (status == OI_OK)
        status = run_all();
    status = cli_session_close(&s, status);
    close_dump();
    free(rows.at);
    free(writes);
    return status;
}

static const char *const examples[] = {
    "openinfer compare mlp.oi --model mlp.oinf --reference dump.npz",
    "hold every variable in the dump against what the nodes write; inputs come from it too",
    "openinfer compare llm.oi --model llm.oinf --set x=x.npy -r dump.npz --map h=layers.{n}.out",
    "h is written once per layer, and the dump has its own names",
    NULL,
};

const cli_command CMD_compare = {
    .description =
        "Runs a graph and holds what its nodes write against a reference: arrays dumped by another "
        "program with numpy.savez. Prints how far each is apart, in the order of the nodes, up to "
        "the first that departs: there the error is made.\n\n"
        "In the dump, `h` is what the variable h holds at the end of the step, `h#0`, `h#1` … what "
        "it holds after it was written for the first, second time; `2:h` and `2:h#1` are the same "
        "in the third step. --map gives the dump's own names. An input that is in the dump and not "
        "set with --set is taken from it.\n\n"
        "An element departs when it differs by more than atol + rtol * |reference|; integers are "
        "held to the same. NaN equals NaN. The exit code is 1 when something departs.",
    .examples = examples,
    .options = options,
    .run = run,
};

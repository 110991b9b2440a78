/* opsinfo.c: the op registry for people outside the library. */
#include "base/base.h"
#include "base/ops.h"

#include <math.h>

static const char *text_of(const char *s)
{
    return s ? s : "";
}

size_t oi_ops_count(void)
{
    return oi_op_count();
}

size_t oi_ops_find(const char *name)
{
    const oi_op *op = oi_op_find(name);
    return op ? (size_t)op->id : OI_OPS_NONE;
}

/* -- names that others use -- */

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* Are they the same but for case and underscores? `b` ends at n, or before a version: "Clip-13". */
static bool is_same_word(const char *a, const char *b, size_t n)
{
    const char *end = b + n;
    for (;;) {
        a += strspn(a, "_");
        while (b < end && *b == '_')
            b++;
        bool b_ends = b == end || *b == '-';
        if (*a == '\0' || b_ends)
            return *a == '\0' && b_ends;
        if (folded(*a++) != folded(*b++))
            return false;
    }
}

static bool is_among(const char *name, const char *words)
{
    for (size_t n = 0; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (is_same_word(name, words, n))
            return true;
    }
    return false;
}

const char *oi_op_suggest(const char *name)
{
    for (size_t i = 0; i < oi_op_key_count; i++)
        if (is_same_word(name, oi_op_keys[i].name, strlen(oi_op_keys[i].name)))
            return oi_op_keys[i].name;
    for (size_t i = 0; i < OI_OP_COUNT; i++)
        if (is_among(name, oi_op_table[i].onnx) || is_among(name, oi_op_table[i].known_as))
            return oi_op_table[i].name;
    oi_nearest near = oi_nearest_start(name);
    for (size_t i = 0; i < oi_op_key_count; i++)
        oi_nearest_offer(&near, oi_op_keys[i].name);
    return near.best;
}

const char *oi_ops_nearest(const char *name)
{
    return oi_op_suggest(name);
}

bool oi_ops_get(size_t index, oi_ops_info *out)
{
    const oi_op *op = oi_op_at(index);
    if (!op)
        return false;
    *out = (oi_ops_info){
        .name = op->name,
        .cls = oi_op_class_words[op->cls].name,
        .cls_doc = oi_op_class_words[op->cls].doc,
        .dtypes = op->dtypes_text,
        .shape = oi_shape_rule_words[op->shape_rule].name,
        .shape_doc = oi_shape_rule_words[op->shape_rule].doc,
        .onnx = op->onnx,
        .doc = op->doc,
        .notes = op->notes,
        .aliases = op->aliases,
        .n_inputs = op->n_inputs,
        .n_outputs = op->n_outputs,
        .n_attrs = op->n_attrs,
    };
    return true;
}

void oi_ops_tolerance(size_t index, oi_dtype t, uint64_t reduced, double *atol, double *rtol)
{
    const oi_op *op = oi_op_at(index);
    *atol = *rtol = 0;
    if (!op || (unsigned)t >= OI_DTYPE_COUNT || op->tolerance == OI_TOLERANCE_EXACT)
        return;
    *atol = *rtol = oi_dtype_tolerance[t];
    if (op->tolerance == OI_TOLERANCE_REDUCED && (t == OI_F32 || t == OI_F64) && reduced > 1)
        *rtol *= sqrt((double)reduced);
}

bool oi_ops_input(size_t index, size_t i, oi_ops_port *out)
{
    const oi_op *op = oi_op_at(index);
    if (!op || i >= op->n_inputs)
        return false;
    const oi_op_input *in = &op->inputs[i];
    *out = (oi_ops_port){in->name, in->dtypes_text, in->optional, in->variadic};
    return true;
}

bool oi_ops_output(size_t index, size_t i, oi_ops_port *out)
{
    const oi_op *op = oi_op_at(index);
    if (!op || i >= op->n_outputs)
        return false;
    const oi_op_output *o = &op->outputs[i];
    *out = (oi_ops_port){o->name, o->out_text, o->optional, o->variadic};
    return true;
}

bool oi_ops_attr_at(size_t index, size_t i, oi_ops_attr *out)
{
    static const char *const none[] = {NULL};
    const oi_op *op = oi_op_at(index);
    if (!op || i >= op->n_attrs)
        return false;
    const oi_op_attr *a = &op->attrs[i];
    *out = (oi_ops_attr){
        .name = a->name,
        .alias = text_of(a->alias),
        .kind = oi_attr_kind_words[a->kind].name,
        .kind_doc = oi_attr_kind_words[a->kind].doc,
        .required = a->required,
        .standard = a->def_text,
        .absent = text_of(a->absent),
        .input = a->input >= 0 ? op->inputs[a->input].name : "",
        .values = a->values ? a->values : none,
        .sample = text_of(a->sample),
        .doc = a->doc,
    };
    return true;
}

const char *oi_ops_flag(size_t index, size_t i)
{
    const oi_op *op = oi_op_at(index);
    for (size_t bit = 0; op && oi_op_flag_words[bit].name; bit++)
        if (op->flags >> bit & 1 && i-- == 0)
            return oi_op_flag_words[bit].name;
    return NULL;
}

const char *const *oi_ops_body(size_t index, size_t variant, const char **when)
{
    const oi_op *op = oi_op_at(index);
    if (!op || variant >= op->n_bodies)
        return NULL;
    *when = op->bodies[variant].when_text;
    return op->bodies[variant].text;
}

const char *oi_ops_class(size_t i)
{
    return i < OI_OP_CLASS_COUNT ? oi_op_class_words[i].name : NULL;
}

bool oi_ops_dtype_class(size_t i, const char **name, const char **members)
{
    size_t n = 0;
    while (oi_dtype_words[n].name)
        n++;
    if (i >= n)
        return false;
    *name = oi_dtype_words[i].name;
    *members = oi_dtype_words[i].text;
    return true;
}

static bool word_holds(const char *word, size_t n, oi_dtype t)
{
    for (size_t i = 0; oi_dtype_words[i].name; i++)
        if (strlen(oi_dtype_words[i].name) == n && memcmp(oi_dtype_words[i].name, word, n) == 0)
            return oi_dtype_words[i].set & OI_DTYPES(t);
    return oi_dtype_find_n(word, n) == t;
}

bool oi_ops_dtype_in(const char *set, oi_dtype t)
{
    if (!oi_dtype_is_tensor(t))
        return false;
    for (const char *p = set; *p;) {
        size_t n = strcspn(p, " ");
        if (word_holds(p, n, t))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

bool oi_ops_takes(size_t index, oi_dtype t)
{
    const oi_op *op = oi_op_at(index);
    return op && oi_dtype_is_tensor(t) && op->dtypes & OI_DTYPES(t);
}

/* -- JSON ---------------------------------------------------------------------------------------
 */

typedef struct filter {
    oi_ops_filter takes; /* NULL: oi_ops_takes */
    void *ctx;
} filter;

static bool counts(const filter *f, size_t op, oi_dtype t)
{
    return f->takes ? f->takes(f->ctx, op, t) : oi_ops_takes(op, t);
}

static void put(oi_jsonw *w, const char *key, const char *value)
{
    oi_jsonw_key(w, key);
    oi_jsonw_str(w, value);
}

static void put_list(oi_jsonw *w, const char *key, const char *const *list)
{
    oi_jsonw_key(w, key);
    oi_jsonw_open(w, '[');
    for (; *list; list++)
        oi_jsonw_str(w, *list);
    oi_jsonw_close(w, ']');
}

static void put_attr(oi_jsonw *w, const oi_ops_attr *a)
{
    oi_jsonw_open(w, '{');
    if (*a->absent)
        put(w, "absent", a->absent);
    if (*a->alias)
        put(w, "alias", a->alias);
    if (*a->standard)
        put(w, "default", a->standard);
    put(w, "doc", a->doc);
    if (*a->input)
        put(w, "input", a->input);
    put(w, "kind", a->kind);
    put(w, "name", a->name);
    oi_jsonw_key(w, "required");
    oi_jsonw_bool(w, a->required);
    if (a->values[0])
        put_list(w, "values", a->values);
    oi_jsonw_close(w, '}');
}

static void put_ports(oi_jsonw *w, const char *key, size_t op,
                      bool (*port_at)(size_t op, size_t i, oi_ops_port *out))
{
    oi_ops_port port;
    oi_jsonw_key(w, key);
    oi_jsonw_open(w, '[');
    for (size_t i = 0; port_at(op, i, &port); i++) {
        oi_jsonw_open(w, '{');
        put(w, "dtypes", port.dtypes);
        put(w, "name", port.name);
        oi_jsonw_key(w, "optional");
        oi_jsonw_bool(w, port.optional);
        oi_jsonw_key(w, "variadic");
        oi_jsonw_bool(w, port.variadic);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

static void put_bodies(oi_jsonw *w, size_t op)
{
    const char *when;
    if (!oi_ops_body(op, 0, &when))
        return;
    oi_jsonw_key(w, "body");
    oi_jsonw_open(w, '[');
    for (size_t v = 0; oi_ops_body(op, v, &when); v++) {
        oi_jsonw_open(w, '{');
        put_list(w, "body", oi_ops_body(op, v, &when));
        put(w, "when", when);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

static void put_op(oi_jsonw *w, size_t op, const filter *f)
{
    oi_ops_info info = {0};
    oi_ops_attr attr;
    oi_ops_get(op, &info);
    oi_jsonw_open(w, '{');
    put_list(w, "aliases", info.aliases);
    oi_jsonw_key(w, "attrs");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; oi_ops_attr_at(op, i, &attr); i++)
        put_attr(w, &attr);
    oi_jsonw_close(w, ']');
    put_bodies(w, op);
    put(w, "class", info.cls);
    put(w, "doc", info.doc);
    oi_jsonw_key(w, "dtypes");
    oi_jsonw_open(w, '[');
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (counts(f, op, (oi_dtype)t))
            oi_jsonw_str(w, oi_dtype_name((oi_dtype)t));
    oi_jsonw_close(w, ']');
    oi_jsonw_key(w, "flags");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; oi_ops_flag(op, i); i++)
        oi_jsonw_str(w, oi_ops_flag(op, i));
    oi_jsonw_close(w, ']');
    put_ports(w, "inputs", op, oi_ops_input);
    put(w, "name", info.name);
    put_list(w, "notes", info.notes);
    put(w, "onnx", info.onnx);
    put_ports(w, "outputs", op, oi_ops_output);
    put(w, "shape", info.shape);
    oi_jsonw_close(w, '}');
}

static bool counts_at_all(const filter *f, size_t op)
{
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (counts(f, op, (oi_dtype)t))
            return true;
    return false;
}

oi_status oi_ops_to_json(size_t op, oi_ops_filter takes, void *ctx, char **out, oi_diag *diag)
{
    const filter f = {takes, ctx};
    oi_buf text = {0};
    oi_jsonw w = {.out = &text};
    if (op != OI_OPS_NONE && op >= oi_ops_count())
        return OI_ERR_USAGE;
    if (op != OI_OPS_NONE) {
        put_op(&w, op, &f);
    } else {
        oi_jsonw_open(&w, '{');
        oi_jsonw_key(&w, "ops");
        oi_jsonw_open(&w, '[');
        for (size_t i = 0; i < oi_ops_count(); i++)
            if (counts_at_all(&f, i))
                put_op(&w, i, &f);
        oi_jsonw_close(&w, ']');
        oi_jsonw_close(&w, '}');
    }
    oi_buf_putc(&text, '\n');
    oi_status status = oi_buf_take(&text, out);
    if (status != OI_OK)
        oi_diag_env(diag, "ops", "out of memory");
    return status;
}

/* kernelgen.c: prints the scalar kernels of every op from its row in ops/ops.json.
 *
 *     kernelgen OUTDIR
 *
 * Linked with the tables that opsgen made of the registry. OUTDIR gets kernels_GROUP_N.c, each
 * compiled once per kind of instructions, and kernels.inc: one line per kernel, which
 * src/kernel/kernels.h declares and src/kernel/table.c finds. Kernels with the same text are
 * printed once. */
#include "kernelgen.h"

#include <errno.h>
#include <stdarg.h>

static const char banner[] =
    "/* generated from ops/ops.json by tools/kernelgen.c, do not edit */\n";
static unsigned n_errors;
static const char *out_dir;

void kg_complain(const oi_op *op, const char *fmt, ...)
{
    n_errors++;
    fprintf(stderr, "ops/ops.json: error: op '%s': ", op->name);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* -- types -- */

oi_dtype kg_form(oi_dtype t)
{
    return t == OI_F8 || t == OI_BF16 || t == OI_F16 ? OI_F32 : t;
}

oi_dtypes kg_forms(oi_dtypes set)
{
    oi_dtypes forms = 0;
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (set & OI_DTYPES(t))
            forms |= OI_DTYPES(kg_form((oi_dtype)t));
    return forms;
}

const char *kg_type(oi_dtype t)
{
    return oi_dialect_c.types[t];
}

const char *kg_member(oi_dtype t)
{
    switch (t) {
    case OI_F32: return "f32";
    case OI_F64: return "f64";
    case OI_I16: return "i16";
    case OI_I32: return "i32";
    case OI_I64: return "i64";
    case OI_U16: return "u16";
    case OI_U32: return "u32";
    case OI_U64: return "u64";
    default: return oi_dtype_get(t)->min < 0 ? "i8" : "u8";
    }
}

/* -- expressions -- */

const char *kg_text(const oi_op *op, oi_op_part part, oi_dtype of, oi_dtype to)
{
    const oi_op_meaning *m = oi_op_meaning_find(op, part, of, to);
    if (!m)
        kg_complain(op, "no meaning for %s -> %s", oi_dtype_name(of), oi_dtype_name(to));
    return m ? m->text : "0";
}

/* The names with their spellings, which move when a kernel is copied. */
static const oi_m_name *names_of(const kg_kernel *k)
{
    static oi_m_name names[KG_NAMES];
    for (size_t i = 0; i < k->n_names; i++) {
        names[i] = k->names[i];
        names[i].spell = k->spells[i];
    }
    return names;
}

void kg_expression(FILE *f, const kg_kernel *k, const char *text, oi_dtype want, const char *indent,
                   const char *target)
{
    static oi_meaning m;
    static char buffer[4096];
    const oi_m_name *names = names_of(k);
    if (!oi_meaning_parse(text, &m) || !oi_meaning_bind(&m, names, k->n_names, want)) {
        kg_complain(k->op, "\"%s\" for %s: %s", text, oi_dtype_name(want), m.error);
        return;
    }
    for (size_t i = 0; i <= m.n_lets; i++) {
        oi_m_text out = {buffer, 0, sizeof buffer, false};
        uint16_t node = i < m.n_lets ? m.lets[i].node : m.root;
        if (!oi_meaning_print(&m, node, names, k->n_names, &oi_dialect_c, &out))
            kg_complain(k->op, "\"%s\" is too long", text);
        if (i < m.n_lets)
            fprintf(f, "%sconst %s %.*s = %s;\n", indent, kg_type(m.nodes[node].type),
                    (int)m.lets[i].len, m.lets[i].text, buffer);
        else
            fprintf(f, "%s%s%s;\n", indent, target, buffer);
    }
}

void kg_add_name(kg_kernel *k, const char *name, oi_dtype type, const char *spell)
{
    if (k->n_names == KG_NAMES) {
        kg_complain(k->op, "more than %d names", KG_NAMES);
        return;
    }
    snprintf(k->spells[k->n_names], sizeof k->spells[0], "%s", spell);
    k->names[k->n_names++] = (oi_m_name){.name = name, .type = type};
}

/* The attributes a kernel may mention: a number has the type of the tensor. */
void kg_add_attrs(kg_kernel *k, oi_dtype number)
{
    for (uint32_t i = 0; i < k->op->n_attrs; i++) {
        const oi_op_attr *a = &k->op->attrs[i];
        oi_dtype t = a->kind == OI_ATTR_NUMBER   ? number
                     : a->kind == OI_ATTR_BOOL   ? OI_BOOL
                     : a->kind == OI_ATTR_STRING ? OI_I32
                     : a->kind == OI_ATTR_INT    ? OI_I64
                                                 : OI_NONE;
        if (t == OI_NONE)
            continue;
        kg_add_name(k, a->name, t, a->name);
        k->attrs |= 1u << i;
        k->names[k->n_names - 1].words = a->values;
    }
}

bool kg_mentions(const kg_kernel *k, const char *text, const char *name)
{
    static oi_meaning m;
    if (!oi_meaning_parse(text, &m))
        return false;
    oi_meaning_bind(&m, k->names, k->n_names, k->out); /* a wrong type is told elsewhere */
    return oi_meaning_uses(&m, name);
}

void kg_put_attrs(FILE *f, const kg_kernel *k, const char *const *texts, size_t n_texts)
{
    for (uint32_t i = 0; i < k->op->n_attrs; i++) {
        const char *name = k->op->attrs[i].name;
        bool used = false;
        if (!(k->attrs >> i & 1))
            continue;
        for (size_t t = 0; t < n_texts; t++)
            used |= texts[t] && kg_mentions(k, texts[t], name);
        for (size_t n = 0; used && n < k->n_names; n++)
            if (strcmp(k->names[n].name, name) == 0)
                fprintf(f, "    const %s %s = row->attrs[%u].%s;\n", kg_type(k->names[n].type),
                        name, i, kg_member(k->names[n].type));
    }
}

/* -- variants -- */

/* What an attribute can be, when that is few things; 0 when it is not mentioned. */
static int choices(const oi_op_attr *a, const char *text)
{
    const char *at = strstr(text, a->name);
    if (!at)
        return 0;
    int n = 0;
    while (a->kind == OI_ATTR_STRING && a->values && a->values[n])
        n++;
    return a->kind == OI_ATTR_BOOL ? 2 : n;
}

static bool asks_given(const char *text, const char *name)
{
    char given[96];
    snprintf(given, sizeof given, "given(%s)", name);
    return strstr(text, given) != NULL;
}

static oi_m_name *name_of(kg_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->n_names; i++)
        if (strcmp(k->names[i].name, name) == 0)
            return &k->names[i];
    return NULL;
}

/* More ways than this are decided at run time: the loop asks each time. */
#define MAX_CHOICES 4

void kg_each_variant(kg_kernel *k, const char *text, void (*print)(kg_kernel *k))
{
    int total = 1;
    for (uint32_t i = 0; i < k->op->n_attrs; i++)
        total *= choices(&k->op->attrs[i], text) > 1 ? choices(&k->op->attrs[i], text) : 1;
    for (uint32_t i = 0; i < k->op->n_attrs && k->n_when < KG_WHENS; i++) {
        const oi_op_attr *a = &k->op->attrs[i];
        oi_m_name *name = name_of(k, a->name);
        bool given = asks_given(text, a->name) && name;
        int n = given ? 2 : choices(a, text);
        if (!name || name->is_bound || (n < 2 || (!given && total > MAX_CHOICES)))
            continue;
        bool decided = false;
        for (size_t w = 0; w < k->n_when; w++)
            decided |= k->when[w].what % 16 == (int)i;
        if (decided)
            continue;
        kg_kernel one = *k;
        one.n_when++;
        for (int v = 0; v < n; v++) {
            oi_m_name *bound = name_of(&one, a->name);
            one.when[k->n_when] = (kg_when){(int)i + (given ? 16 : 0), v};
            bound->is_bound = !given;
            bound->value = v;
            bound->is_absent = given && v == 0;
            kg_each_variant(&one, text, print);
        }
        return;
    }
    print(k);
}

/* -- symbols and rows -- */

#define MAX_SYMBOLS 4000

static struct symbol {
    char name[96];
    char *body;
} symbols[MAX_SYMBOLS];
static size_t n_symbols;
static FILE *inc;

/* The files of OUTDIR, known to CMakeLists.txt by name. Consecutive kernels go round the files of
 * their group, so that those take equally long to compile. */
static struct group {
    const char *name;
    unsigned n_files, next;
    FILE *files[4];
} groups[] = {
    {"map", 4, 0, {0}}, {"cast", 2, 0, {0}}, {"reduce", 2, 0, {0}}, {"contract", 1, 0, {0}}};

static FILE *open_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", out_dir, name);
    FILE *f = fopen(path, "wb");
    if (!f) {
        fprintf(stderr, "kernelgen: cannot write %s: %s\n", path, strerror(errno));
        exit(3);
    }
    fputs(banner, f);
    return f;
}

static void open_groups(void)
{
    for (size_t g = 0; g < OI_COUNT(groups); g++)
        for (unsigned i = 0; i < groups[g].n_files; i++) {
            char name[64];
            snprintf(name, sizeof name, "kernels_%s_%u.c", groups[g].name, i);
            groups[g].files[i] = open_file(name);
            fputs("#include \"kernel/kernels.h\"\n#include \"body/scalar.h\"\n",
                  groups[g].files[i]);
        }
}

static bool close_groups(void)
{
    bool ok = true;
    for (size_t g = 0; g < OI_COUNT(groups); g++)
        for (unsigned i = 0; i < groups[g].n_files; i++)
            ok = fclose(groups[g].files[i]) == 0 && ok;
    return ok;
}

static FILE *group_file(const char *name)
{
    struct group *g = groups;
    while (strcmp(g->name, name) != 0)
        g++;
    g->next = (g->next + 1) % g->n_files;
    return g->files[g->next];
}

const char *kg_symbol(const char *name, const char *body, const char *group)
{
    for (size_t i = 0; i < n_symbols; i++)
        if (strcmp(symbols[i].body, body) == 0)
            return symbols[i].name;
    if (n_symbols == MAX_SYMBOLS) {
        fputs("kernelgen: too many kernels\n", stderr);
        exit(3);
    }
    struct symbol *s = &symbols[n_symbols++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->body = strdup(body);
    if (!s->body)
        exit(3);
    FILE *f = group_file(group);
    fputc('\n', f);
    for (const char *p = body; *p; p++) {
        if (*p == '@')
            fputs(name, f);
        else
            fputc(*p, f);
    }
    return s->name;
}

void kg_name(const kg_kernel *k, char out[96])
{
    int n = snprintf(out, 96, "%s_%s", k->op->name, oi_dtype_name(k->in[0] ? k->in[0] : k->out));
    if (k->in[1] && k->op->inputs[1].optional)
        n += snprintf(out + n, 96 - (size_t)n, "_by_%s", k->op->inputs[1].name);
    if (k->in[2] && k->in[2] != k->in[0])
        n += snprintf(out + n, 96 - (size_t)n, "_%s", oi_dtype_name(k->in[2]));
    if (k->out != k->in[0])
        n += snprintf(out + n, 96 - (size_t)n, "_%s", oi_dtype_name(k->out));
    for (size_t w = 0; w < k->n_when; w++) {
        const oi_op_attr *a = &k->op->attrs[k->when[w].what % 16];
        int v = k->when[w].value;
        if (k->when[w].what >= 16)
            n += snprintf(out + n, 96 - (size_t)n, "%s", v ? "_masked" : "");
        else if (a->kind == OI_ATTR_STRING)
            n += snprintf(out + n, 96 - (size_t)n, "_%s", a->values[v]);
        else
            n += snprintf(out + n, 96 - (size_t)n, "_%s%d", a->name, v);
    }
}

static void put_upper(const char *s)
{
    for (; *s; s++)
        fputc(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s, inc);
}

static void put_dtype(oi_dtype t)
{
    fputs(", OI_", inc);
    put_upper(oi_dtype_name(t));
}

void kg_row(const char *table, const kg_kernel *k, const char *symbol)
{
    fprintf(inc, "OI_%s_ROW(", table);
    put_upper(k->op->name);
    for (int i = 0; i < 3; i++)
        put_dtype(k->in[i]);
    put_dtype(k->out);
    for (size_t w = 0; w < KG_WHENS; w++)
        fprintf(inc, ", %d, %d", w < k->n_when ? k->when[w].what : -1,
                w < k->n_when ? k->when[w].value : 0);
    fprintf(inc, ", %s)\n", symbol);
}

/* -- all of them -- */

static void generate(const oi_op *op)
{
    if (op->n_meanings == 0)
        return;
    switch (op->cls) {
    case OI_OP_CLASS_MAP: kg_map(op); break;
    case OI_OP_CLASS_REDUCE: kg_reduce(op); break;
    case OI_OP_CLASS_CONTRACT: kg_contract(op); break;
    case OI_OP_CLASS_MOVE: kg_scatter(op); break;
    default: kg_complain(op, "its class has no expressions");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: kernelgen OUTDIR\n", stderr);
        return 2;
    }
    out_dir = argv[1];
    inc = open_file("kernels.inc");
    open_groups();
    for (size_t i = 0; i < oi_op_count(); i++)
        generate(oi_op_at(i));
    bool ok = close_groups();
    ok = fclose(inc) == 0 && ok && n_errors == 0;
    for (size_t i = 0; i < n_symbols; i++)
        free(symbols[i].body);
    return ok ? 0 : 1;
}

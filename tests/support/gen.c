/* gen.c: random graphs. Validity is by construction: names are declared before use, attributes come
 * from the registry rows, loops and blocks nest properly. Types and shapes are random: this
 * generator feeds the parser, the printers and the structural checks, not the executor. */
#include "gen.h"

#include "base/ops.h"

#define MAX_VARS 40

typedef struct var {
    char name[24];
    char kind; /* d v c p: memory; a: assigned; s: rank-0 integer persistent */
    int n_indices, n_auto, rank;
    bool prefix, numeric_scalar;
} var;

typedef struct gen {
    oi_buf *out;
    uint64_t state;
    var vars[MAX_VARS];
    int n_vars, n_callees, depth, loops, n_loop_names;
    bool is_entry;
} gen;

static uint32_t below(gen *g, uint32_t n)
{
    return (uint32_t)(oi_splitmix64(&g->state) % n);
}

static bool chance(gen *g, uint32_t percent)
{
    return below(g, 100) < percent;
}

#define PICK(g, array) ((array)[below((g), OI_COUNT(array))])

static void put(gen *g, const char *text)
{
    oi_buf_puts(g->out, text);
}

/* Somewhere between tokens: layout must not matter. */
static void space(gen *g)
{
    static const char *const gaps[] = {" ",  " ",      " ",  "  ",
                                       "\n", "\n\n\n", "\t", " /* c /* d */ */ "};
    if (chance(g, 6))
        put(g, " // note\n");
    else
        put(g, PICK(g, gaps));
}

/* -- expressions and literals
 * ---------------------------------------------------------------------------- */

static void int_literal(gen *g)
{
    static const char *const odd[] = {
        "0", "1", "2", "1_000", "0x1F", "0b101", "9223372036854775807"};
    if (chance(g, 60))
        oi_buf_printf(g->out, "%u", below(g, 100));
    else
        put(g, PICK(g, odd));
}

/* Small literals and no zero divisors: what literals alone decide is checked. */
static void iexpr(gen *g, int depth)
{
    static const char *const names[] = {"B", "D", "H", "n_layers"};
    uint32_t roll = below(g, depth > 0 ? 10 : 5);
    if (roll < 3)
        oi_buf_printf(g->out, "%u", below(g, 100));
    else if (roll < 5)
        put(g, PICK(g, names));
    else if (roll == 5) {
        put(g, "-");
        iexpr(g, depth - 1);
    } else if (roll < 8) {
        put(g, "(");
        iexpr(g, depth - 1);
        put(g, ")");
    } else {
        iexpr(g, depth - 1);
        space(g);
        char op = "+-*/%"[below(g, 5)];
        oi_buf_putc(g->out, op);
        space(g);
        if (op == '/' || op == '%')
            put(g, chance(g, 50) ? "n_layers" : "3");
        else
            iexpr(g, depth - 1);
    }
}

static void size_expr(gen *g) /* a dim: never negative or inexact by itself */
{
    static const char *const sizes[] = {"B",       "D",  "H", "3*D", "B+1",
                                        "(B+1)*D", "16", "1", "0",   "4*8"};
    put(g, PICK(g, sizes));
}

static void float_literal(gen *g)
{
    static const char *const odd[] = {"1.0",  ".5",      "1e-6", "1_000.0",      "2.",
                                      "7f32", "1.5e300", "inf",  "-inf",         "nan",
                                      "-0.0", "0.1",     "1e16", "123456789.125"};
    if (chance(g, 70)) {
        put(g, PICK(g, odd));
        return;
    }
    uint64_t bits = oi_splitmix64(&g->state) >> 1;
    double v;
    memcpy(&v, &bits, sizeof v);
    char text[OI_NUMBER_TEXT];
    oi_buf_add(g->out, text, oi_print_f64(text, v - v == 0 ? v : 0.25));
}

static const char *any_dtype(gen *g)
{
    static const oi_dtype types[] = {OI_F8,  OI_BF16, OI_F16, OI_F32,  OI_F64,   OI_I1,
                                     OI_I2,  OI_I4,   OI_I8,  OI_I16,  OI_I32,   OI_I64,
                                     OI_U1,  OI_U2,   OI_U4,  OI_U8,   OI_U16,   OI_U32,
                                     OI_U64, OI_T1,   OI_T2,  OI_BOOL, OI_BITSET};
    return oi_dtype_name(PICK(g, types));
}

/* -- declarations
 * ------------------------------------------------------------------------------------------ */

static void init_attr(gen *g, oi_dtype t)
{
    put(g, " @init(");
    if (oi_dtype_is_float(t)) {
        static const char *const safe[] = {"0",   "1",    "0.1", "-2.5",
                                           "inf", "-inf", "nan", "57344.0"};
        put(g, PICK(g, safe));
    } else if (t == OI_BOOL) {
        put(g, chance(g, 50) ? "true" : "0");
    } else if (t == OI_U64 && chance(g, 50)) {
        put(g, "18446744073709551615");
    } else if (t == OI_I64 && chance(g, 50)) {
        put(g, "-9223372036854775808");
    } else {
        put(g, t == OI_I1 ? "-1" : "1");
    }
    put(g, ")");
}

static void index_list(gen *g, int n)
{
    for (int i = 0; i < n; i++)
        oi_buf_printf(g->out, "%si%d", i ? ", " : "(", i);
    if (n)
        put(g, ")");
}

static void table_attrs(gen *g, const var *v)
{
    int n_table = v->n_indices - v->n_auto;
    if (n_table && (v->n_auto || chance(g, 80)))
        put(g, " @table");
    if (v->n_auto) {
        put(g, " @auto_dim(");
        for (int i = 0; i < v->n_auto; i++)
            oi_buf_printf(g->out, "%si%d", i ? ", " : "", n_table + i);
        put(g, ")");
    }
    static const char *const limits[] = {"64", "B*2", "1024", "n_layers"};
    if (v->n_indices && chance(g, 40))
        oi_buf_printf(g->out, " @fixed(i0=%s)", PICK(g, limits));
    else if (v->n_indices && chance(g, 40))
        oi_buf_printf(g->out, " @cap(i0=%s)", PICK(g, limits));
}

static void decl(gen *g, char kind)
{
    if (g->n_vars >= MAX_VARS - 4)
        return;
    var *v = &g->vars[g->n_vars];
    *v = (var){.kind = kind, .rank = (int)below(g, 4)};
    snprintf(v->name, sizeof v->name, "%c%d", kind, g->n_vars++);
    oi_dtype t = oi_dtype_find(any_dtype(g));
    if (kind == 'p' && chance(g, 60)) {
        v->n_indices = 1 + (int)below(g, 3);
        v->n_auto = chance(g, 40) ? (int)below(g, (uint32_t)v->n_indices + 1) : 0;
        v->rank = v->n_auto > v->rank ? v->n_auto : v->rank;
    } else if ((kind == 'v' || kind == 'c') && chance(g, 30)) {
        v->n_indices = 1 + (int)below(g, 2);
        v->prefix = true;
    }
    put(g, v->name);
    index_list(g, v->n_indices);
    oi_buf_printf(g->out, ": %s", oi_dtype_name(t));
    for (int i = 0; i < v->rank; i++) {
        put(g, i ? ", " : "[");
        size_expr(g);
    }
    if (v->rank)
        put(g, "]");
    if (chance(g, 30) && !v->prefix)
        init_attr(g, t);
    if (v->prefix)
        put(g, v->n_indices == 1 ? " @pattern(\"W.{i0}\")" : " @pattern(\"W.{i1}.q{{}}.{i0}\")");
    else if (kind != 'p' && chance(g, 20))
        put(g, chance(g, 50) ? " @ref(\"model.key-1\")" : " @ref(key)");
    if (v->n_indices && !v->prefix)
        table_attrs(g, v);
    if ((kind == 'v' || kind == 'c') && chance(g, 10))
        put(g, " @layout(\"row_major\")");
    put(g, ";");
    space(g);
}

static void section(gen *g, char kind, const char *word)
{
    put(g, word);
    put(g, " {");
    space(g);
    for (uint32_t i = below(g, 5); i > 0; i--)
        decl(g, kind);
    put(g, "}");
    space(g);
}

/* -- references
 * ---------------------------------------------------------------------------------------------- */

static const var *pick_var(gen *g, const char *kinds)
{
    for (int tries = 0; tries < 60 && g->n_vars; tries++) {
        const var *v = &g->vars[below(g, (uint32_t)g->n_vars)];
        if (strchr(kinds, v->kind))
            return v;
    }
    return NULL;
}

static void reference(gen *g, const var *v)
{
    put(g, v->name);
    if (!v->prefix)
        return;
    for (int i = 0; i < v->n_indices; i++) {
        put(g, i ? ", " : "[");
        oi_buf_printf(g->out, "%u", below(g, 9));
    }
    put(g, "]");
}

/* Selectors within a persistent variable. */
static void access(gen *g, const var *v, bool reset)
{
    int n_table = v->n_indices - v->n_auto;
    int axes = v->n_indices ? (reset ? n_table : v->n_indices) : reset ? 0 : v->rank;
    put(g, v->name);
    if (axes == 0 || chance(g, 20))
        return;
    put(g, "[");
    int n = v->n_auto && !reset ? axes : (int)below(g, (uint32_t)axes + 1);
    for (int i = 0; i < n; i++) {
        put(g, i ? ", " : "");
        bool literal = v->n_indices > v->n_auto; /* dims and growth may be too small for them */
        switch (below(g, 6)) {
        case 0:
            if (n > 1)
                break; /* blank */
            put(g, "..");
            break;
        case 1: put(g, literal ? "0..1" : "0..B"); break;
        case 2: put(g, literal ? "0..-3" : "0..-B"); break;
        case 3: put(g, "B..B+D"); break;
        default: put(g, literal && chance(g, 50) ? "0" : "B-1");
        }
    }
    put(g, "]");
}

/* -- nodes
 * ------------------------------------------------------------------------------------------------------
 */

static void attr_value(gen *g, const oi_op_attr *a)
{
    switch (a->kind) {
    case OI_ATTR_NUMBER: chance(g, 60) ? float_literal(g) : int_literal(g); break;
    case OI_ATTR_BOOL: put(g, chance(g, 50) ? "true" : "false"); break;
    case OI_ATTR_STRING: oi_buf_printf(g->out, "\"%s\"", a->values ? a->values[0] : "x"); break;
    case OI_ATTR_DTYPE: put(g, chance(g, 50) ? "f32" : "i8"); break;
    case OI_ATTR_DTYPE_LIST: put(g, chance(g, 50) ? "i32" : "[f32, f32]"); break;
    case OI_ATTR_AXES: put(g, chance(g, 50) ? "[0, 1]" : "[-1]"); break;
    default: put(g, "1");
    }
}

static void op(gen *g)
{
    const oi_op *row = oi_op_at(below(g, (uint32_t)oi_op_count()));
    const var *out = pick_var(g, "dva");
    if (!out || !pick_var(g, "dvca"))
        return;
    oi_buf_printf(g->out, "op %s(", row->name);
    uint32_t n = row->min_inputs;
    for (uint32_t i = 0; i < n; i++) {
        put(g, i ? ", " : "");
        reference(g, pick_var(g, "dvca"));
    }
    bool any = n > 0;
    for (uint32_t i = 0; i < row->n_attrs; i++) {
        const oi_op_attr *a = &row->attrs[i];
        if (!a->required && chance(g, 60))
            continue;
        oi_buf_printf(g->out, "%s%s=", any ? ", " : "", a->name);
        attr_value(g, a);
        any = true;
    }
    put(g, ")");
    space(g);
    put(g, ">> ");
    for (uint32_t i = 0; i < row->min_outputs; i++) {
        put(g, i ? ", " : "");
        reference(g, out);
    }
    put(g, ";");
}

static void cache(gen *g)
{
    const var *p = pick_var(g, "p"), *v = pick_var(g, "da");
    if (!p || !v)
        return;
    switch (below(g, 4)) {
    case 0:
        put(g, "cache.read ");
        access(g, p, false);
        oi_buf_printf(g->out, " >> %s;", v->name);
        break;
    case 1:
        oi_buf_printf(g->out, "cache.write %s >> ", v->name);
        access(g, p, false);
        put(g, ";");
        break;
    case 2:
        put(g, "cache.reset ");
        access(g, p, true);
        put(g, ";");
        break;
    default:
        oi_buf_printf(g->out, "cache.%s %sstep;", chance(g, 50) ? "increment" : "decrement",
                      chance(g, 50)   ? ""
                      : chance(g, 50) ? "18446744073709551615 "
                                      : "count ");
    }
}

static void nodes(gen *g, int n);

static void loop(gen *g)
{
    int id = g->n_loop_names++;
    oi_buf_printf(g->out, "loop l%d (k%d in ", id, id);
    iexpr(g, 2);
    put(g, "..");
    iexpr(g, 2);
    put(g, ") {");
    space(g);
    g->depth++;
    nodes(g, (int)below(g, 4));
    g->depth--;
    put(g, "}");
}

static void node(gen *g)
{
    const var *from = pick_var(g, "dvca"), *to = pick_var(g, "dva");
    switch (below(g, 10)) {
    case 0:
        if (!g->is_entry || g->n_vars >= MAX_VARS)
            break;
        var *v = &g->vars[g->n_vars];
        *v = (var){.kind = 'a'};
        snprintf(v->name, sizeof v->name, "a%d", g->n_vars++);
        oi_buf_printf(g->out, "assign %s: %s%s;", v->name, any_dtype(g),
                      chance(g, 50) ? "[B, ?]" : "");
        break;
    case 1:
    case 2: cache(g); break;
    case 3:
        if (g->depth < 4)
            loop(g);
        break;
    case 4:
        if (from && to) {
            put(g, "transfer ");
            reference(g, from);
            put(g, " >> ");
            reference(g, to);
            put(g, ";");
        }
        break;
    case 5: put(g, "barrier;"); break;
    case 6:
        if (g->is_entry && g->n_callees)
            oi_buf_printf(g->out,
                          chance(g, 50) ? "branch callee%u;" : "branch flag callee%u callee0;",
                          below(g, (uint32_t)g->n_callees));
        break;
    default: op(g);
    }
    space(g);
}

static void nodes(gen *g, int n)
{
    for (int i = 0; i < n; i++)
        node(g);
}

static void blocks(gen *g)
{
    put(g, "block entry {");
    space(g);
    g->is_entry = true;
    nodes(g, 1 + (int)below(g, 12));
    bool async = chance(g, 30);
    if (async)
        put(g, "yield shared; barrier; await shared; ");
    put(g, chance(g, 50) ? "return;" : "return shared, flag;");
    put(g, " }\n");
    g->is_entry = false;
    for (int i = 0; i < g->n_callees; i++) {
        oi_buf_printf(g->out, "block callee%d { ", i);
        nodes(g, (int)below(g, 4));
        put(g, chance(g, 50) ? "return; }\n" : "yield shared; }\n");
    }
    if (async)
        put(g, "block consumer { await shared; transfer shared >> shared; yield shared; }\n");
}

void gen_graph(oi_buf *out, uint64_t seed)
{
    gen g = {.out = out, .state = seed};
    bool wrapped = chance(&g, 20);
    if (wrapped)
        put(&g, chance(&g, 50) ? "graph! {\n" : "graph {\n");
    put(&g, "volatile { shared: f32[B]; flag: bool; }\nconstants { count: u16 @init(3); }\n"
            "persistent { step: i32 @init(0); }\n");
    static const struct {
        char kind;
        const char *word;
    } kinds[] = {{'d', "dynamic"}, {'v', "volatile"}, {'c', "constant"}, {'p', "persistent"}};
    for (uint32_t i = 1 + below(&g, 5); i > 0; i--) {
        uint32_t k = below(&g, OI_COUNT(kinds));
        section(&g, kinds[k].kind, kinds[k].word);
    }
    g.n_callees = (int)below(&g, 3);
    blocks(&g);
    if (wrapped)
        put(&g, "}\n");
}

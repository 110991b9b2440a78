/* parse_node.c: what stands in a block. */
#include "dsl/dsl.h"

/* assign = "assign" IDENT ":" dtype [ dims ] ";" */
static void assign(oi_parser *p, oi_node *n)
{
    n->name = oi_cur_name(&p->cur, "a variable name");
    if (!p->cur.failed && oi_cur_expect(&p->cur, ':', "':' and an element type"))
        n->as.assign.dtype = oi_parse_dtype(p);
    if (!p->cur.failed)
        oi_parse_dims(p, &n->as.assign.dims);
}

static void named_arg(oi_parser *p, oi_node *n)
{
    oi_attr a = {.name = oi_cur_name(&p->cur, "an attribute name")};
    p->cur.tok++; /* '=' */
    a.value = oi_parse_value(p);
    if (p->cur.failed)
        return;
    oi_attr_normalise(p->g->arena, n->name.text, &a);
    *OI_PUSH(p->g->arena, &n->as.op.attrs) = a;
}

static void positional_arg(oi_parser *p, oi_node *n)
{
    const oi_token *t = p->cur.tok;
    if (n->as.op.attrs.n) {
        oi_cur_error(&p->cur, t, "E001", "operands come before named attributes");
        return;
    }
    if (t->kind == OI_TOK_INT || t->kind == OI_TOK_FLOAT || oi_cur_is(&p->cur, '-')) {
        oi_cur_error(&p->cur, t, "E001", "a literal cannot be an operand");
        oi_diag_hint(p->cur.diag, "declare it: constant { two: f32 @init(2.0); }");
        return;
    }
    oi_access a = oi_cur_access(&p->cur);
    if (!p->cur.failed)
        *OI_PUSH(p->g->arena, &n->as.op.inputs) = a;
}

/* op = "op" IDENT "(" [ oparg {"," oparg} ] ")" ">>" out {"," out} [ hints ] ";"
 * oparg = ref | IDENT "=" value
 * Hints are the compact form's; here they keep the two forms equal. */
static void op(oi_parser *p, oi_node *n)
{
    n->name = oi_cur_name(&p->cur, "an op name");
    if (p->cur.failed || !oi_cur_expect(&p->cur, '(', "'('"))
        return;
    while (!oi_cur_is(&p->cur, ')') && !p->cur.failed) {
        if (p->cur.tok->kind == OI_TOK_IDENT && p->cur.tok[1].kind == OI_TOK_PUNCT + '=')
            named_arg(p, n);
        else
            positional_arg(p, n);
        if (p->cur.failed || !oi_cur_accept(&p->cur, ','))
            break;
    }
    if (p->cur.failed || !oi_cur_expect(&p->cur, ')', "',' or ')'") ||
        !oi_cur_expect(&p->cur, OI_TOK_SHR, "'>>' and the output"))
        return;
    do {
        oi_access out = oi_cur_access(&p->cur);
        if (!p->cur.failed)
            *OI_PUSH(p->g->arena, &n->as.op.outputs) = out;
    } while (!p->cur.failed && oi_cur_accept(&p->cur, ','));
    if (!p->cur.failed && oi_cur_is(&p->cur, '@'))
        oi_parse_hints(p, &n->hints);
}

/* access ">>" access: cache.read, cache.write and transfer */
static void move(oi_parser *p, oi_node *n)
{
    n->as.move.from = oi_cur_access(&p->cur);
    if (!p->cur.failed && oi_cur_expect(&p->cur, OI_TOK_SHR, "'>>' and the target"))
        n->as.move.to = oi_cur_access(&p->cur);
}

/* ("increment"|"decrement") [ INT | IDENT ] IDENT */
static void count(oi_parser *p, oi_node *n)
{
    n->as.move.amount = 1;
    if (p->cur.tok->kind == OI_TOK_INT)
        oi_cur_int(&p->cur, &n->as.move.amount);
    else if (p->cur.tok->kind == OI_TOK_IDENT && p->cur.tok[1].kind == OI_TOK_IDENT)
        n->as.move.amount_name = oi_cur_name(&p->cur, "an amount");
    if (oi_cur_is(&p->cur, '-')) {
        oi_cur_error(&p->cur, p->cur.tok, "E001", "the amount cannot be negative");
        oi_diag_hint(p->cur.diag, "use cache.%s",
                     n->kind == OI_NODE_CACHE_INCREMENT ? "decrement" : "increment");
    }
    const oi_token *first = p->cur.tok;
    if (!p->cur.failed)
        n->as.move.to.base = oi_cur_name(&p->cur, "a persistent variable");
    n->as.move.to.span = oi_cur_span_from(&p->cur, first);
}

static void reset(oi_parser *p, oi_node *n)
{
    n->as.move.to = oi_cur_access(&p->cur);
}

/* cache = "cache" "." ( "read" … | "write" … | "increment" … | "decrement" … | "reset" … ) */
static void cache(oi_parser *p, oi_node *n)
{
    static const struct {
        const char *word;
        oi_node_kind kind;
        void (*rest)(oi_parser *, oi_node *);
    } verbs[] = {
        {"read", OI_NODE_CACHE_READ, move},
        {"write", OI_NODE_CACHE_WRITE, move},
        {"increment", OI_NODE_CACHE_INCREMENT, count},
        {"decrement", OI_NODE_CACHE_DECREMENT, count},
        {"reset", OI_NODE_CACHE_RESET, reset},
    };
    const char *words[OI_COUNT(verbs)];
    if (!oi_cur_expect(&p->cur, '.', "'.' and a cache operation"))
        return;
    for (size_t i = 0; i < OI_COUNT(verbs); i++) {
        words[i] = verbs[i].word;
        if (!oi_cur_is_word(&p->cur, verbs[i].word))
            continue;
        p->cur.tok++;
        n->kind = verbs[i].kind;
        verbs[i].rest(p, n);
        return;
    }
    const oi_token *t = p->cur.tok;
    oi_cur_unexpected(&p->cur, "read, write, increment, decrement or reset");
    oi_parse_suggest(p, t, words, OI_COUNT(words));
}

/* branch = "branch" ( IDENT | IDENT IDENT IDENT ) ";" */
static void branch(oi_parser *p, oi_node *n)
{
    oi_name names[3];
    size_t n_names = 0;
    const oi_token *first = p->cur.tok;
    do
        names[n_names++] = oi_cur_name(&p->cur, "a block or a condition");
    while (!p->cur.failed && n_names < 3 && p->cur.tok->kind == OI_TOK_IDENT);
    if (!p->cur.failed && n_names == 2) {
        oi_cur_error(&p->cur, first, "E003",
                     "branch takes one block, or a condition and two blocks");
        oi_diag_hint(p->cur.diag, "write: branch %s %s OTHER_BLOCK;", names[0].text, names[1].text);
        return;
    }
    n->as.branch.then_block = n_names == 3 ? names[1] : names[0];
    if (n_names == 3) {
        n->as.branch.cond = names[0];
        n->as.branch.else_block = names[2];
    }
}

/* target = IDENT | "cache" "." IDENT */
static oi_name target(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_name name = oi_cur_name(&p->cur, "an op name or a node kind");
    if (p->cur.failed || strcmp(name.text, "cache") != 0 || !oi_cur_accept(&p->cur, '.'))
        return name;
    oi_name verb = oi_cur_name(&p->cur, "a cache operation");
    char *text = oi_arena_printf(p->g->arena, "cache.%s", verb.text);
    return (oi_name){oi_graph_intern(p->g, text, strlen(text)), oi_cur_span_from(&p->cur, first)};
}

static oi_name dep_side(oi_parser *p, const char *word, const char *wanted)
{
    oi_name name = {.text = ""};
    if (!oi_cur_is_word(&p->cur, word)) {
        oi_cur_unexpected(&p->cur, wanted);
        return name;
    }
    p->cur.tok++;
    if (oi_cur_expect(&p->cur, '(', "'('"))
        name = target(p);
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, ')', "')'");
    return name;
}

/* dep = "dep" "after" "(" target ")" "before" "(" target ")" ";" */
static void dep(oi_parser *p, oi_node *n)
{
    n->as.dep.after = dep_side(p, "after", "'after(…)'");
    if (!p->cur.failed)
        n->as.dep.before = dep_side(p, "before", "'before(…)'");
}

/* yield = "yield" IDENT {"," IDENT};  await likewise */
static void names(oi_parser *p, oi_node *n)
{
    oi_parse_names(p, &n->as.list.names, "a variable");
}

/* return = "return" [ IDENT {"," IDENT} ] */
static void returns(oi_parser *p, oi_node *n)
{
    if (!oi_cur_is(&p->cur, ';'))
        names(p, n);
}

static void nothing(oi_parser *p, oi_node *n)
{
    (void)p, (void)n;
}

static void loop_header(oi_parser *p, oi_node *n)
{
    n->name = oi_cur_name(&p->cur, "a loop name");
    if (p->cur.failed || !oi_cur_expect(&p->cur, '(', "'('"))
        return;
    n->as.loop.index = oi_cur_name(&p->cur, "an index name");
    if (p->cur.failed)
        return;
    if (!oi_cur_is_word(&p->cur, "in")) {
        oi_cur_unexpected(&p->cur, "'in'");
        return;
    }
    p->cur.tok++;
    n->as.loop.start = oi_cur_iexpr(&p->cur);
    if (!p->cur.failed && oi_cur_expect(&p->cur, OI_TOK_DOTDOT, "'..' and the end"))
        n->as.loop.end = oi_cur_iexpr(&p->cur);
    if (!p->cur.failed && oi_cur_expect(&p->cur, ')', "')'"))
        oi_cur_expect(&p->cur, '{', "'{'");
}

/* The loop up to its `{`; OI_NO_ID after an error. */
static uint32_t loop_open(oi_parser *p, oi_node *n, const oi_token *first)
{
    loop_header(p, n);
    if (!p->cur.failed && p->loop_depth >= OI_MAX_LOOP_DEPTH)
        oi_cur_error(&p->cur, first, "E001", "loops are nested more than %u deep",
                     OI_MAX_LOOP_DEPTH);
    return p->cur.failed ? OI_NO_ID : oi_graph_add_node(p->g, n);
}

/* loop = "loop" IDENT "(" IDENT "in" iexpr ".." iexpr ")" "{" { node } "}" */
static void loop(oi_parser *p, oi_node *n, const oi_token *first)
{
    uint32_t id = loop_open(p, n, first), outer = p->parent;
    if (id == OI_NO_ID)
        return;
    oi_parse_item_mark(p, OI_ITEM_LOOP, id, first);
    p->parent = id;
    p->loop_depth++;
    while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag))
        oi_parse_node(p);
    p->loop_depth--;
    p->parent = outer;
    oi_graph_number(p->g, id); /* after its body */
    const oi_token *close = p->cur.tok;
    oi_cur_expect(&p->cur, '}', "'}' at the end of the loop");
    oi_parse_item_mark(p, OI_ITEM_CLOSE, id, close);
}

static const struct {
    const char *word;
    oi_node_kind kind;
    void (*rest)(oi_parser *, oi_node *);
} statements[] = {
    {"op", OI_NODE_OP, op},
    {"assign", OI_NODE_ASSIGN, assign},
    {"cache", OI_NODE_CACHE_READ, cache},
    {"branch", OI_NODE_BRANCH, branch},
    {"transfer", OI_NODE_TRANSFER, move},
    {"yield", OI_NODE_YIELD, names},
    {"await", OI_NODE_AWAIT, names},
    {"dep", OI_NODE_DEP, dep},
    {"barrier", OI_NODE_BARRIER, nothing},
    {"return", OI_NODE_RETURN, returns},
    {"loop", OI_NODE_LOOP, NULL},
};

static oi_node new_node(const oi_parser *p, size_t which, const oi_token *first)
{
    return (oi_node){.kind = statements[which].kind,
                     .block = p->block,
                     .parent = p->parent,
                     .span = oi_cur_span(&p->cur, first)};
}

static void statement(oi_parser *p, size_t which, const oi_token *first)
{
    oi_node n = new_node(p, which, first);
    if (!statements[which].rest) {
        loop(p, &n, first);
        return;
    }
    statements[which].rest(p, &n);
    if (p->cur.failed || !oi_cur_expect(&p->cur, ';', "';'"))
        return;
    uint32_t id = oi_graph_add_node(p->g, &n);
    oi_graph_number(p->g, id);
    oi_parse_item_mark(p, OI_ITEM_NODE, id, first);
}

/* The statement that the current word begins, taken; OI_COUNT(statements) after an error. */
static size_t keyword(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    const char *words[OI_COUNT(statements)];
    for (size_t i = 0; i < OI_COUNT(statements); i++) {
        words[i] = statements[i].word;
        if (oi_cur_is_word(&p->cur, words[i])) {
            p->cur.tok++;
            return i;
        }
    }
    oi_cur_unexpected(&p->cur, "a statement or '}'");
    oi_parse_suggest(p, first, words, OI_COUNT(words));
    return OI_COUNT(statements);
}

/* node = assign | op | loop | cache | branch | transfer | yield | await | dep | "barrier" ";" |
 * return */
void oi_parse_node(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    size_t which = keyword(p);
    if (which < OI_COUNT(statements))
        statement(p, which, first);
    if (p->cur.failed)
        oi_parse_resync(p);
}

bool oi_parse_one_node(oi_parser *p, bool want_loop, uint32_t *open_loop)
{
    const oi_token *first = p->cur.tok;
    size_t which = keyword(p);
    if (which == OI_COUNT(statements))
        return false;
    bool is_loop = !statements[which].rest;
    if (is_loop != want_loop) {
        oi_cur_error(&p->cur, first, "E001", "open loops with oi_build_loop");
        return false;
    }
    oi_node n = new_node(p, which, first);
    uint32_t id = OI_NO_ID;
    if (is_loop) {
        id = loop_open(p, &n, first);
    } else {
        statements[which].rest(p, &n);
        if (!p->cur.failed)
            oi_cur_expect(&p->cur, ';', "';'");
    }
    if (!p->cur.failed && p->cur.tok->kind != OI_TOK_END)
        oi_cur_unexpected(&p->cur, "the end of the text");
    if (p->cur.failed) {
        if (id != OI_NO_ID)
            oi_graph_drop_node(p->g);
        return false;
    }
    if (is_loop)
        *open_loop = id;
    else
        oi_graph_number(p->g, oi_graph_add_node(p->g, &n));
    return true;
}

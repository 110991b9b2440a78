/* opsgen_body.c: the bodies of composite ops: read, checked against the rows they call, and printed
 * as the tables of src/base/body.h.
 *
 * "body" is a list of statements, or a list of {"when": condition, "body": statements}. Every name
 * must be known, every op and attribute exist, every output be assigned; a body calls composites
 * only of rows before its own, so that none contains itself. */
#include "opsgen.h"

#include "base/body.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define MAX_NODES 800
#define MAX_STEPS 120
#define MAX_SLOTS 120
#define MAX_DEPTH 40

typedef struct reader {
    json *row, *ops;
    size_t row_number;
    const char *p, *statement;
    oi_body_node nodes[MAX_NODES];
    char *texts[MAX_NODES]; /* of words */
    size_t n_nodes;
    oi_body_step steps[MAX_STEPS];
    const char *step_ops[MAX_STEPS];
    size_t n_steps;
    char slots[MAX_SLOTS][64];
    bool assigned[MAX_SLOTS];
    size_t n_slots, n_fixed;
    bool asks_shape; /* within dim(x, 0) and its like: an output has its declared shape */
    char loops[OI_BODY_LOOPS][64];
    size_t n_loops, n_open;
    char lets[OI_BODY_LETS][64];
    size_t n_lets;
    unsigned depth, n_errors;
} reader;

static void wrong(reader *r, const char *what, const char *text)
{
    if (r->n_errors++ == 0)
        gen_complain("body: %s '%s' in \"%s\"", what, text, r->statement);
}

/* -- names of rows -- */

static json *find_row(reader *r, const char *name, size_t *number)
{
    for (size_t i = 0; i < json_object_array_length(r->ops); i++) {
        json *row = json_object_array_get_idx(r->ops, i), *aliases = NULL;
        *number = i;
        if (strcmp(gen_get_string(row, "name", false), name) == 0)
            return row;
        if (!json_object_object_get_ex(row, "aliases", &aliases))
            continue;
        for (size_t k = 0; k < json_object_array_length(aliases); k++)
            if (strcmp(json_object_get_string(json_object_array_get_idx(aliases, k)), name) == 0)
                return row;
    }
    return NULL;
}

/* The number of an attribute of a row, or -1. */
static int find_attr(json *row, const char *name)
{
    json *attrs = NULL;
    int i = 0;
    if (!json_object_object_get_ex(row, "attrs", &attrs))
        return -1;
    json_object_object_foreach(attrs, key, a)
    {
        json *alias = NULL;
        if (strcmp(key, name) == 0)
            return i;
        if (json_object_is_type(a, json_type_object) &&
            json_object_object_get_ex(a, "alias", &alias) &&
            strcmp(json_object_get_string(alias), name) == 0)
            return i;
        i++;
    }
    return -1;
}

static size_t find_slot(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->n_slots; i++)
        if (strcmp(r->slots[i], name) == 0)
            return i;
    return MAX_SLOTS;
}

static size_t slot_for(reader *r, const char *name)
{
    size_t i = find_slot(r, name);
    if (i < MAX_SLOTS)
        return i;
    if (r->n_slots == MAX_SLOTS) {
        wrong(r, "too many values at", name);
        return 0;
    }
    snprintf(r->slots[r->n_slots], sizeof r->slots[0], "%s", name);
    r->assigned[r->n_slots] = false;
    return r->n_slots++;
}

/* -- tokens -- */

static void blanks(reader *r)
{
    while (*r->p == ' ')
        r->p++;
}

static bool take(reader *r, const char *token)
{
    blanks(r);
    size_t n = strlen(token);
    if (strncmp(r->p, token, n) != 0 ||
        (isalpha((unsigned char)*token) && (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')))
        return false;
    r->p += n;
    return true;
}

static void want(reader *r, const char *token)
{
    if (!take(r, token))
        wrong(r, "missing", token);
}

static bool name(reader *r, char out[64])
{
    blanks(r);
    size_t n = 0;
    while (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')
        n++;
    snprintf(out, 64, "%.*s", (int)n, r->p);
    if (n == 0 || n > 63 || isdigit((unsigned char)*r->p)) {
        wrong(r, "wanted a name at", r->p);
        return false;
    }
    r->p += n;
    return true;
}

/* -- expressions -- */

static uint16_t new_node(reader *r, oi_body_code code)
{
    if (r->n_nodes == MAX_NODES) {
        wrong(r, "too long", "");
        return 0;
    }
    r->nodes[r->n_nodes] = (oi_body_node){.code = code};
    return (uint16_t)r->n_nodes++;
}

static uint16_t expression(reader *r);

/* arguments = [expression {"," expression}] close */
static void arguments(reader *r, uint16_t at, const char *close)
{
    while (!r->n_errors && !take(r, close)) {
        oi_body_node *node = &r->nodes[at];
        if (node->n_args)
            want(r, ",");
        uint16_t arg = expression(r);
        node = &r->nodes[at];
        if (node->n_args == OI_BODY_ARGS)
            wrong(r, "too many arguments before", close);
        else
            node->args[node->n_args++] = arg;
    }
}

static const struct function {
    const char *text;
    oi_body_code code;
    uint8_t n_args;
} functions[] = {
#define FUNCTION(name, text, n) {text, OI_BODY_##name, n},
    OI_BODY_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static uint16_t call(reader *r, const char *text)
{
    for (size_t i = 0; i < OI_COUNT(functions); i++)
        if (strcmp(functions[i].text, text) == 0) {
            oi_body_code code = functions[i].code;
            uint16_t at = new_node(r, code);
            bool outer = r->asks_shape;
            r->asks_shape = code == OI_BODY_DIM || code == OI_BODY_DIMS || code == OI_BODY_SIZE ||
                            code == OI_BODY_RANK;
            arguments(r, at, ")");
            r->asks_shape = outer;
            if (r->nodes[at].n_args != functions[i].n_args)
                wrong(r, "wrong number of arguments for", text);
            return at;
        }
    wrong(r, "unknown function", text);
    return 0;
}

/* A truth, a loop's counter, a value, an attribute or an element type. */
static uint16_t named(reader *r, const char *text)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        uint16_t at = new_node(r, OI_BODY_TRUTH);
        r->nodes[at].number = text[0] == 't';
        return at;
    }
    if (strcmp(text, "inf") == 0) {
        uint16_t at = new_node(r, OI_BODY_NUMBER);
        r->nodes[at].number = HUGE_VAL;
        return at;
    }
    for (size_t i = 0; i < r->n_open; i++)
        if (strcmp(r->loops[i], text) == 0) {
            uint16_t at = new_node(r, OI_BODY_COUNT);
            r->nodes[at].index = (uint16_t)i;
            return at;
        }
    for (size_t i = 0; i < r->n_lets; i++)
        if (strcmp(r->lets[i], text) == 0) {
            uint16_t at = new_node(r, OI_BODY_NAMED);
            r->nodes[at].index = (uint16_t)i;
            return at;
        }
    if (strcmp(text, "float") == 0)
        return new_node(r, OI_BODY_DTYPE);
    size_t slot = find_slot(r, text);
    int attr = find_attr(r->row, text);
    oi_dtype t = oi_dtype_find(text);
    if (slot < MAX_SLOTS && !r->assigned[slot] && !(r->asks_shape && slot < r->n_fixed))
        wrong(r, "no value yet:", text);
    if (slot == MAX_SLOTS && attr < 0 && t == OI_NONE)
        wrong(r, "unknown name", text);
    uint16_t at = new_node(r, slot < MAX_SLOTS ? OI_BODY_SLOT
                              : attr >= 0      ? OI_BODY_ATTR
                                               : OI_BODY_DTYPE);
    r->nodes[at].index = (uint16_t)(slot < MAX_SLOTS ? slot : attr >= 0 ? (size_t)attr : (size_t)t);
    return at;
}

/* word = '"' letters '"' */
static uint16_t word(reader *r)
{
    const char *end = strchr(r->p, '"');
    uint16_t at = new_node(r, OI_BODY_WORD);
    if (!end) {
        wrong(r, "missing", "\"");
        return at;
    }
    r->texts[at] = strndup(r->p, (size_t)(end - r->p));
    r->nodes[at].text = r->texts[at];
    r->p = end + 1;
    return at;
}

/* primary = number | word | list | name ["(" arguments] | "(" expression ")" */
static uint16_t primary(reader *r)
{
    char text[64];
    blanks(r);
    if (isdigit((unsigned char)*r->p)) {
        char *end;
        uint16_t at = new_node(r, OI_BODY_NUMBER);
        r->nodes[at].number = strtod(r->p, &end);
        r->nodes[at].is_whole = strcspn(r->p, ".e") >= (size_t)(end - r->p);
        r->p = end;
        return at;
    }
    if (take(r, "\""))
        return word(r);
    if (take(r, "[")) {
        uint16_t at = new_node(r, OI_BODY_LIST);
        arguments(r, at, "]");
        return at;
    }
    if (take(r, "(")) {
        uint16_t at = expression(r);
        want(r, ")");
        return at;
    }
    if (!name(r, text))
        return 0;
    return take(r, "(") ? call(r, text) : named(r, text);
}

static uint16_t join(reader *r, oi_body_code code, uint16_t a, uint16_t b, uint8_t n)
{
    uint16_t at = new_node(r, code);
    r->nodes[at].args[0] = a;
    r->nodes[at].args[1] = b;
    r->nodes[at].n_args = n;
    return at;
}

/* unary = ("-" | "!") unary | primary */
static uint16_t unary(reader *r)
{
    uint16_t at;
    if (r->n_errors || ++r->depth > MAX_DEPTH) {
        wrong(r, "too deep", "");
        return 0;
    }
    if (take(r, "-"))
        at = join(r, OI_BODY_NEG, unary(r), 0, 1);
    else if (take(r, "!"))
        at = join(r, OI_BODY_NOT, unary(r), 0, 1);
    else
        at = primary(r);
    r->depth--;
    return at;
}

/* By rising strength; `<=` before `<`. */
static const struct binary {
    const char *token;
    oi_body_code code;
    int level;
} binaries[] = {
    {"||", OI_BODY_OR, 0}, {"&&", OI_BODY_AND, 1}, {"==", OI_BODY_EQ, 2}, {"!=", OI_BODY_NE, 2},
    {"<=", OI_BODY_LE, 3}, {">=", OI_BODY_GE, 3},  {"<", OI_BODY_LT, 3},  {">", OI_BODY_GT, 3},
    {"+", OI_BODY_ADD, 4}, {"-", OI_BODY_SUB, 4},  {"*", OI_BODY_MUL, 5}, {"/", OI_BODY_DIV, 5},
    {"%", OI_BODY_REM, 5},
};

static const struct binary *operator_at(reader *r, int level)
{
    blanks(r);
    for (size_t i = 0; i < OI_COUNT(binaries); i++)
        if (binaries[i].level == level && strncmp(r->p, ">>", 2) != 0 && take(r, binaries[i].token))
            return &binaries[i];
    return NULL;
}

static uint16_t binary(reader *r, int level)
{
    if (level > 5)
        return unary(r);
    uint16_t at = binary(r, level + 1);
    const struct binary *b;
    while (!r->n_errors && (b = operator_at(r, level)) != NULL)
        at = join(r, b->code, at, binary(r, level + 1), 2);
    return at;
}

/* expression = operators of C by their usual strength */
static uint16_t expression(reader *r)
{
    return binary(r, 0);
}

/* -- statements -- */

static oi_body_step *new_step(reader *r, oi_body_kind kind)
{
    if (r->n_steps == MAX_STEPS) {
        wrong(r, "too many statements", "");
        return &r->steps[0];
    }
    r->step_ops[r->n_steps] = "";
    r->steps[r->n_steps] = (oi_body_step){.kind = kind};
    return &r->steps[r->n_steps++];
}

/* How many a row takes or gives: the last may repeat. */
static void check_arity(reader *r, json *row, const char *key, size_t n)
{
    json *ports = NULL;
    size_t most = 1, least = 1;
    if (json_object_object_get_ex(row, key, &ports)) {
        most = json_object_array_length(ports);
        least = 0;
        for (size_t i = 0; i < json_object_array_length(ports); i++) {
            json *p = json_object_array_get_idx(ports, i);
            if (json_object_is_type(p, json_type_object))
                json_object_object_get_ex(p, "name", &p);
            const char *text = json_object_get_string(p);
            char mark = *text ? text[strlen(text) - 1] : '\0';
            least += mark != '?' && mark != '*';
            if (mark == '*' || mark == '+')
                most = OI_BODY_ARGS;
        }
    }
    if (n < least || n > most)
        wrong(r, "wrong number of", key);
}

/* argument = name "=" expression | expression */
static void argument(reader *r, oi_body_step *s, json *row)
{
    char text[64];
    const char *start = r->p;
    blanks(r);
    if (isalpha((unsigned char)*r->p) && name(r, text) && take(r, "=") && *r->p != '=') {
        int attr = find_attr(row, text);
        if (attr < 0)
            wrong(r, "the op has no attribute", text);
        uint16_t node = expression(r);
        if (s->n_attrs == OI_BODY_ATTRS)
            wrong(r, "too many attributes at", text);
        else
            s->attrs[s->n_attrs++] = (oi_body_attr){(uint16_t)attr, node};
        return;
    }
    r->p = start;
    uint16_t node = expression(r);
    if (s->n_attrs)
        wrong(r, "operands come before attributes:", start);
    if (s->n_in == OI_BODY_ARGS)
        wrong(r, "too many operands at", start);
    else
        s->in[s->n_in++] = node;
}

/* call = "op" name "(" [argument {"," argument}] ")" ">>" name {"," name} ";" */
static void call_statement(reader *r)
{
    char text[64];
    size_t number = 0;
    oi_body_step *s = new_step(r, OI_BODY_CALL);
    if (!name(r, text))
        return;
    json *row = find_row(r, text, &number);
    if (!row) {
        wrong(r, "unknown op", text);
        return;
    }
    if (strcmp(gen_get_string(row, "class", false), "composite") == 0 && number >= r->row_number)
        wrong(r, "a composite must come before the one that calls it:", text);
    r->step_ops[s - r->steps] = gen_get_string(row, "name", true);
    want(r, "(");
    for (bool first = true; !r->n_errors && !take(r, ")"); first = false) {
        if (!first)
            want(r, ",");
        argument(r, s, row);
    }
    want(r, ">>");
    do {
        if (!name(r, text))
            return;
        size_t slot = slot_for(r, text);
        if (slot < json_object_array_length(gen_get(r->row, "inputs", json_type_array, true)))
            wrong(r, "an input cannot be assigned:", text);
        if (s->n_out == OI_BODY_OUTS)
            wrong(r, "too many results at", text);
        else
            s->out[s->n_out++] = (uint16_t)slot;
    } while (!r->n_errors && take(r, ","));
    want(r, ";");
    for (size_t i = 0; i < s->n_out; i++)
        r->assigned[s->out[i]] = true;
    check_arity(r, row, "inputs", s->n_in);
    check_arity(r, row, "outputs", s->n_out);
}

/* check = "check" name "<=" expression ";" */
static void check_statement(reader *r)
{
    char text[64];
    oi_body_step *s = new_step(r, OI_BODY_CHECK);
    if (!name(r, text))
        return;
    s->in[0] = named(r, text);
    if (r->nodes[s->in[0]].code != OI_BODY_ATTR)
        wrong(r, "only an attribute can be checked:", text);
    want(r, "<=");
    s->in[1] = expression(r);
    s->n_in = 2;
    want(r, ";");
}

/* append = "append" name "=" name ";" */
static void append_statement(reader *r)
{
    char text[64];
    oi_body_step *s = new_step(r, OI_BODY_APPEND);
    if (!name(r, text))
        return;
    s->out[0] = (uint16_t)slot_for(r, text);
    s->n_out = 1;
    want(r, "=");
    s->in[0] = expression(r);
    s->n_in = 1;
    if (r->nodes[s->in[0]].code != OI_BODY_SLOT)
        wrong(r, "only a value can be appended to", text);
    r->assigned[s->out[0]] = true;
    want(r, ";");
}

/* let = "let" name "=" expression ";" */
static void let_statement(reader *r)
{
    char text[64];
    oi_body_step *s = new_step(r, OI_BODY_LET);
    if (!name(r, text))
        return;
    want(r, "=");
    s->in[0] = expression(r);
    s->n_in = 1;
    want(r, ";");
    if (r->n_lets == OI_BODY_LETS || find_slot(r, text) < MAX_SLOTS) {
        wrong(r, "too many names, or taken:", text);
        return;
    }
    s->out[0] = (uint16_t)r->n_lets;
    s->n_out = 1;
    snprintf(r->lets[r->n_lets++], sizeof r->lets[0], "%s", text);
}

static size_t statements(reader *r, json *list, size_t i, bool is_inner);

/* if = "if" expression "{" statements "}" */
static size_t if_statement(reader *r, json *list, size_t i)
{
    oi_body_step *s = new_step(r, OI_BODY_IF);
    size_t at = (size_t)(s - r->steps);
    s->in[0] = expression(r);
    s->n_in = 1;
    want(r, "{");
    i = statements(r, list, i + 1, true);
    r->steps[at].n_steps = (uint16_t)(r->n_steps - at - 1);
    return i;
}

/* for = "for" name "in" expression "{" statements "}" */
static size_t for_statement(reader *r, json *list, size_t i)
{
    char text[64];
    oi_body_step *s = new_step(r, OI_BODY_FOR);
    size_t at = (size_t)(s - r->steps);
    if (!name(r, text) || r->n_open == OI_BODY_LOOPS) {
        wrong(r, "too many loops at", text);
        return i;
    }
    want(r, "in");
    s->in[0] = expression(r);
    s->n_in = 1;
    want(r, "{");
    s->out[0] = (uint16_t)r->n_open;
    snprintf(r->loops[r->n_open++], sizeof r->loops[0], "%s", text);
    r->n_loops = r->n_open > r->n_loops ? r->n_open : r->n_loops;
    i = statements(r, list, i + 1, true);
    r->n_open--;
    r->steps[at].n_steps = (uint16_t)(r->n_steps - at - 1);
    return i;
}

static size_t statements(reader *r, json *list, size_t i, bool is_inner)
{
    for (; i < json_object_array_length(list) && !r->n_errors; i++) {
        json *s = json_object_array_get_idx(list, i);
        if (!json_object_is_type(s, json_type_string)) {
            wrong(r, "a statement is a string", "");
            return i;
        }
        r->p = r->statement = json_object_get_string(s);
        if (take(r, "op"))
            call_statement(r);
        else if (take(r, "check"))
            check_statement(r);
        else if (take(r, "let"))
            let_statement(r);
        else if (take(r, "if"))
            i = if_statement(r, list, i);
        else if (take(r, "append"))
            append_statement(r);
        else if (take(r, "for"))
            i = for_statement(r, list, i);
        else if (is_inner && take(r, "}"))
            return i;
        else
            wrong(r, "not a statement:", r->p);
        blanks(r);
        if (*r->p)
            wrong(r, "what is this:", r->p);
    }
    if (is_inner)
        wrong(r, "missing", "}");
    return i;
}

/* -- printing -- */

static void put_nodes(FILE *f, const reader *r, size_t variant)
{
    fprintf(f, "static const oi_body_node body_nodes_%s_%zu[] = {\n", gen.where_op, variant);
    for (size_t i = 0; i < r->n_nodes; i++) {
        const oi_body_node *n = &r->nodes[i];
        fprintf(
            f,
            "    {.code = (oi_body_code)%d, .is_whole = %d, .n_args = %u, .index = %u, .args = {",
            (int)n->code, n->is_whole, n->n_args, n->index);
        for (size_t k = 0; k < OI_BODY_ARGS; k++)
            fprintf(f, "%s%u", k ? ", " : "", n->args[k]);
        if (isinf(n->number))
            fputs("}, .number = INFINITY", f);
        else
            fprintf(f, "}, .number = %.17g", n->number);
        if (n->text) {
            fputs(", .text = ", f);
            gen_put_string(f, n->text);
        }
        fputs("},\n", f);
    }
    fputs("    {.code = OI_BODY_NUMBER},\n};\n", f);
}

static void put_steps(FILE *f, const reader *r, size_t variant)
{
    fprintf(f, "static const oi_body_step body_steps_%s_%zu[] = {\n", gen.where_op, variant);
    for (size_t i = 0; i < r->n_steps; i++) {
        const oi_body_step *s = &r->steps[i];
        fprintf(f, "    {.kind = (oi_body_kind)%d, .op = ", (int)s->kind);
        if (*r->step_ops[i]) {
            fputs("OI_OP_", f);
            gen_put_upper(f, r->step_ops[i]);
        } else {
            fputc('0', f);
        }
        fputs(", .in = {0", f);
        for (size_t k = 0; k < s->n_in; k++)
            fprintf(f, "%s%u", k ? ", " : " + ", s->in[k]);
        fputs("}, .out = {0", f);
        for (size_t k = 0; k < s->n_out || (s->kind == OI_BODY_FOR && k == 0); k++)
            fprintf(f, "%s%u", k ? ", " : " + ", s->out[k]);
        fputs(s->n_attrs ? "}, .attrs = {" : "}, .attrs = {{0, 0}", f);
        for (size_t k = 0; k < s->n_attrs; k++)
            fprintf(f, "%s{%u, %u}", k ? ", " : "", s->attrs[k].attr, s->attrs[k].node);
        fprintf(f, "}, .n_in = %u, .n_out = %u, .n_attrs = %u, .n_steps = %u},\n", s->n_in,
                s->n_out, s->n_attrs, s->n_steps);
    }
    fputs("};\n", f);
}

static void start(reader *r, json *row, json *ops, size_t number)
{
    static const char *const keys[] = {"inputs", "outputs"};
    memset(r, 0, sizeof *r);
    r->row = row;
    r->ops = ops;
    r->row_number = number;
    for (size_t k = 0; k < 2; k++) {
        json *ports = gen_get(row, keys[k], json_type_array, false);
        for (size_t i = 0; ports && i < json_object_array_length(ports); i++) {
            json *p = json_object_array_get_idx(ports, i);
            const char *text = json_object_is_type(p, json_type_object)
                                   ? gen_get_string(p, "name", true)
                                   : json_object_get_string(p);
            char own[64];
            snprintf(own, sizeof own, "%.*s", (int)strcspn(text, "?*+"), text);
            r->assigned[slot_for(r, own)] = k == 0;
        }
        if (k == 1 && !ports)
            slot_for(r, "out");
    }
    r->n_fixed = r->n_slots;
}

static void put_variant(FILE *f, FILE *table, reader *r, json *list, const char *when, size_t v)
{
    uint16_t condition = OI_BODY_NONE;
    if (*when) {
        r->p = r->statement = when;
        condition = expression(r);
        if (!r->n_errors && *r->p)
            wrong(r, "not understood:", r->p);
    }
    statements(r, list, 0, false);
    size_t n_inputs = json_object_array_length(gen_get(r->row, "inputs", json_type_array, true));
    for (size_t i = n_inputs; i < r->n_fixed; i++)
        if (!r->assigned[i])
            wrong(r, "output is never assigned:", r->slots[i]);
    put_nodes(f, r, v);
    put_steps(f, r, v);
    fprintf(table, "    {.when = %u, .when_text = ", condition);
    gen_put_string(table, when);
    fputs(", .text = (const char *const[]){", table);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        gen_put_string(table, json_object_get_string(json_object_array_get_idx(list, i)));
        fputs(", ", table);
    }
    fprintf(table,
            "NULL}, .nodes = body_nodes_%s_%zu, .steps = body_steps_%s_%zu, .n_steps = %zu, "
            ".n_slots = %zu, .n_loops = %zu, .slots = (const char *const[]){",
            gen.where_op, v, gen.where_op, v, r->n_steps, r->n_slots, r->n_loops);
    for (size_t i = 0; i < r->n_slots; i++)
        fprintf(table, "\"%s\", ", r->slots[i]);
    fputs("NULL}},\n", table);
    for (size_t i = 0; i < r->n_nodes; i++)
        free(r->texts[i]);
}

unsigned gen_put_bodies(FILE *f, json *row, json *ops, size_t number)
{
    static const char *const known[] = {"when", "body", NULL};
    static reader r;
    json *body = gen_get(row, "body", json_type_array, false);
    char *table_text = NULL;
    size_t table_size = 0, n = 0;
    if (!body)
        return 0;
    if (strcmp(gen_get_string(row, "class", true), "composite") != 0)
        gen_complain("\"body\" is for class composite");
    bool variants = json_object_is_type(json_object_array_get_idx(body, 0), json_type_object);
    FILE *table = open_memstream(&table_text, &table_size);
    if (!table)
        return 0;
    for (; n < (variants ? json_object_array_length(body) : 1); n++) {
        json *v = variants ? json_object_array_get_idx(body, n) : NULL;
        if (v)
            gen_check_keys(v, known);
        json *list = v ? gen_get(v, "body", json_type_array, true) : body;
        start(&r, row, ops, number);
        if (list)
            put_variant(f, table, &r, list, v ? gen_get_string(v, "when", false) : "", n);
    }
    fclose(table);
    fprintf(f, "static const oi_body bodies_%s[] = {\n%s};\n", gen.where_op, table_text);
    free(table_text);
    return (unsigned)n;
}

/* opsgen_meaning.c: what an op computes, as C initialisers.
 *
 * A part of a meaning ("expr", "combine" ...) is one text, or one per set of dtypes:
 * {"F": text, "*": text}, where "F > S U" also says what the result is. Every text must parse. */
#include "opsgen.h"

#include "kernel/meaning.h"

#include <inttypes.h>
#include <math.h>

#define ALL_DTYPES 0x7fffffffu

void gen_check_row_keys(json *row, const char *const *known)
{
    json_object_object_foreach(row, key, value)
    {
        (void)value;
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i] && !gen_has_word(gen.vocab.parts, key))
            gen_complain("unknown key '%s'", key);
    }
}

static uint32_t dtype_set(const char *text, size_t n)
{
    char word[128];
    while (n && text[n - 1] == ' ')
        n--;
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    return strcmp(word, "*") == 0 ? ALL_DTYPES : gen_dtype_set(word, false, NULL);
}

/* A name or a word of the text, which is a string of its own. */
static void put_node_text(FILE *f, const char *text, uint32_t len)
{
    fprintf(f, ".text = \"%.*s\", .len = %" PRIu32, (int)len, text, len);
}

static void put_node(FILE *f, const oi_m_node *n)
{
    static const char *const kinds[] = {[OI_M_NUMBER] = "NUMBER",
                                        [OI_M_BOOL] = "BOOL",
                                        [OI_M_WORD] = "WORD",
                                        [OI_M_NAME] = "NAME",
                                        [OI_M_CALL] = "CALL"};
    fprintf(f, "        {.kind = OI_M_%s, ", kinds[n->kind]);
    if (n->kind == OI_M_NAME || n->kind == OI_M_WORD)
        put_node_text(f, n->text, n->len);
    else if (n->kind == OI_M_CALL) {
        fputs(".helper = OI_H_", f);
        gen_put_upper(f, oi_m_helpers[n->helper].name);
        fprintf(f, ", .n_args = %u, .args = {%u, %u, %u}", n->n_args, n->args[0], n->args[1],
                n->args[2]);
    } else if (isinf(n->number))
        fprintf(f, ".number = %sHUGE_VAL", n->number < 0 ? "-" : "");
    else
        fprintf(f, ".number = %.17g", n->number);
    fputs("},\n", f);
}

/* The instructions of a text, as an initialiser. */
static void put_expr(FILE *f, const oi_meaning *m)
{
    fputs("     {.nodes = (const oi_m_node[]){\n", f);
    for (size_t i = 0; i < m->n_nodes; i++)
        put_node(f, &m->nodes[i]);
    fprintf(f, "      }, .n_nodes = %zu, .root = %u", m->n_nodes, m->root);
    if (m->n_lets)
        fprintf(f, ", .n_lets = %zu, .lets = (const oi_m_let[]){\n", m->n_lets);
    for (size_t i = 0; i < m->n_lets; i++) {
        fputs("        {", f);
        put_node_text(f, m->lets[i].text, m->lets[i].len);
        fprintf(f, ", .node = %u},\n", m->lets[i].node);
    }
    fputs(m->n_lets ? "      }}" : "}", f);
}

static void put_meaning(FILE *f, const char *part, const char *dtypes, json *value)
{
    static oi_meaning parsed;
    if (!json_object_is_type(value, json_type_string)) {
        gen_complain("\"%s\" wants a text, or an object of dtypes and texts", part);
        return;
    }
    const char *text = json_object_get_string(value), *arrow = strstr(dtypes, "> ");
    if (!oi_meaning_parse(text, &parsed))
        gen_complain("\"%s\": %s", part, parsed.error);
    uint32_t of = dtype_set(dtypes, arrow ? (size_t)(arrow - dtypes) : strlen(dtypes));
    uint32_t to = arrow ? dtype_set(arrow + 2, strlen(arrow + 2)) : ALL_DTYPES;
    fputs("    {OI_PART_", f);
    gen_put_upper(f, part);
    fprintf(f, ", 0x%08" PRIx32 "u, 0x%08" PRIx32 "u, ", of, to);
    gen_put_string(f, text);
    fputs(",\n", f);
    put_expr(f, &parsed);
    fputs("},\n", f);
}

unsigned gen_put_meanings(FILE *f, json *row)
{
    unsigned n = 0;
    json_object_object_foreach(gen.vocab.parts, part, doc)
    {
        (void)doc;
        json *value = NULL;
        if (!json_object_object_get_ex(row, part, &value))
            continue;
        if (n == 0)
            fprintf(f, "static const oi_op_meaning meanings_%s[] = {\n", gen.where_op);
        if (!json_object_is_type(value, json_type_object)) {
            put_meaning(f, part, "*", value);
            n++;
            continue;
        }
        json_object_object_foreach(value, dtypes, text)
        {
            put_meaning(f, part, dtypes, text);
            n++;
        }
    }
    if (n)
        fputs("};\n", f);
    return n;
}

/* opsgen_text.c: complaints that name the row, checked reading of JSON, escaped writing of C. */
#include "opsgen.h"

#include <ctype.h>

/* -- complaints ------------------------------------------------------------------------------- */

void gen_complain(const char *fmt, ...)
{
    gen.n_errors++;
    fprintf(stderr, "%s: error: ", gen.json_path);
    if (*gen.where_op)
        fprintf(stderr, "op '%s': ", gen.where_op);
    if (*gen.where_part)
        fprintf(stderr, "'%s': ", gen.where_part);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* -- reading ---------------------------------------------------------------------------------- */

void gen_check_keys(json *obj, const char *const *known)
{
    json_object_object_foreach(obj, key, value)
    {
        (void)value;
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            gen_complain("unknown key '%s'", key);
    }
}

json *gen_get(json *obj, const char *key, json_type type, bool required)
{
    json *v = NULL;
    if (!json_object_object_get_ex(obj, key, &v)) {
        if (required)
            gen_complain("key '%s' is missing", key);
        return NULL;
    }
    if (json_object_get_type(v) != type) {
        gen_complain("key '%s' must be %s", key, json_type_to_name(type));
        return NULL;
    }
    return v;
}

const char *gen_get_string(json *obj, const char *key, bool required)
{
    json *v = gen_get(obj, key, json_type_string, required);
    return v ? json_object_get_string(v) : "";
}

bool gen_get_bool(json *obj, const char *key)
{
    json *v = gen_get(obj, key, json_type_boolean, false);
    return v && json_object_get_boolean(v);
}

bool gen_is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

bool gen_has_word(json *words, const char *word)
{
    return json_object_object_get_ex(words, word, NULL);
}

/* json-c silently keeps the last of two equal keys; look at the text to refuse them. A stack of
 * key sets is enough: objects here are small, so a linear search of the keys seen will do. */
void gen_check_duplicates(const char *text)
{
    struct {
        const char *at;
        size_t n;
        unsigned depth;
    } seen[4096];
    size_t n_seen = 0;
    unsigned depth = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            while (n_seen && seen[n_seen - 1].depth == depth)
                n_seen--;
            depth--;
        } else if (*p == '"') {
            const char *start = ++p;
            while (*p && *p != '"')
                p += *p == '\\' && p[1] ? 2 : 1;
            size_t n = (size_t)(p - start);
            const char *q = p + (*p == '"');
            q += strspn(q, " \t\r\n");
            if (*q == ':') {
                for (size_t i = n_seen; i-- > 0 && seen[i].depth == depth;)
                    if (seen[i].n == n && memcmp(seen[i].at, start, n) == 0)
                        gen_complain("key '%.*s' is given twice in one object", (int)n, start);
                if (n_seen == OI_COUNT(seen)) {
                    gen_complain("more than %zu open keys", n_seen);
                    return;
                }
                seen[n_seen].at = start;
                seen[n_seen].n = n;
                seen[n_seen++].depth = depth;
            }
            if (!*p)
                return;
        }
    }
}

/* -- sets of element types -------------------------------------------------------------------- */

uint32_t gen_dtype_set(const char *text, bool same_allowed, oi_dtype *first)
{
    uint32_t set = 0;
    if (first)
        *first = OI_NONE;
    if (!*text)
        gen_complain("a set of element types is empty");
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        oi_dtype t = oi_dtype_find(word);
        json *cls = NULL;
        if (strcmp(word, "same") == 0 && same_allowed)
            set |= GEN_SAME;
        else if (t != OI_NONE)
            set |= 1u << t;
        else if (json_object_object_get_ex(gen.vocab.dtypes, word, &cls) &&
                 json_object_get_string(cls) != text)
            set |= gen_dtype_set(json_object_get_string(cls), false, NULL);
        else
            gen_complain("'%s' is no element type or class of them", word);
        if (first && p == text)
            *first = t;
        p += n + (p[n] == ' ');
    }
    return set;
}

/* -- writing ---------------------------------------------------------------------------------- */

void gen_put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f || c == '?') /* '?': no trigraphs */
            fprintf(f, "\\%03o", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

void gen_put_upper(FILE *f, const char *s)
{
    for (; *s; s++)
        fputc(toupper((unsigned char)*s), f);
}

const char *gen_dtype_constant(oi_dtype t, char out[16])
{
    size_t n = (size_t)snprintf(out, 16, "OI_%s", oi_dtype_name(t));
    for (size_t i = 0; i < n; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
    return out;
}

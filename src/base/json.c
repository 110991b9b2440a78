/* json.c: reading JSON into json-c's tree. Its own parser is generous: it takes NaN, keeps the last
 * of two equal keys, saturates integers, cuts keys at NUL, and crashes when memory runs out at the
 * wrong moment. So the text is walked once by a strict scanner of our own that also knows the place
 * of every error; a second walk over text that is then known to be right builds the tree. */
#include "base/base.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

/* Objects with more keys than this get a map; below, comparing with each is cheaper. */
#define FEW_KEYS 8u

typedef struct scan {
    const char *name, *text;
    size_t n, at;
    oi_diag *d;
    oi_arena *a; /* scratch */
    unsigned depth;
    OI_VEC(const char *) keys; /* decoded, of all objects that are open */
    oi_status status;
} scan;

/* Records the error at bytes [start, end) and returns false. The line table is made only now: texts
 * without errors never pay for it. */
static bool fail(scan *s, size_t start, size_t end, const char *fmt, ...) OI_PRINTF(4, 5);

static bool fail(scan *s, size_t start, size_t end, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(s->a, fmt, args);
    va_end(args);
    oi_source src;
    oi_source_init(s->a, &src, s->name, s->text, s->n);
    oi_place at = {.source = &src, .span = oi_source_span(&src, start, end)};
    s->status = oi_diag_error(s->d, at, "E001", "%s", text);
    return false;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.';
}

/* "found X, wanted Y" for the token that begins here. */
static bool unexpected(scan *s, const char *wanted)
{
    size_t end = s->at;
    if (s->at == s->n)
        return fail(s, s->at, s->at, "the text ends here, but %s was wanted", wanted);
    while (end < s->n && end - s->at < 24 && is_word(s->text[end]))
        end++;
    uint32_t c = 0;
    if (end == s->at)
        end += oi_utf8_decode(s->text + s->at, s->n - s->at, &c);
    if (c && (c < 0x20 || c == 0x7f))
        return fail(s, s->at, end, "found the control character U+%04X, wanted %s", (unsigned)c,
                    wanted);
    if (s->text[s->at] == '\0')
        return fail(s, s->at, s->at + 1, "found a NUL byte, wanted %s", wanted);
    return fail(s, s->at, end, "found '%.*s', wanted %s", (int)(end - s->at), s->text + s->at,
                wanted);
}

static void skip_space(scan *s)
{
    while (s->at < s->n && (s->text[s->at] == ' ' || s->text[s->at] == '\t' ||
                            s->text[s->at] == '\n' || s->text[s->at] == '\r'))
        s->at++;
}

static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at == s->n || s->text[s->at] != c)
        return false;
    s->at++;
    return true;
}

/* -- numbers and literals -- */

static size_t digits_at(const scan *s, size_t at)
{
    size_t end = at;
    while (end < s->n && s->text[end] >= '0' && s->text[end] <= '9')
        end++;
    return end - at;
}

static bool check_integer(scan *s, size_t start, size_t end)
{
    bool negative = s->text[start] == '-';
    uint64_t v;
    if (oi_parse_u64(s->text + start + negative, end - start - negative, 10, &v) &&
        (!negative || v <= (uint64_t)1 << 63))
        return true;
    return fail(s, start, end, "integer does not fit in 64 bits");
}

static bool check_float(scan *s, size_t start, size_t end)
{
    bool negative = s->text[start] == '-';
    double v = 0;
    if (oi_parse_f64(s->text + start + negative, end - start - negative, &v) &&
        v <= 1.7976931348623157e308)
        return true;
    return fail(s, start, end, "number does not fit in a 64-bit float");
}

/* number = ["-"] ( "0" | "1".."9" {digit} ) [ "." digit {digit} ] [ ("e"|"E") [sign] digit {digit}
 * ] */
static bool number(scan *s)
{
    size_t start = s->at;
    s->at += s->text[s->at] == '-';
    size_t whole = digits_at(s, s->at);
    if (!whole)
        return unexpected(s, "a digit after '-'");
    if (whole > 1 && s->text[s->at] == '0')
        return fail(s, start, s->at + whole, "a number may not begin with 0");
    s->at += whole;
    bool real = false;
    if (s->at < s->n && s->text[s->at] == '.') {
        real = true;
        s->at++;
        size_t more = digits_at(s, s->at);
        if (!more)
            return unexpected(s, "a digit after '.'");
        s->at += more;
    }
    if (s->at < s->n && (s->text[s->at] == 'e' || s->text[s->at] == 'E')) {
        real = true;
        s->at++;
        s->at += s->at < s->n && (s->text[s->at] == '+' || s->text[s->at] == '-');
        size_t more = digits_at(s, s->at);
        if (!more)
            return unexpected(s, "a digit of the exponent");
        s->at += more;
    }
    return real ? check_float(s, start, s->at) : check_integer(s, start, s->at);
}

static bool word(scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t end = s->at;
    while (end < s->n && is_word(s->text[end]))
        end++;
    for (size_t i = 0; i < OI_COUNT(words); i++)
        if (end - s->at == strlen(words[i]) && !memcmp(s->text + s->at, words[i], end - s->at)) {
            s->at = end;
            return true;
        }
    return unexpected(s, "a value");
}

/* -- strings -- */

/* Four hex digits at `at`, or -1. */
static int hex4(const scan *s, size_t at)
{
    uint64_t v;
    if (s->n - at < 4 || !oi_parse_u64(s->text + at, 4, 16, &v))
        return -1;
    return (int)v;
}

/* The escape whose backslash is at s->at; leaves its code point in *c. */
static bool escape(scan *s, uint32_t *c)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    size_t start = s->at++;
    if (s->at == s->n)
        return unexpected(s, "the rest of an escape");
    const char *letter = s->text[s->at] ? strchr(letters, s->text[s->at]) : NULL;
    if (letter) {
        *c = (unsigned char)values[letter - letters];
        s->at++;
        return true;
    }
    if (s->text[s->at] != 'u')
        return unexpected(s, "an escape: one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    int unit = hex4(s, ++s->at);
    if (unit < 0)
        return unexpected(s, "four hexadecimal digits after \\u");
    s->at += 4;
    *c = (uint32_t)unit;
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    int low = -1;
    if (unit < 0xdc00 && s->n - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u')
        low = hex4(s, s->at + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return fail(s, start, s->at, "lone surrogate \\u%04x: half of a pair", (unsigned)unit);
    s->at += 6;
    *c = 0x10000 + ((uint32_t)unit - 0xd800) * 0x400 + ((uint32_t)low - 0xdc00);
    return true;
}

/* The string whose opening quote is at s->at. With `out` its text is decoded there: there must be
 * room for as many bytes as the string has in the source. Without `out_n` it is a key. */
static bool string(scan *s, char *out, size_t *out_n)
{
    size_t start = s->at++;
    const char *const first = out;
    for (;;) {
        if (s->at == s->n)
            return fail(s, start, s->n, "the string that begins here has no closing '\"'");
        unsigned char c = (unsigned char)s->text[s->at];
        if (c == '"')
            break;
        if (c < 0x20)
            return fail(s, s->at, s->at + 1,
                        "control character U+%04X in a string: write it as an escape", c);
        if (c != '\\') {
            if (out)
                *out++ = (char)c;
            s->at++;
            continue;
        }
        uint32_t code = 0;
        size_t at = s->at;
        if (!escape(s, &code))
            return false;
        if (out && code == 0 && !out_n) /* json-c would cut the key here */
            return fail(s, at, s->at, "\\u0000 is not accepted in a key");
        if (out)
            out += oi_utf8_encode(code, out);
    }
    s->at++;
    if (out)
        *out = '\0';
    if (out && out_n)
        *out_n = (size_t)(out - first);
    return true;
}

static size_t string_end(const scan *s)
{
    size_t i = s->at + 1;
    while (i < s->n && s->text[i] != '"')
        i += s->text[i] == '\\' && i + 1 < s->n ? 2 : 1;
    return i;
}

/* -- arrays and objects -- */

static bool value(scan *s);

/* False when one of the object's earlier keys (those from `first` on) equals the last one. */
static bool key_is_new(scan *s, size_t first, oi_map *map)
{
    size_t n = s->keys.n - 1;
    const char *key = s->keys.at[n];
    if (n - first < FEW_KEYS) {
        for (size_t i = first; i < n; i++)
            if (strcmp(s->keys.at[i], key) == 0)
                return false;
        return true;
    }
    if (!map->cap) {
        map->arena = s->a;
        for (size_t i = first; i < n; i++)
            oi_map_put(map, s->keys.at[i], (uint32_t)i);
    }
    return oi_map_put(map, key, (uint32_t)n) == (uint32_t)n;
}

/* member = string ":" value */
static bool member(scan *s, size_t first, oi_map *map)
{
    skip_space(s);
    if (s->at == s->n || s->text[s->at] != '"')
        return unexpected(s, "a key in quotes");
    size_t start = s->at;
    char *key = oi_arena_alloc(s->a, string_end(s) - start + 1);
    if (!string(s, key, NULL))
        return false;
    *OI_PUSH(s->a, &s->keys) = key;
    if (!key_is_new(s, first, map))
        return fail(s, start, s->at, "the key \"%.*s\" occurs twice in this object",
                    oi_utf8_fit(key, 80), key);
    if (!take(s, ':'))
        return unexpected(s, "':' after a key");
    return value(s);
}

/* object = "{" [ member { "," member } ] "}" ; the brace is taken */
static bool object(scan *s)
{
    size_t first = s->keys.n;
    oi_map map = {0};
    if (take(s, '}'))
        return true;
    do {
        if (!member(s, first, &map))
            return false;
    } while (take(s, ','));
    s->keys.n = first;
    return take(s, '}') || unexpected(s, "',' or '}' after a member");
}

/* array = "[" [ value { "," value } ] "]" ; the bracket is taken */
static bool array(scan *s)
{
    if (take(s, ']'))
        return true;
    do {
        if (!value(s))
            return false;
    } while (take(s, ','));
    return take(s, ']') || unexpected(s, "',' or ']' after an item");
}

static bool value(scan *s)
{
    skip_space(s);
    char c = s->at < s->n ? s->text[s->at] : '\0';
    if (c == '"')
        return string(s, NULL, NULL);
    if (c == '-' || (c >= '0' && c <= '9'))
        return number(s);
    if (c != '{' && c != '[')
        return word(s);
    if (s->depth == OI_JSON_DEPTH)
        return fail(s, s->at, s->at + 1, "nested deeper than %d levels", OI_JSON_DEPTH);
    s->depth++;
    s->at++;
    bool ok = c == '{' ? object(s) : array(s);
    s->depth--;
    return ok;
}

static void scan_text(void *ctx)
{
    scan *s = ctx;
    size_t bad;
    if (!oi_utf8_valid(s->text, s->n, &bad)) {
        fail(s, bad, bad + 1, "byte 0x%02X is not valid UTF-8", (unsigned char)s->text[bad]);
        return;
    }
    if (s->n >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
        s->at = 3;
    if (!value(s))
        return;
    skip_space(s);
    if (s->at < s->n)
        unexpected(s, "the end of the text after the value");
}

/* -- the tree -- */

/* Walks text that scan_text accepted, so only memory can fail: then false, and nothing is kept. */
typedef struct builder {
    scan s;     /* of which only the text and the place in it are used */
    char *text; /* room for any one string */
} builder;

static bool build(builder *b, struct json_object **out);

static bool build_string(builder *b, struct json_object **out)
{
    size_t n;
    if (!string(&b->s, b->text, &n))
        return false;
    *out = json_object_new_string_len(b->text, (int)n);
    return *out != NULL;
}

static bool build_number(builder *b, struct json_object **out)
{
    size_t start = b->s.at, n = 0;
    while (b->s.at < b->s.n && is_word(b->s.text[b->s.at]))
        b->text[n++] = b->s.text[b->s.at++];
    b->text[n] = '\0';
    bool negative = b->s.text[start] == '-';
    uint64_t u = 0;
    double v = 0;
    if (strpbrk(b->text, ".eE")) { /* with its text, for oi_json_f32 */
        (void)oi_parse_f64(b->text + negative, n - negative, &v);
        *out = json_object_new_double_s(negative ? -v : v, b->text);
    } else {
        (void)oi_parse_u64(b->text + negative, n - negative, 10, &u);
        *out = negative                  ? json_object_new_int64((int64_t)(0 - u))
               : u > (uint64_t)INT64_MAX ? json_object_new_uint64(u)
                                         : json_object_new_int64((int64_t)u);
    }
    return *out != NULL;
}

static bool build_word(builder *b, struct json_object **out)
{
    char c = b->s.text[b->s.at];
    (void)word(&b->s);
    *out = c == 'n' ? NULL : json_object_new_boolean(c == 't');
    return c == 'n' || *out;
}

static bool build_array(builder *b, struct json_object *array)
{
    struct json_object *item;
    if (take(&b->s, ']'))
        return true;
    do {
        if (!build(b, &item))
            return false;
        if (json_object_array_add(array, item) != 0) {
            json_object_put(item);
            return false;
        }
    } while (take(&b->s, ','));
    return take(&b->s, ']');
}

static bool build_member(builder *b, struct json_object *object)
{
    skip_space(&b->s);
    (void)string(&b->s, b->text, NULL);
    (void)take(&b->s, ':');
    char *key = strdup(b->text); /* the value may need the room */
    struct json_object *item = NULL;
    bool ok = key && build(b, &item);
    if (ok && json_object_object_add_ex(object, key, item, JSON_C_OBJECT_ADD_KEY_IS_NEW) != 0) {
        json_object_put(item);
        ok = false;
    }
    free(key);
    return ok;
}

static bool build_object(builder *b, struct json_object *object)
{
    if (take(&b->s, '}'))
        return true;
    do {
        if (!build_member(b, object))
            return false;
    } while (take(&b->s, ','));
    return take(&b->s, '}');
}

static bool build(builder *b, struct json_object **out)
{
    skip_space(&b->s);
    char c = b->s.text[b->s.at];
    if (c == '"')
        return build_string(b, out);
    if (c == '-' || (c >= '0' && c <= '9'))
        return build_number(b, out);
    if (c != '{' && c != '[')
        return build_word(b, out);
    b->s.at++;
    *out = c == '{' ? json_object_new_object() : json_object_new_array();
    if (*out && (c == '{' ? build_object(b, *out) : build_array(b, *out)))
        return true;
    json_object_put(*out);
    return false;
}

static oi_status build_tree(const scan *scanned, struct json_object **out)
{
    builder b = {.s = *scanned, .text = malloc(scanned->n + 1)};
    b.s.at = scanned->n >= 3 && memcmp(scanned->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    bool ok = b.text && build(&b, out);
    free(b.text);
    if (ok)
        return OI_OK;
    *out = NULL;
    return oi_diag_env(scanned->d, scanned->name, "out of memory");
}

oi_status oi_json_parse(const char *name, const char *text, size_t n, struct json_object **out,
                        oi_diag *d)
{
    *out = NULL;
    if (n > INT_MAX)
        return oi_diag_error(d, (oi_place){.file = name}, "E001",
                             "JSON text of %zu bytes, at most %d are accepted", n, INT_MAX);
    scan s = {.name = name, .text = text, .n = n, .d = d, .a = oi_arena_new()};
    if (!s.a || oi_arena_guard(s.a, scan_text, &s) != OI_OK)
        s.status = oi_diag_env(d, name, "out of memory");
    oi_arena_free(s.a);
    OI_TRY(s.status);
    return build_tree(&s, out);
}

void oi_json_free(struct json_object *j)
{
    json_object_put(j);
}

/* -- numbers of the tree -- */

/* Source text of a double, its sign taken off; NULL for other things. */
static const char *double_text(struct json_object *j, bool *negative)
{
    if (!json_object_is_type(j, json_type_double))
        return NULL;
    const char *text = json_object_get_string(j);
    *negative = text && text[0] == '-';
    return text ? text + *negative : NULL;
}

double oi_json_f64(struct json_object *j)
{
    bool negative;
    double v;
    const char *text = double_text(j, &negative);
    if (text && oi_parse_f64(text, strlen(text), &v))
        return negative ? -v : v;
    if (json_object_is_type(j, json_type_double))
        return json_object_get_double(j);
    if (!json_object_is_type(j, json_type_int))
        return 0;
    int64_t i = json_object_get_int64(j);
    return i < 0 ? (double)i : (double)json_object_get_uint64(j);
}

float oi_json_f32(struct json_object *j)
{
    bool negative;
    float v;
    const char *text = double_text(j, &negative);
    if (text && oi_parse_f32(text, strlen(text), &v))
        return negative ? -v : v;
    if (json_object_is_type(j, json_type_int)) { /* straight from 64 bits: one rounding */
        int64_t i = json_object_get_int64(j);
        return i < 0 ? (float)i : (float)json_object_get_uint64(j);
    }
    return (float)oi_json_f64(j);
}

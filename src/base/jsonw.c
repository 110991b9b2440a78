/* jsonw.c: JSON text, indented by two spaces, keys ascending. The same calls always give the same
 * bytes. */
#include "base/base.h"

#include <assert.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>

static bool has_items(const oi_jsonw *w)
{
    return w->depth && w->has_items[(w->depth - 1) / 64] >> (w->depth - 1) % 64 & 1;
}

static void new_line(oi_jsonw *w)
{
    if (w->compact)
        return;
    oi_buf_putc(w->out, '\n');
    oi_buf_fill(w->out, ' ', (size_t)w->depth * 2);
}

/* Whatever stands between the previous thing and the item that comes now. */
static void before_item(oi_jsonw *w)
{
    if (w->pending_key) {
        w->pending_key = false;
        return;
    }
    if (!w->depth)
        return;
    if (has_items(w))
        oi_buf_putc(w->out, ',');
    w->has_items[(w->depth - 1) / 64] |= 1ull << (w->depth - 1) % 64;
    new_line(w);
}

void oi_jsonw_open(oi_jsonw *w, char bracket)
{
    before_item(w);
    oi_buf_putc(w->out, bracket);
    if (w->depth == OI_JSON_DEPTH) { /* no reader would take it: fail as a whole */
        w->out->failed = true;
        return;
    }
    w->has_items[w->depth / 64] &= ~(1ull << w->depth % 64);
    w->last_key[w->depth] = SIZE_MAX;
    w->depth++;
}

void oi_jsonw_close(oi_jsonw *w, char bracket)
{
    assert((w->depth && !w->pending_key) || w->out->failed);
    bool some = has_items(w);
    if (w->depth)
        w->depth--;
    if (some)
        new_line(w);
    oi_buf_putc(w->out, bracket);
}

#ifndef NDEBUG
/* Both keys start at their quote. Escapes do not sort like what they stand for: skip those. */
static bool keys_ascend(const oi_buf *b, size_t before, size_t now)
{
    const char *p = b->text + before + 1, *q = b->text + now + 1;
    for (; *p == *q && *p != '"' && *p != '\\'; p++, q++)
        ;
    if (*p == '\\' || *q == '\\')
        return true;
    return *q != '"' && (*p == '"' || (unsigned char)*p < (unsigned char)*q);
}
#endif

void oi_jsonw_key(oi_jsonw *w, const char *key)
{
    before_item(w);
    size_t now = w->out->n;
    oi_put_json(w->out, key, strlen(key));
    if (w->depth && !w->out->failed) {
        size_t *last = &w->last_key[w->depth - 1];
        assert(w->any_order || *last == SIZE_MAX || keys_ascend(w->out, *last, now));
        *last = now;
    }
    oi_buf_puts(w->out, w->compact ? ":" : ": ");
    w->pending_key = true;
}

void oi_jsonw_strn(oi_jsonw *w, const char *s, size_t n)
{
    before_item(w);
    oi_put_json(w->out, s, n);
}

void oi_jsonw_str(oi_jsonw *w, const char *s)
{
    oi_jsonw_strn(w, s, strlen(s));
}

void oi_jsonw_i64(oi_jsonw *w, int64_t v)
{
    before_item(w);
    oi_buf_printf(w->out, "%" PRId64, v);
}

void oi_jsonw_u64(oi_jsonw *w, uint64_t v)
{
    before_item(w);
    oi_buf_printf(w->out, "%" PRIu64, v);
}

static void put_number(oi_jsonw *w, const char *text, size_t n)
{
    bool quoted = text[n - 1] == 'f' || text[n - 1] == 'n'; /* inf, nan */
    before_item(w);
    if (quoted)
        oi_buf_putc(w->out, '"');
    oi_buf_add(w->out, text, n);
    if (quoted)
        oi_buf_putc(w->out, '"');
}

void oi_jsonw_f64(oi_jsonw *w, double v)
{
    char text[OI_NUMBER_TEXT];
    put_number(w, text, oi_print_f64(text, v));
}

void oi_jsonw_f32(oi_jsonw *w, float v)
{
    char text[OI_NUMBER_TEXT];
    put_number(w, text, oi_print_f32(text, v));
}

void oi_jsonw_bool(oi_jsonw *w, bool v)
{
    before_item(w);
    oi_buf_puts(w->out, v ? "true" : "false");
}

void oi_jsonw_null(oi_jsonw *w)
{
    before_item(w);
    oi_buf_puts(w->out, "null");
}

void oi_jsonw_raw(oi_jsonw *w, const char *json, size_t n)
{
    before_item(w);
    oi_buf_add(w->out, json, n);
}

/* -- whole trees ----------------------------------------------------------------------------------
 */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_object(oi_jsonw *w, struct json_object *j)
{
    size_t n = (size_t)json_object_object_length(j), i = 0;
    const char **keys = n ? malloc(n * sizeof *keys) : NULL;
    if (n && !keys) {
        w->out->failed = true;
        return;
    }
    json_object_object_foreach(j, key, value)
    {
        (void)value;
        keys[i++] = key;
    }
    if (n)
        qsort(keys, n, sizeof *keys, compare_keys);
    oi_jsonw_open(w, '{');
    for (i = 0; i < n && !w->out->failed; i++) {
        oi_jsonw_key(w, keys[i]);
        oi_jsonw_tree(w, json_object_object_get(j, keys[i]));
    }
    oi_jsonw_close(w, '}');
    free(keys);
}

static void put_int(oi_jsonw *w, struct json_object *j)
{
    int64_t v = json_object_get_int64(j);
    if (v < 0)
        oi_jsonw_i64(w, v);
    else
        oi_jsonw_u64(w, json_object_get_uint64(j)); /* the upper half saturates in int64 */
}

void oi_jsonw_tree(oi_jsonw *w, struct json_object *j)
{
    switch (json_object_get_type(j)) {
    case json_type_null: oi_jsonw_null(w); break;
    case json_type_boolean: oi_jsonw_bool(w, json_object_get_boolean(j)); break;
    case json_type_double: oi_jsonw_f64(w, oi_json_f64(j)); break;
    case json_type_int: put_int(w, j); break;
    case json_type_string:
        oi_jsonw_strn(w, json_object_get_string(j), (size_t)json_object_get_string_len(j));
        break;
    case json_type_object: put_object(w, j); break;
    case json_type_array:
        oi_jsonw_open(w, '[');
        for (size_t i = 0; i < json_object_array_length(j) && !w->out->failed; i++)
            oi_jsonw_tree(w, json_object_array_get_idx(j, i));
        oi_jsonw_close(w, ']');
        break;
    }
}

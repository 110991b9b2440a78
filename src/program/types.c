/* types.c: comparing, broadcasting and printing shapes whose sizes may still be names.
 *
 * Two sizes are equal, different, or not known yet; only "different" is a mistake. */
#include "program/program.h"

#include <inttypes.h>

oi_dim oi_dim_of(int64_t value)
{
    return (oi_dim){.known = true, .value = value};
}

oi_tri oi_dim_equal(oi_dim a, oi_dim b)
{
    if (a.known && b.known)
        return a.value == b.value ? OI_EQUAL : OI_DIFFERENT;
    if (a.text && b.text && strcmp(a.text, b.text) == 0 && strcmp(a.text, "?") != 0)
        return OI_EQUAL;
    return OI_UNKNOWN;
}

oi_tri oi_dims_equal(const oi_type *a, const oi_type *b)
{
    if (a->rank != b->rank)
        return OI_DIFFERENT;
    oi_tri all = OI_EQUAL;
    for (uint32_t i = 0; i < a->rank; i++) {
        oi_tri one = oi_dim_equal(a->dims[i], b->dims[i]);
        all = one < all ? one : all;
    }
    return all;
}

static bool is_one(oi_dim d)
{
    return d.known && d.value == 1;
}

bool oi_dim_broadcast(oi_dim a, oi_dim b, oi_dim *out)
{
    oi_tri equal = oi_dim_equal(a, b);
    if (is_one(a) || is_one(b)) {
        *out = is_one(a) ? b : a;
    } else if (equal == OI_DIFFERENT) {
        return false;
    } else if (equal == OI_EQUAL) {
        *out = a.text ? a : b;
    } else if (a.known || b.known) { /* the unknown one is 1 or the same */
        *out = a.known ? a : b;
    } else {
        *out = (oi_dim){0};
    }
    return true;
}

bool oi_dims_broadcast(const oi_type *a, const oi_type *b, oi_type *out)
{
    if (a->rank < b->rank) {
        const oi_type *swap = a;
        a = b;
        b = swap;
    }
    oi_type result = *a;
    uint32_t lead = a->rank - b->rank;
    for (uint32_t i = 0; i < b->rank; i++)
        if (!oi_dim_broadcast(a->dims[lead + i], b->dims[i], &result.dims[lead + i]))
            return false;
    result.dtype = out->dtype;
    *out = result;
    return true;
}

/* -- text -- */

void oi_text_add(oi_text *t, const char *fmt, ...)
{
    if (t->n + 1 >= t->cap)
        return;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->at + t->n, t->cap - t->n, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    t->n += (size_t)n;
    if (t->n < t->cap)
        return;
    t->n = t->cap - 1;
    if (t->cap > 4) {
        /* never end inside a UTF-8 sequence */
        size_t cut = t->cap - 4;
        while (cut > 0 && ((unsigned char)t->at[cut] & 0xc0) == 0x80)
            cut--;
        memcpy(t->at + cut, "...", 4);
    }
}

void oi_text_dim(oi_text *t, oi_dim d)
{
    if (d.text)
        oi_text_add(t, "%s", d.text);
    else if (d.known)
        oi_text_add(t, "%" PRId64, d.value);
    else
        oi_text_add(t, "?");
}

void oi_text_dims(oi_text *t, const oi_type *type)
{
    oi_text_add(t, "[");
    for (uint32_t i = 0; i < type->rank; i++) {
        oi_text_add(t, "%s", i ? ", " : "");
        oi_text_dim(t, type->dims[i]);
    }
    oi_text_add(t, "]");
}

static bool named(oi_dim d)
{
    return d.known && d.text &&
           !(d.text[0] >= '0' && d.text[0] <= '9' &&
             strspn(d.text, "0123456789") == strlen(d.text));
}

static bool said_before(const oi_type *const *types, size_t k, uint32_t i)
{
    const char *text = types[k]->dims[i].text;
    for (size_t j = 0; j <= k; j++)
        for (uint32_t e = 0; e < (j == k ? i : types[j]->rank); e++)
            if (named(types[j]->dims[e]) && strcmp(types[j]->dims[e].text, text) == 0)
                return true;
    return false;
}

void oi_text_sizes(oi_text *t, const oi_type *const *types, size_t n)
{
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < types[k]->rank; i++) {
            oi_dim d = types[k]->dims[i];
            if (!named(d) || said_before(types, k, i))
                continue;
            oi_text_add(t, "%s%s = %" PRId64, any ? ", " : " (", d.text, d.value);
            any = true;
        }
    }
    if (any)
        oi_text_add(t, ")");
}

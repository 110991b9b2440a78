/* source.c: positions in a text, and UTF-8. */
#include "base/base.h"

struct oi_source_memo {
    size_t line, at;
    uint32_t col; /* code points between the line's start and `at` */
};

void oi_source_init(oi_arena *a, oi_source *s, const char *name, const char *text, size_t size)
{
    *s = (oi_source){.name = name, .text = text, .size = size, .first_line = 1};
    s->memo = oi_arena_alloc(a, sizeof *s->memo);
    *OI_PUSH(a, &s->lines) = 0;
    for (const char *p = text, *end = text + size; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            break;
        p = nl + 1;
        *OI_PUSH(a, &s->lines) = (uint32_t)(p - text);
    }
}

static size_t line_index(const oi_source *s, size_t at)
{
    size_t lo = 0, hi = s->lines.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->lines.at[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static uint32_t code_points(const char *text, size_t n)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

static size_t line_end(const oi_source *s, size_t line)
{
    size_t end = line + 1 < s->lines.n ? s->lines.at[line + 1] - 1 : s->size;
    return end > s->lines.at[line] && s->text[end - 1] == '\r' ? end - 1 : end;
}

static bool has_bom(const oi_source *s)
{
    return s->size >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0;
}

/* A byte order mark takes no column. */
static size_t line_begin(const oi_source *s, size_t line)
{
    return line == 0 && has_bom(s) ? 3 : s->lines.at[line];
}

/* Code points before `at` in its line, counted from the last computed position. */
static uint32_t column_of(const oi_source *s, size_t line, size_t at)
{
    struct oi_source_memo *m = s->memo;
    size_t begin = line_begin(s, line);
    if (at < begin)
        return 0;
    if (m->line != line || m->at < begin)
        *m = (struct oi_source_memo){.line = line, .at = begin};
    if (at >= m->at)
        m->col += code_points(s->text + m->at, at - m->at);
    else
        m->col -= code_points(s->text + at, m->at - at);
    m->at = at;
    return m->col;
}

oi_span oi_source_span(const oi_source *s, size_t start, size_t end)
{
    size_t line = line_index(s, start), stop = line_end(s, line);
    if (end > stop)
        end = stop;
    uint32_t len = end > start ? code_points(s->text + start, end - start) : 1;
    return (oi_span){(uint32_t)line + s->first_line, column_of(s, line, start) + 1, len};
}

oi_bytes oi_source_line(const oi_source *s, uint32_t line)
{
    if (line < s->first_line || line - s->first_line >= s->lines.n)
        return (oi_bytes){0};
    size_t i = line - s->first_line, begin = line_begin(s, i);
    return (oi_bytes){.ptr = (const uint8_t *)s->text + begin, .size = line_end(s, i) - begin};
}

size_t oi_utf8_decode(const char *text, size_t n, uint32_t *out)
{
    const uint8_t *p = (const uint8_t *)text;
    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *out = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len)
        return 0;
    uint32_t c = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *out = c;
    return len;
}

bool oi_utf8_valid(const char *text, size_t n, size_t *bad)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = oi_utf8_decode(text + i, n - i, &c);
        if (!used) {
            if (bad)
                *bad = i;
            return false;
        }
        i += used;
    }
    return true;
}

size_t oi_utf8_encode(uint32_t c, char out[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> len & 0xff) | c);
    return len;
}

int oi_utf8_fit(const char *text, int max)
{
    int n = 0;
    while (n < max && text[n])
        n++;
    if (n == max)
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    return n;
}

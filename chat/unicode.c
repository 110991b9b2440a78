/* unicode.c: UTF-8, and the three properties of code points that splitting text needs. */
#include "chat.h"

#include "unicode_table.h"

/* Is c in one of n ascending ranges? */
static bool is_in(const uint32_t (*ranges)[2], size_t n, uint32_t c)
{
    size_t low = 0;
    while (n > low) {
        size_t middle = low + (n - low) / 2;
        if (c > ranges[middle][1])
            low = middle + 1;
        else if (c < ranges[middle][0])
            n = middle;
        else
            return true;
    }
    return false;
}

bool chat_is_letter(uint32_t c)
{
    return is_in(letters, sizeof letters / sizeof *letters, c);
}

bool chat_is_number(uint32_t c)
{
    return is_in(numbers, sizeof numbers / sizeof *numbers, c);
}

bool chat_is_space(uint32_t c)
{
    return is_in(spaces, sizeof spaces / sizeof *spaces, c);
}

/* How many bytes a character that begins with this one has; 0: none begins so. */
static size_t length_of(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xC0 ? 0
           : first < 0xE0 ? 2
           : first < 0xF0 ? 3
           : first < 0xF8 ? 4
                          : 0;
}

uint32_t chat_utf8_next(const char *text, size_t n, size_t *size)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    size_t length = length_of(s[0]);
    *size = 1;
    if (length <= 1)
        return length ? s[0] : 0xFFFD;
    if (length > n)
        return 0xFFFD;
    uint32_t c = s[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0xFFFD;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    if (c < lowest[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0xFFFD;
    *size = length;
    return c;
}

size_t chat_utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> length & 0xFF) | c);
    return length;
}

size_t chat_utf8_whole(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        if ((c & 0xC0) != 0x80)
            return length_of(c) > back ? n - back : n;
    }
    return n;
}

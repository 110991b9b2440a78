/* uuid.c: node identities. Random (version 4) while people work, derived (version 5) when builds
 * must repeat: Python's uuid.uuid5(NAMESPACE, "BLOCK/INDEX") gives the same. */
#include "graph/graph.h"

/* b1f0c2a4-6d1e-5c3b-9a57-0a6f696e6672 */
static const uint8_t name_space[16] = {0xb1, 0xf0, 0xc2, 0xa4, 0x6d, 0x1e, 0x5c, 0x3b,
                                       0x9a, 0x57, 0x0a, 0x6f, 0x69, 0x6e, 0x66, 0x72};

static void stamp(uint8_t uuid[16], unsigned version)
{
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | version << 4);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

void oi_uuid_random(uint64_t *state, uint8_t out[16])
{
    uint64_t a = oi_splitmix64(state), b = oi_splitmix64(state);
    memcpy(out, &a, 8);
    memcpy(out + 8, &b, 8);
    stamp(out, 4);
}

void oi_uuid_derive(const char *block, uint64_t index, uint8_t out[16])
{
    char number[24];
    int n = snprintf(number, sizeof number, "/%llu", (unsigned long long)index);
    const oi_bytes parts[] = {{name_space, sizeof name_space},
                              {(const uint8_t *)block, strlen(block)},
                              {(const uint8_t *)number, (uint64_t)n}};
    uint8_t digest[20];
    oi_sha1(parts, OI_COUNT(parts), digest);
    memcpy(out, digest, 16);
    stamp(out, 5);
}

void oi_uuid_print(const uint8_t uuid[16], char out[OI_UUID_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    char *p = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[uuid[i] >> 4];
        *p++ = hex[uuid[i] & 15];
    }
    *p = '\0';
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool oi_uuid_parse(const char *text, uint8_t out[16])
{
    if (strlen(text) != OI_UUID_TEXT - 1)
        return false;
    for (int i = 0; i < 16; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
            return false;
        int high = hex_value(text[0]), low = hex_value(text[1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return true;
}

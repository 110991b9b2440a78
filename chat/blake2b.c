/* blake2b.c: BLAKE2b with a digest of 32 bytes and no key (RFC 7693). It names compiled programs by
 * what they were made from. A fast hash that is not cryptographic would not do: a model from a
 * stranger could be made to have the name of another model's program. */
#include "chat.h"

#include <stdio.h>

#define BLOCK sizeof((chat_hash *)0)->block

static const uint64_t IV[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

/* Which words of the message each round mixes. Rounds 10 and 11 repeat 0 and 1. */
static const uint8_t SIGMA[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static uint64_t rotate_right(uint64_t x, unsigned k)
{
    return x >> k | x << (64 - k);
}

static inline void mix(uint64_t v[16], int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 63);
}

static void compress(chat_hash *h, const uint8_t *block, bool is_last)
{
    uint64_t m[16], v[16];
    for (int i = 0; i < 16; i++) {
        m[i] = 0;
        for (int byte = 7; byte >= 0; byte--)
            m[i] = m[i] << 8 | block[8 * i + byte];
    }
    for (int i = 0; i < 8; i++) {
        v[i] = h->state[i];
        v[i + 8] = IV[i];
    }
    v[12] ^= h->total; /* below 2^64 bytes, so v[13] stays */
    v[14] = is_last ? ~v[14] : v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = SIGMA[round];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        h->state[i] ^= v[i] ^ v[i + 8];
}

void chat_hash_begin(chat_hash *h)
{
    *h = (chat_hash){0};
    memcpy(h->state, IV, sizeof IV);
    h->state[0] ^= 0x01010000u ^ 32u; /* no tree, no key, 32 bytes of digest */
}

/* A full block waits for more bytes, because the last one is compressed differently. */
void chat_hash_add(chat_hash *h, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n > 0) {
        if (h->used == BLOCK) {
            h->total += BLOCK;
            compress(h, h->block, false);
            h->used = 0;
        }
        const size_t room = BLOCK - h->used, take = n < room ? n : room;
        memcpy(h->block + h->used, p, take);
        h->used += take;
        p += take;
        n -= take;
    }
}

void chat_hash_end(chat_hash *h, char out[CHAT_HASH_TEXT])
{
    memset(h->block + h->used, 0, BLOCK - h->used);
    h->total += h->used;
    compress(h, h->block, true);
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", (unsigned)(h->state[i / 8] >> 8 * (i % 8)) & 255u);
}

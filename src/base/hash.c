/* hash.c: SHA-1 (for name-based uuids, RFC 9562), a fast 64-bit hash, SplitMix64. */
#define _GNU_SOURCE
#include "base/base.h"

#include <sys/random.h>
#include <time.h>

static uint32_t rotl(uint32_t x, unsigned k)
{
    return x << k | x >> (32 - k);
}

static void sha1_block(uint32_t h[5], const uint8_t block[64])
{
    uint32_t w[80];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        uint32_t t = rotl(a, 5) + f + e + k[i / 20] + w[i];
        e = d, d = c, c = rotl(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* Whole blocks are digested as they fill; the rest, the mark and the length follow at the end. */
void oi_sha1(const oi_bytes *parts, size_t n_parts, uint8_t out[20])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t block[64];
    uint64_t total = 0;
    for (size_t p = 0; p < n_parts; p++)
        for (uint64_t i = 0; i < parts[p].size; i++) {
            block[total++ % 64] = parts[p].ptr[i];
            if (total % 64 == 0)
                sha1_block(h, block);
        }
    uint8_t tail[72] = {0x80};
    size_t pad = 64 - (total + 8) % 64; /* 1 … 64: the mark and zeros before the length */
    for (int i = 0; i < 8; i++)
        tail[pad + 7 - (size_t)i] = (uint8_t)(total * 8 >> 8 * i);
    for (size_t i = 0; i < pad + 8; i++) {
        block[(total + i) % 64] = tail[i];
        if ((total + i + 1) % 64 == 0)
            sha1_block(h, block);
    }
    for (int i = 0; i < 20; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

uint64_t oi_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t oi_hash64(const void *data, size_t n, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u;
    for (; n; n -= n < 8 ? n : 8) {
        uint64_t word = 0;
        memcpy(&word, p, n < 8 ? n : 8);
        p += n < 8 ? n : 8;
        h ^= word;
        h = oi_splitmix64(&h);
    }
    return h;
}

uint64_t oi_entropy64(void)
{
    uint64_t v;
    if (getrandom(&v, sizeof v, GRND_NONBLOCK) == (ssize_t)sizeof v)
        return v;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    v = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)&v ^ (uint64_t)now.tv_sec << 32;
    return oi_splitmix64(&v);
}

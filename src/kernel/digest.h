/* digest.h: a checksum of many bytes, for weights and saved states. It finds damage, not forgery:
 * an attacker can find other bytes with the same digest. Text that the library
 * compiles and emitted C carries along (tools/helpergen.c): names begin with oi_, blocks end at
 * empty lines. */
#ifndef OI_DIGEST_H
#define OI_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OI_DIGEST_BLOCK 32 /* bytes: four words, one for each sum */

static inline void oi_digest_begin(uint64_t *sums)
{
    for (int i = 0; i < 4; i++)
        sums[i] = 0xd6e8feb86659fd93u + (uint64_t)i;
}

/* The sums do not wait for each other, so this runs at the speed of memory. A step can be undone,
 * given the word: a change within one word always changes its sum. */
static inline void oi_digest_blocks(uint64_t *sums, const unsigned char *at, size_t n_blocks)
{
    for (; n_blocks; n_blocks--, at += 32)
        for (int i = 0; i < 4; i++) {
            uint64_t word;
            memcpy(&word, at + 8 * i, sizeof word);
            word = (sums[i] ^ word) * 0x9e3779b97f4a7c15u;
            sums[i] = word ^ word >> 32;
        }
}

static inline uint64_t oi_digest_end(const uint64_t *sums, uint64_t size)
{
    uint64_t all = size;
    for (int i = 0; i < 4; i++) {
        all = (all ^ sums[i]) * 0xd6e8feb86659fd93u;
        all ^= all >> 32;
    }
    return all;
}

/* The last block is filled up with zeros. */
static inline uint64_t oi_digest(const unsigned char *at, size_t size)
{
    uint64_t sums[4];
    unsigned char last[32] = {0};
    oi_digest_begin(sums);
    oi_digest_blocks(sums, at, size / 32);
    if (size % 32) {
        memcpy(last, at + size / 32 * 32, size % 32);
        oi_digest_blocks(sums, last, 1);
    }
    return oi_digest_end(sums, size);
}

#endif

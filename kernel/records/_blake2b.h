/* BLAKE2b (RFC 7693) of one piece, without a key, with a digest of 16 bytes: the hash of a record's key. */
#ifndef ODRADEK_BLAKE2B_H
#define ODRADEK_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BYTES 16

static const uint64_t blake_iv[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};
static uint64_t rotate_right(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

static uint64_t load_little_endian(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#define MIX(a, b, c, d, x, y)                \
    do {                                     \
        a += b + (x);                        \
        d = rotate_right(d ^ a, 32);         \
        c += d;                              \
        b = rotate_right(b ^ c, 24);         \
        a += b + (y);                        \
        d = rotate_right(d ^ a, 16);         \
        c += d;                              \
        b = rotate_right(b ^ c, 63);         \
    } while (0)

/* The order of the words is written out, not looked up: so the state stays in registers, in half the time. */
#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, m0, n, o, p) \
    do {                                                       \
        MIX(v0, v4, v8, v12, m[a], m[b]);                      \
        MIX(v1, v5, v9, v13, m[c], m[d]);                      \
        MIX(v2, v6, v10, v14, m[e], m[f]);                     \
        MIX(v3, v7, v11, v15, m[g], m[h]);                     \
        MIX(v0, v5, v10, v15, m[i], m[j]);                     \
        MIX(v1, v6, v11, v12, m[k], m[l]);                     \
        MIX(v2, v7, v8, v13, m[m0], m[n]);                     \
        MIX(v3, v4, v9, v14, m[o], m[p]);                      \
    } while (0)

static void blake_compress(uint64_t state[8], const uint8_t block[128], uint64_t hashed, int is_last)
{
    uint64_t m[16];
    uint64_t v0 = state[0], v1 = state[1], v2 = state[2], v3 = state[3], v4 = state[4], v5 = state[5], v6 = state[6];
    uint64_t v7 = state[7], v8 = blake_iv[0], v9 = blake_iv[1], v10 = blake_iv[2], v11 = blake_iv[3];
    uint64_t v12 = blake_iv[4] ^ hashed, v13 = blake_iv[5], v14 = is_last ? ~blake_iv[6] : blake_iv[6], v15 = blake_iv[7];
    for (int index = 0; index < 16; index++)
        m[index] = load_little_endian(block + 8 * index);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    state[0] ^= v0 ^ v8;
    state[1] ^= v1 ^ v9;
    state[2] ^= v2 ^ v10;
    state[3] ^= v3 ^ v11;
    state[4] ^= v4 ^ v12;
    state[5] ^= v5 ^ v13;
    state[6] ^= v6 ^ v14;
    state[7] ^= v7 ^ v15;
}

static void hash_key(const uint8_t *key, size_t length, uint8_t digest[HASH_BYTES])
{
    uint64_t state[8], hashed = 0;
    uint8_t block[128];
    memcpy(state, blake_iv, sizeof state);
    state[0] ^= 0x01010000u ^ HASH_BYTES;
    while (length > sizeof block) {
        hashed += sizeof block;
        blake_compress(state, key, hashed, 0);
        key += sizeof block;
        length -= sizeof block;
    }
    memset(block, 0, sizeof block);
    if (length)
        memcpy(block, key, length);
    blake_compress(state, block, hashed + length, 1);
    for (int index = 0; index < HASH_BYTES; index++)
        digest[index] = (uint8_t)(state[index / 8] >> (8 * (index % 8)));
}

#endif

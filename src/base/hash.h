/* hash.h - a 64-bit content hash for tables that live in memory only: never stored in a file, no promise to anybody. */
#ifndef TLY_HASH_H
#define TLY_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Multiplies to 128 bits and folds: one multiplication mixes all bits of both words. */
static inline uint64_t tly_hash_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t tly_hash_bytes(const char *bytes, size_t count) {
    uint64_t hash = count;
    while (count >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = tly_hash_mix(hash, word);
        bytes += 8;
        count -= 8;
    }
    uint64_t last = 0;
    memcpy(&last, bytes, count);
    return tly_hash_mix(hash, last);
}

#endif

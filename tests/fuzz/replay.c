/*
 * replay.c - runs a fuzz target over files, and over damaged copies of each: the regression test of the corpus.
 *
 * replay FILE...: each file as it is, cut at every 1/64 of its length, and with random bytes changed; the seed is
 * printed, and taken from TALLY_TEST_SEED if that is set.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MOST_BYTES = 1 << 20, ROUNDS = 300 };

static void damage(uint8_t *data, size_t bytes) {
    for (int i = rand() % 8; i >= 0; i--) {
        size_t at = (size_t)rand() % bytes;
        switch (rand() % 4) {
        case 0: data[at] = (uint8_t)rand(); break;
        case 1: data[at] ^= (uint8_t)(1 << rand() % 8); break;
        case 2: data[at] = 0xff; break;
        default: memset(data + at, rand() % 2 ? 0xff : 0, bytes - at < 8 ? bytes - at : 8); break;
        }
    }
}

/* The copy is exactly as long as its content, so that a sanitizer sees every read beyond it. */
static void run(const uint8_t *data, size_t bytes, int change) {
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy) exit(2);
    if (bytes) memcpy(copy, data, bytes);
    if (change && bytes) damage(copy, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

int main(int argc, char **argv) {
    const char *given = getenv("TALLY_TEST_SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    uint8_t *data = malloc(MOST_BYTES);
    if (!data || argc < 2) return 2;
    printf("seed %u\n", seed);
    fflush(stdout);
    srand(seed);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 2;
        }
        size_t bytes = fread(data, 1, MOST_BYTES, file);
        fclose(file);
        run(data, bytes, 0);
        for (size_t part = 0; part < 64; part++)
            run(data, bytes * part / 64, 0);
        for (int round = 0; round < ROUNDS; round++)
            run(data, bytes, 1);
    }
    printf("%d files\n", argc - 1);
    free(data);
    return 0;
}

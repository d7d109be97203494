/*
 * ask.c - a program that accounts for itself: linked with the library, it starts, asks and writes a file.
 *
 *     cc -o ask ask.c $(pkg-config --cflags --libs tally) && ./ask && tally report ask.region
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

static void print(const tally_node *node, int depth) {
    struct tally_node_info info = {.struct_bytes = sizeof info};
    if (tally_node_get_info(node, &info) != 0) return;
    printf("%8" PRIu64 " %8" PRIu64 "  %*s%s\n", info.bytes, info.bytes_direct, 2 * depth, "", info.name);
    for (const tally_node *child = tally_node_first_child(node); child; child = tally_node_next_sibling(child))
        print(child, depth + 1);
}

/* The four nodes of the classic example. (Global, because a compiler may leave out a block that it sees unused.) */
static void *blocks[4];
static void b(void **block) {
    TALLY_TAG("B");
    *block = malloc(100);
}
static void a(void) {
    TALLY_TAG("A");
    blocks[0] = malloc(100);
    b(&blocks[1]);
}

int main(int argc, char **argv) {
    puts("from here on:"); /* makes stdout's buffer, so that the account begins without it */
    int result = tally_start();
    if (result != 0) {
        fprintf(stderr, "ask: cannot account: %s\n", result == -38 ? "the library is not there" : tally_error_text());
        return 1;
    }
    {
        TALLY_TAG("Top");
        blocks[2] = malloc(100);
        a();
        b(&blocks[3]);
    }
    uint64_t bytes = tally_bytes(), peak = tally_peak_bytes();
    printf("live %" PRIu64 ", peak %" PRIu64 " bytes\n", bytes, peak);

    tally_tree *tree = tally_tree_get(TALLY_TREE_SKIP_REPEATED);
    if (!tree) {
        perror("ask: tally_tree_get");
        return 1;
    }
    puts("inclusive  direct");
    print(tally_tree_root(tree), 0);
    tally_tree_free(tree);

    if (argc > 1 && (result = tally_snapshot_write(argv[1])) != 0) {
        fprintf(stderr, "ask: %s\n", tally_error_text());
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        free(blocks[i]);
    }
    return 0;
}

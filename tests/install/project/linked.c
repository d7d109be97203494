/* A program outside of the tree that accounts for itself. Prints "100" when the library is there and works. */
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

static void *volatile block; /* volatile: or the compiler may leave it out */

int main(void) {
    puts("outsider");
    if (tally_version() != TALLY_VERSION) return 2;
    if (tally_start() != 0) return 3;
    {
        TALLY_TAG("Outside");
        block = malloc(100);
    }
    const char *const path[] = {"Outside"};
    struct tally_node_info info = {.struct_bytes = sizeof info};
    tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
    if (!tree || tally_node_get_info(tally_tree_find(tree, path, 1), &info) != 0) return 4;
    printf("%llu\n", (unsigned long long)info.bytes);
    tally_tree_free(tree);
    free(block);
    return tally_bytes() != 0;
}

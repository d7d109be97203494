/* tree_of.h - short ways to ask a tree in a test. */
#ifndef TREE_OF_H
#define TREE_OF_H

#include <stdarg.h>

#include "check.h"
#include "tally/tally.h"

/* The node's facts at names (up to the first NULL) below the root; all zero, name NULL, if there is no such node. */
static inline __attribute__((unused, sentinel)) struct tally_node_info tree_at(const tally_tree *tree, ...) {
    const char *names[64];
    size_t count = 0;
    va_list list;
    va_start(list, tree);
    while (count < 64 && (names[count] = va_arg(list, const char *)) != NULL)
        count++;
    va_end(list);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    const tally_node *node = tally_tree_find(tree, names, count);
    if (node) CHECK(tally_node_get_info(node, &info) == 0);
    return info;
}

/* Checks what holds in every tree, and returns how many nodes it has without the root. */
static inline __attribute__((unused)) size_t tree_check(const tally_node *node) {
    struct tally_node_info own = {.struct_bytes = sizeof own};
    CHECK(tally_node_get_info(node, &own) == 0);
    uint64_t bytes = own.bytes_direct, blocks = own.blocks_direct;
    uint64_t allocated_bytes = own.allocated_bytes_direct, allocated_blocks = own.allocated_blocks_direct;
    size_t count = 0;
    CHECK(own.bytes_direct <= own.allocated_bytes_direct && own.blocks_direct <= own.allocated_blocks_direct);
    for (const tally_node *child = tally_node_first_child(node); child; child = tally_node_next_sibling(child)) {
        struct tally_node_info info = {.struct_bytes = sizeof info};
        CHECK(tally_node_get_info(child, &info) == 0);
        CHECK(tally_node_parent(child) == node);
        count += 1 + tree_check(child);
        bytes += info.bytes;
        blocks += info.blocks;
        allocated_bytes += info.allocated_bytes;
        allocated_blocks += info.allocated_blocks;
    }
    CHECK_EQUAL(own.bytes, bytes);
    CHECK_EQUAL(own.blocks, blocks);
    CHECK_EQUAL(own.allocated_bytes, allocated_bytes);
    CHECK_EQUAL(own.allocated_blocks, allocated_blocks);
    return count;
}

static inline __attribute__((unused)) tally_tree *tree_now(unsigned flags) {
    tally_tree *tree = tally_tree_get(flags);
    CHECK(tree != NULL);
    return tree;
}

#endif

// tags_cxx.cpp - tags and exceptions: scopes that an exception leaves are popped, of the macros and of tally.hpp alike.
#include <stdexcept>
#include <string>

extern "C" {
#include "check.h"
}
#include "tally/tally.hpp"

static uint64_t bytes_at(std::initializer_list<const char *> path) {
    tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
    CHECK(tree != nullptr);
    tally_node_info info = {};
    info.struct_bytes = sizeof info;
    const tally_node *node = tally_tree_find(tree, path.begin(), path.size());
    if (node) CHECK(tally_node_get_info(node, &info) == 0);
    tally_tree_free(tree);
    return info.bytes_direct;
}

static void *block[16];

static void throw_deep(int depth) {
    TALLY_TAG("Deep");
    if (depth > 0) throw_deep(depth - 1);
    TALLY_PAUSE_THREAD();
    throw std::runtime_error("from below");
}

int main() {
    CHECK_EQUAL(tally_start(), 0);
    CHECK_EQUAL(tally_clear(), 0);
    tally_stack other;
    {
        tally::tag both("Given", "Away");
        CHECK_EQUAL(tally_stack_get(&other), 0);
    }
    TALLY_TAG("Outer");
    for (int i = 0; i < 100; i++) {
        try {
            tally::tag three("One", "Two", "Three");
            TALLY_STACK_OVERRIDE(&other);
            throw_deep(20);
        } catch (const std::exception &) {
            // paused or overridden no more; back on Outer
            TALLY_TAG("Caught");
            block[0] = keep(operator new(100));
            CHECK_EQUAL(bytes_at({"Outer", "Caught"}), 100);
            operator delete(block[0]);
        }
    }
    block[1] = keep(operator new(10));
    CHECK_EQUAL(bytes_at({"Outer"}), 10);
    {
        tally::tag three("One", "Two", "Three");
        block[2] = keep(operator new(33));
    }
    CHECK_EQUAL(bytes_at({"Outer", "One", "Two", "Three"}), 33);
    block[3] = keep(operator new(11));
    CHECK_EQUAL(bytes_at({"Outer"}), 21);
    for (int i = 1; i <= 3; i++)
        operator delete(block[i]);
    CHECK_EQUAL(tally_bytes(), 0);
    return 0;
}

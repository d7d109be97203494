// The same in C++11.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <tally/tally.hpp>

int main() {
    std::puts("outsider");
    if (tally_start() != 0) return 3;
    std::unique_ptr<char[]> block;
    {
        tally::tag where("Outside", std::string("in C++"));
        block.reset(new char[100]);
    }
    const char *const path[] = {"Outside", "in C++"};
    struct tally_node_info info;
    std::memset(&info, 0, sizeof info);
    info.struct_bytes = sizeof info;
    tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
    if (!tree || tally_node_get_info(tally_tree_find(tree, path, 2), &info) != 0) return 4;
    std::printf("%llu\n", static_cast<unsigned long long>(info.bytes));
    tally_tree_free(tree);
    return 0;
}

// replaced.cpp - programs that bring some operators of their own: only what they replace is theirs, and everything else
// leads to it as without the library. Prints what was called; the account must hold what malloc was asked for.
#include <cstdlib>
#include <new>
#include <string>

extern "C" {
#include "check.h"
}
#include "tally/tally.h"

static unsigned news, deletes;
void *operator new(size_t size) {
    news++;
    void *block = malloc(size + 8); // so that one sees from the bytes whose it is
    if (!block) throw std::bad_alloc();
    return block;
}
void operator delete(void *block) noexcept {
    deletes++;
    free(block);
}
#ifdef ALL_OF_THEM
static unsigned arrays;
void *operator new[](size_t size) {
    arrays++;
    return operator new(size + 8);
}
void operator delete[](void *block) noexcept { operator delete(block); }
#endif

int main() {
    tally_clear();
    uint64_t bytes = 0, blocks = 0;
    {
        TALLY_TAG("Replaced");
        void *block[6] = {keep(operator new(100)),
                          keep(operator new[](200)),
                          keep(operator new(300, std::nothrow)),
                          keep(operator new[](400, std::nothrow)),
                          keep(operator new (512, std::align_val_t{64})),
                          keep(new std::string(1000, 'x'))};
        tally_tree *tree = tally_tree_get(0);
        if (tree) {
            const char *path[] = {"Replaced"};
            struct tally_node_info info = {};
            info.struct_bytes = sizeof info;
            CHECK(tally_node_get_info(tally_tree_find(tree, path, 1), &info) == 0);
            bytes = info.bytes;
            blocks = info.blocks;
            tally_tree_free(tree);
        }
        operator delete(block[0]);
        operator delete[](block[1]);
        operator delete(block[2], std::nothrow);
        operator delete[](block[3], std::nothrow);
        operator delete (block[4], std::align_val_t{64});
        delete static_cast<std::string *>(block[5]);
    }
    say(1, "new called %u times, delete %u times\n", news, deletes);
    if (tally_active()) {
        uint64_t wanted = 108 + 208 + 308 + 408 + 512 + (sizeof(std::string) + 8) + (1001 + 8);
#ifdef ALL_OF_THEM
        wanted += 16;
        CHECK_EQUAL(arrays, 2);
#endif
        CHECK_EQUAL(bytes, wanted);
        CHECK_EQUAL(blocks, 7);
        CHECK_EQUAL(tally_bytes(), 0);
    }
    return 0;
}

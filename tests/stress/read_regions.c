/*
 * read_regions.c - reads the region of a running process from outside, many times: no negative figure, cumulative ones
 * only grow. Usage: read_regions TIMES DIRECTORY (with one region in it)
 */
#include <dirent.h>
#include <stdlib.h>

#include "../preload/account_of.h"
#include "../preload/check.h"

int main(int argc, char **argv) {
    CHECK(argc == 3);
    char path[512] = "";
    DIR *directory = opendir(argv[2]);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (strstr(entry->d_name, ".region")) snprintf(path, sizeof path, "%s/%s", argv[2], entry->d_name);
    closedir(directory);
    CHECK(path[0] != 0);
    uint64_t before = 0, first = 0;
    for (int i = 0; i < atoi(argv[1]); i++) {
        struct account account;
        CHECK(account_of(path, &account) == 0);
        CHECK_EQUAL(account.negative_nodes, 0);
        CHECK(account.allocated_blocks >= before);
        before = account.allocated_blocks;
        if (i == 0) first = before;
    }
    CHECK(before > first); /* it was indeed running */
    return 0;
}

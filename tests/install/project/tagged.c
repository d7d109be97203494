/* A program with tags and nothing linked. */
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

static void *volatile block; /* volatile: or the compiler may leave it out */

int main(void) {
    TALLY_TAG("Outside");
    block = malloc(100);
    printf("%s\n", tally_active() ? "on" : "off");
    return block == NULL;
}

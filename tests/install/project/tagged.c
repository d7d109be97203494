/* A program with tags and nothing linked. */
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

int main(void) {
    TALLY_TAG("Outside");
    void *block = malloc(100);
    printf("%s\n", tally_active() ? "on" : "off");
    return block == NULL;
}

/* secure.c - linked with the library and run setuid: it has to stay out entirely. Prints what it sees. */
#include <stdlib.h>
#include <sys/auxv.h>

#include "check.h"
#include "tally/tally.h"

int main(void) {
    int started = tally_start();
    free(keep(malloc(100)));
    say(1, "secure %d, start %s, active %d, %d bytes, why: %s\n", getauxval(AT_SECURE) != 0,
        started == 0 ? "worked" : "refused", tally_active(), (int)tally_bytes(),
        tally_error_text()[0] ? "said" : "not said");
    return 0;
}

/* plugin.c - a plugin that makes blocks under a literal tag. Built twice, as PluginA and PluginB: alike to the byte. */
#include <stdlib.h>

#include "tally/tally.h"

void *plugin_make(size_t size) {
    TALLY_TAG(PLUGIN_NAME);
    return malloc(size);
}

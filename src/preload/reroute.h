/*
 * reroute.h - when another allocator stands before us in the search order (LD_PRELOAD=liballocator.so:libtally.so, or
 * -lallocator -ltally), its malloc is what programs get and our hooks are never called. This puts our hooks into the
 * import tables of all loaded files but the allocator's own, so that calls come to us and we pass them on to it.
 */
#ifndef TLY_REROUTE_H
#define TLY_REROUTE_H

/* NULL, or why it could not be done (a constant text). At the start, before threads. Files that are loaded later
 * keep calling the allocator: their blocks are unseen. */
const char *tly_reroute(const void *allocator_file);

#endif

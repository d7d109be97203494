/*
 * summary.h - what `tally run` says at the end: one screen on stderr.
 */
#ifndef TLY_SUMMARY_H
#define TLY_SUMMARY_H

#include <stdio.h>

#include "collector.h"

/* The main program first, then the other processes that allocated most; no more than fit on a screen. */
void tly_summary_print(FILE *out, const struct tly_collector *collector);

#endif

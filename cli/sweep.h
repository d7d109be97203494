/*
 * sweep.h - collects what processes left behind that nobody collected: preloaded ones that were killed, and those that
 * outlived their `tally run`. Each goes to its own `output` in its own directory; regions without an account are
 * removed.
 */
#ifndef TLY_SWEEP_H
#define TLY_SWEEP_H

/* Looks through all run directories of the user that no collector holds. `quiet`: no line for each recording. */
void tly_sweep(int quiet);

#endif

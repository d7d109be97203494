/* consolidator.h - the background thread of a process that nobody collects: looks at the balances now and then. */
#ifndef TLY_CONSOLIDATOR_H
#define TLY_CONSOLIDATOR_H

#include <stdint.h>

/* Starts it unless it runs; period 0: none. All signals are blocked in it. Its own allocations are in no bill. */
void tly_consolidator_start(int64_t period_ms);
#endif

/*
 * process.h - the life of the account: loaded, started, stopped, cleared, forked, ended.
 *
 * All of it runs inside the target: mapped memory and the fd writer only, errno kept.
 */
#ifndef TLY_PROCESS_H
#define TLY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"

/* Before the first hook looks at the gate; later calls do nothing. */
void tly_process_early(void);
/* First thing, from the first hook or the constructor, whichever comes first; later calls do nothing. Makes the region
 * and starts the accounting of a preloaded process. */
void tly_process_init(void);

/* Is there an account? Gives a forked child its own first, if it has none yet. */
bool tly_process_ready(void);
/* 0 or -errno, see tally.h. */
int tly_process_start(void);
int tly_process_stop(void);
int tly_process_clear(void);
void tly_process_pause_all(void);
bool tly_process_resume_all(void); /* false: was not paused */

/* The interposer found that malloc calls do not come here, and why (a constant text); NULL: they do. */
void tly_process_unreachable(const char *why);
/* "" or why tly_process_start failed the last time. */
const char *tly_process_reason(void);

/* Carries out what outsiders asked for, writes a checkpoint when one is due. */
void tly_process_poll(void);

#endif

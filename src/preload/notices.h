/* notices.h - calls that make cached knowledge void; see notices.c. */
#ifndef TLY_NOTICES_H
#define TLY_NOTICES_H

/* At the start, so that none of them has to ask the loader later: a thread that holds its lock may be waiting for us. */
void tly_notices_resolve(void);

#endif

/* error.h - the calling thread's last failure in words. */
#ifndef TLY_ERROR_H
#define TLY_ERROR_H

/* Keeps the (constant) text for tally_error_text() and returns -error. */
int tly_error(int error, const char *text);

#endif

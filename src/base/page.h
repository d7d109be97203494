/* page.h - the page sizes that layouts are made for. */
#ifndef TLY_PAGE_H
#define TLY_PAGE_H

/* A multiple of the page size of every kernel of this architecture: what is set aside and protected is aligned to it. */
#if defined(__aarch64__)
#define TLY_PAGE 65536
#else
#define TLY_PAGE 4096
#endif

#endif

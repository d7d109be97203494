/*
 * notices.c - calls that make cached knowledge void: a file is unloaded (its addresses may come back as another's), a
 * thread gets another name. They are passed on unchanged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "core/gate.h"
#include "region/region.h"

#define EXPORT __attribute__((visibility("default")))

/* Resolves once; several threads may do it at the same time, to the same value. */
#define REAL(NAME)                                                                                                     \
    static _Atomic(void *) found;                                                                                      \
    void *address = atomic_load(&found);                                                                               \
    if (!address) atomic_store(&found, address = dlsym(RTLD_NEXT, #NAME));                                             \
    __typeof__(NAME) *real = (__typeof__(NAME) *)address

static void forget_threads(void) {
    if (atomic_load(&tly_gate_state.ready) && (atomic_load(&tly_gate_state.auto_tags) & TLY_AUTO_THREAD))
        tly_gate_renew();
}

EXPORT int dlclose(void *handle) {
    REAL(dlclose);
    int result = real(handle);
    if (atomic_load(&tly_gate_state.ready)) tly_gate_renew();
    return result;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name) {
    REAL(pthread_setname_np);
    int result = real(thread, name);
    forget_threads();
    return result;
}

EXPORT int prctl(int option, ...) {
    REAL(prctl);
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(list, unsigned long);
    va_end(list);
    int result = real(option, argument[0], argument[1], argument[2], argument[3]);
    if (option == PR_SET_NAME) forget_threads();
    return result;
}

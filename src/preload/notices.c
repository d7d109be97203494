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
#include <sys/syscall.h>
#include <unistd.h>

#include "core/gate.h"
#include "preload/notices.h"
#include "region/region.h"

#define EXPORT __attribute__((visibility("default")))

static __typeof__(dlclose) *real_dlclose;
static __typeof__(pthread_setname_np) *real_setname;

void tly_notices_resolve(void) {
    real_dlclose = (__typeof__(real_dlclose))dlsym(RTLD_NEXT, "dlclose");
    real_setname = (__typeof__(real_setname))dlsym(RTLD_NEXT, "pthread_setname_np");
}

static void forget_threads(void) {
    if (atomic_load(&tly_gate_state.auto_tags) & TLY_AUTO_THREAD) tly_gate_renew();
}

EXPORT int dlclose(void *handle) {
    if (!real_dlclose) tly_notices_resolve();
    int result = real_dlclose(handle);
    tly_gate_renew();
    return result;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name) {
    if (!real_setname) tly_notices_resolve();
    int result = real_setname(thread, name);
    forget_threads();
    return result;
}

/* The system call itself, as glibc's function makes it: looking that up could meet the loader's lock. */
EXPORT int prctl(int option, ...) {
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(list, unsigned long);
    va_end(list);
    int result = (int)syscall(SYS_prctl, option, argument[0], argument[1], argument[2], argument[3]);
    if (option == PR_SET_NAME) forget_threads();
    return result;
}

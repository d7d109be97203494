// demangle.cpp - the one thing for which the offline half needs the C++ run-time library; see symbolise.h.
#include <cxxabi.h>

extern "C" {
char *tly_demangle(const char *name);
}

char *tly_demangle(const char *name) {
    if (name[0] != '_' || name[1] != 'Z') return nullptr;
    int status = 0;
    return abi::__cxa_demangle(name, nullptr, nullptr, &status);
}

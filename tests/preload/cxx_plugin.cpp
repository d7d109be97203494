// cxx_plugin.cpp - a plugin in C++ for a C program: allocates, throws, catches.
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tally/tally.h"

static std::vector<std::unique_ptr<std::string>> *strings;
static volatile size_t huge = static_cast<size_t>(-1) / 2 - 100;

extern "C" void *cxx_plugin_run(size_t count) {
    try {
        throw 1; // the thread's memory for exceptions is made now, and stays
    } catch (int) {
    }
    TALLY_TAG("Plugin in C++");
    strings = new std::vector<std::unique_ptr<std::string>>;
    for (size_t i = 0; i < count; i++)
        strings->push_back(std::make_unique<std::string>(1000, 'x'));
    try {
        operator delete(operator new(huge));
    } catch (const std::bad_alloc &) {
        return strdup("caught bad_alloc");
    }
    return strdup("nothing was thrown");
}

extern "C" void cxx_plugin_drop() {
    delete strings;
    strings = nullptr;
}

// odd_places.cpp - allocates and frees where there is hardly a program yet, or none any more: constructors of every
// priority, preinit, libraries' constructors and destructors, exit handlers, destructors of threads and of statics.
// What it does is the same each time; the account is compared with valgrind's count.
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

static void *volatile kept[64];
static void take_and_drop(int at, size_t size) {
    free(kept[at]);
    kept[at] = malloc(size);
    free(realloc(malloc(size), 2 * size));
}

static void before_all() { take_and_drop(0, 10); }
__attribute__((section(".preinit_array"), used)) static void (*const preinit)() = before_all;
__attribute__((constructor(101))) static void first() { take_and_drop(1, 20); }
__attribute__((constructor(65535))) static void last() { take_and_drop(2, 30); }
__attribute__((destructor(101))) static void at_last() {
    take_and_drop(0, 40);
    free(kept[1]);
}
__attribute__((destructor(65535))) static void at_first() { take_and_drop(3, 50); }
static void at_exit_handler() {
    take_and_drop(4, 60);
    if (!kept[6]) atexit(at_exit_handler); // one more, from a handler
    kept[6] = malloc(7);
}

struct whole {
    std::vector<std::string> strings;
    explicit whole(size_t count) {
        for (size_t i = 0; i < count; i++)
            strings.push_back(std::string(i * 10, 'x'));
    }
    ~whole() { take_and_drop(5, strings.size()); }
};
static whole in_static(20);
static thread_local whole in_thread(10);
static pthread_key_t key;
static void key_end(void *value) {
    take_and_drop(7, strlen(static_cast<char *>(value)) + in_thread.strings.size()), free(value);
}

static void *thread_main(void *) {
    pthread_setspecific(key, strdup("value"));
    return in_thread.strings.empty() ? nullptr : strdup("result");
}

int main(int argc, char **argv) {
    atexit(at_exit_handler);
    at_quick_exit(at_exit_handler);
    pthread_key_create(&key, key_end);
    pthread_setspecific(key, strdup("of main"));
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, nullptr, thread_main, nullptr);
        pthread_join(thread, &result);
        free(result);
    }
    if (write(1, "main is over\n", 13) < 0 || in_thread.strings.empty()) return 1;
    if (argc > 1 && strcmp(argv[1], "quick") == 0) quick_exit(2);
    if (argc > 1 && strcmp(argv[1], "thread") == 0) pthread_exit(nullptr);
    return 3;
}

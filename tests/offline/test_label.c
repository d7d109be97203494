/* test_label.c - what a terminal gets to see of arbitrary bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "offline/label.h"
#include "region_maker.h"

static void expect(const char *name, size_t length, bool in_path, const char *wanted) {
    char out[256];
    assert_int_equal(tly_label_escape(out, sizeof out, name, length, in_path), strlen(wanted));
    assert_string_equal(out, wanted);
}

static void test_escape(void **state) {
    (void)state;
    expect("plain", 5, false, "plain");
    expect("a/b", 3, false, "a/b");
    expect("a/b", 3, true, "a\\/b");
    expect("a\\b", 3, false, "a\\\\b");
    expect("\n\r\t", 3, false, "\\n\\r\\t");
    expect("\033[31m", 5, false, "\\x1b[31m");
    expect("a\0b", 3, false, "a\\x00b");
    expect("\x7f", 1, false, "\\x7f");
    expect("caf\xc3\xa9", 5, false, "caf\xc3\xa9");
    expect("\xe6\x97\xa5\xf0\x9f\x98\x80", 7, false, "\xe6\x97\xa5\xf0\x9f\x98\x80");
    expect("\xc3", 1, false, "\\xc3"); /* cut off */
    expect("\xff\xfe", 2, false, "\\xff\\xfe");
    expect("\xc0\xaf", 2, false, "\\xc0\\xaf");                   /* overlong '/' */
    expect("\xed\xa0\x80", 3, false, "\\xed\\xa0\\x80");          /* surrogate */
    expect("\xf4\x90\x80\x80", 4, false, "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
    expect("\xc2\x9b", 2, false, "\\xc2\\x9b");                   /* C1: a control sequence in one character */
    expect("\xe2\x80\xae", 3, false, "\\xe2\\x80\\xae");          /* right-to-left override */
}

static void test_short_buffer(void **state) {
    (void)state;
    char out[8];
    memset(out, '#', sizeof out);
    assert_int_equal(tly_label_escape(out, 5, "a\nbcdef", 7, false), 8);
    assert_string_equal(out, "a\\nb");
    assert_int_equal(out[5], '#');
    assert_int_equal(tly_label_escape(out, 4, "ab\033", 3, false), 6); /* no half of an escape */
    assert_string_equal(out, "ab");
    assert_int_equal(tly_label_escape(NULL, 0, "abc", 3, false), 3);
    assert_int_equal(tly_label_escape(out, 1, "abc", 3, false), 3);
    assert_string_equal(out, "");
}

/* Two different names never look the same. */
static void test_escape_is_injective(void **state) {
    (void)state;
    char seen[256][8];
    for (int i = 0; i < 256; i++) {
        char name = (char)i;
        tly_label_escape(seen[i], sizeof seen[i], &name, 1, true);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(seen[i], seen[k]);
    }
    char first[32], second[32];
    tly_label_escape(first, sizeof first, "\n", 1, false);
    tly_label_escape(second, sizeof second, "\\n", 2, false);
    assert_string_not_equal(first, second);
}

static void test_sites_and_paths(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    char out[256];
    uint32_t lib = region_maker_module(maker, "/usr/lib/lib\n.so", NULL, 0);
    uint32_t tag = region_maker_node(maker, 0, region_maker_tag(maker, "a/b"));
    uint32_t thread = region_maker_node(maker, tag, region_maker_site(maker, TLY_SITE_THREAD, "worker", 6, 0, 0));
    uint32_t module = region_maker_node(maker, thread, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, lib));
    uint32_t caller = region_maker_node(maker, module, region_maker_caller(maker, lib, 0x1234));
    uint32_t nowhere =
        region_maker_node(maker, thread, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, TLY_MODULE_UNKNOWN));
    uint32_t lost = region_maker_node(maker, nowhere, region_maker_caller(maker, TLY_MODULE_UNKNOWN, 0x7f0012345678));
    region_maker_bill(maker, 1, caller, 1, 1, 0, 0);
    region_maker_bill(maker, 1, lost, 1, 1, 0, 0);
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    free(image);
    region_maker_free(maker);
    assert_int_equal(snapshot->node_count, 7);
    tly_label_node(out, sizeof out, snapshot, 0);
    assert_string_equal(out, "__root");
    tly_label_node(out, sizeof out, snapshot, 4);
    assert_string_equal(out, "a\\/b/worker/lib\\n.so/lib\\n.so+0x1234");
    tly_label_node(out, sizeof out, snapshot, 6);
    assert_string_equal(out, "a\\/b/worker/?/0x7f0012345678");
    tly_snapshot_free(snapshot);
}

/* Two modules never have one label. */
static void test_modules_of_one_name(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    char out[128];
    static const struct {
        const char *path, *build_id, *label;
    } modules[] = {
        {"/usr/lib/a.so", "abcdefgh", "a.so"},
        {"/usr/lib/b.so", "abcdefgh", "/usr/lib/b.so"},
        {"/opt/b.so", "12345678", "/opt/b.so"},
        {"/opt/c.so", "12345678", "/opt/c.so (build 31323334)"},
        {"/opt/c.so", "87654321", "/opt/c.so (build 38373635)"},
    };
    for (int i = 0; i < 5; i++)
        region_maker_module(maker, modules[i].path, modules[i].build_id, 8);
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    free(image);
    region_maker_free(maker);
    assert_int_equal(snapshot->module_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        tly_label_module(out, sizeof out, snapshot, i);
        assert_string_equal(out, modules[i].label);
    }
    tly_snapshot_free(snapshot);
}

static void expect_function(const char *name, const char *wanted) {
    struct tly_snapshot_frame frame = {{name, (uint32_t)strlen(name)}, {NULL, 0}, 0};
    char out[512];
    tly_label_frame(out, sizeof out, &frame);
    assert_string_equal(out, wanted);
}

static void test_shortened_names(void **state) {
    (void)state;
    expect_function("f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
                    "f(std::string const&)");
    expect_function("std::vector<int, std::allocator<int> >::reserve(unsigned long)",
                    "std::vector<int>::reserve(unsigned long)");
    expect_function("std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, "
                    "std::allocator<int> > > >::f()",
                    "std::vector<std::vector<int>>::f()");
    expect_function("std::map<int, A, std::less<int>, std::allocator<std::pair<int const, A> > >::f()",
                    "std::map<int, A, std::less<int>>::f()");
    expect_function("std::__cxx11::list<int, my::pool<int> >::f()", "std::list<int, my::pool<int>>::f()");
    expect_function("std::__new_allocator<int>::allocate(unsigned long)",
                    "std::__new_allocator<int>::allocate(unsigned long)");
    expect_function("f(int, std::allocator<int> const&)", "f(int, std::allocator<int> const&)");
    expect_function("f(int, std::allocator<int>, long)", "f(int, std::allocator<int>, long)");
    expect_function("broken<int, std::allocator<", "broken<int, std::allocator<");
    expect_function("operator>> >(int)", "operator>>>(int)");
}

/* Which function of a chain stands for all of it. */
static void test_frame_choice(void **state) {
    (void)state;
    static const struct {
        const char *function, *file;
    } chain[][4] = {
        {{"load", "/src/a.c"}, {"main", "/src/a.c"}},
        {{"malloc", "/src/wrap.h"}, {"load", "/src/a.c"}, {"main", "/src/a.c"}},
        {{"operator new(unsigned long)", "/src/new.h"}, {"load", "/src/a.c"}},
        {{"std::allocate()", "/usr/include/c++/12/x.h"},
         {"std::push()", "/usr/include/c++/12/y.h"},
         {"load", "/src/a.c"}},
        {{"std::allocate()", "/usr/include/c++/12/x.h"}, {"std::grow()", "/usr/include/c++/12/y.h"}},
        {{"exported", NULL}},
    };
    static const uint32_t wanted[] = {0, 1, 1, 2, 1, 0};
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) {
        struct tly_snapshot_frame frames[4] = {0};
        struct tly_snapshot snapshot = {.frames = frames, .frame_count = 4};
        struct tly_snapshot_site site = {.kind = TLY_SITE_CALLER};
        for (; site.frame_count < 4 && chain[i][site.frame_count].function; site.frame_count++) {
            const char *function = chain[i][site.frame_count].function, *file = chain[i][site.frame_count].file;
            frames[site.frame_count].function = (struct tly_bytes){function, (uint32_t)strlen(function)};
            if (file) frames[site.frame_count].file = (struct tly_bytes){file, (uint32_t)strlen(file)};
        }
        assert_int_equal(tly_label_frame_choice(&snapshot, &site), wanted[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_short_buffer),
        cmocka_unit_test(test_escape_is_injective),
        cmocka_unit_test(test_sites_and_paths),
        cmocka_unit_test(test_modules_of_one_name),
        cmocka_unit_test(test_shortened_names),
        cmocka_unit_test(test_frame_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

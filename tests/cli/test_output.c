/* test_output.c - names of recordings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output.h"

static const struct tly_output_facts facts = {42, "prog/ram", "host"};

static void patterns(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"%n.%p.tally", "/d/prog_ram.42.tally"},
        {"/x/%h", "/x/host"},
        {"%%p", "/d/%p"},
        {"%", "/d/%"},
        {"%z", "/d/%z"},
        {"a%pb%p", "/d/a42b42"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tly_output_name(out, sizeof out, "/d", cases[i][0], &facts), 0);
        assert_string_equal(out, cases[i][1]);
    }
    assert_int_equal(tly_output_name(out, 10, "/d", "1234567", &facts), -ENAMETOOLONG);
    assert_int_equal(tly_output_name(out, 11, "/d", "1234567", &facts), 0);
}

static void absolute_means_the_same_elsewhere(void **state) {
    (void)state;
    char pattern[64], out[64];
    assert_int_equal(tly_output_absolute(pattern, sizeof pattern, "/50%p", "%n"), 0);
    assert_int_equal(tly_output_name(out, sizeof out, "/elsewhere", pattern, &facts), 0);
    assert_string_equal(out, "/50%p/prog_ram");
    assert_int_equal(tly_output_absolute(pattern, sizeof pattern, "/50%p", "/a"), 0);
    assert_string_equal(pattern, "/a");
    assert_int_equal(tly_output_absolute(pattern, 5, "/dddd", "a"), -ENAMETOOLONG);
}

static void no_name_twice(void **state) {
    (void)state;
    struct tly_output_names names = {0};
    static const char *const wanted[] = {"/d/x.tally", "/d/x.7.tally", "/d/x.7.2.tally", "/d/x.7.3.tally"};
    char name[64];
    for (int i = 0; i < 4; i++) {
        strcpy(name, "/d/x.tally");
        assert_int_equal(tly_output_claim(&names, name, sizeof name, 7), 0);
        assert_string_equal(name, wanted[i]);
    }
    static const char *const numbered[] = {"/d/y.7.tally", "/d/y.7.2.tally", "/d/y.7.3.tally"};
    for (int i = 0; i < 3; i++) {
        strcpy(name, "/d/y.7.tally");
        assert_int_equal(tly_output_claim(&names, name, sizeof name, 7), 0);
        assert_string_equal(name, numbered[i]);
    }
    strcpy(name, "/d/plain");
    assert_int_equal(tly_output_claim(&names, name, sizeof name, 7), 0);
    assert_int_equal(tly_output_claim(&names, name, sizeof name, 7), 0);
    assert_string_equal(name, "/d/plain.7");
    tly_output_forget(&names);
    assert_int_equal(names.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(absolute_means_the_same_elsewhere),
        cmocka_unit_test(no_name_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

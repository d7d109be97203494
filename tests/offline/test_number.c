/* test_number.c - numbers and sizes as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/number.h"

static char text[TLY_NUMBER_BYTES];

static void test_exact(void **state) {
    (void)state;
    assert_string_equal(tly_number_exact(text, sizeof text, 0), "0");
    assert_string_equal(tly_number_exact(text, sizeof text, 999), "999");
    assert_string_equal(tly_number_exact(text, sizeof text, 1000), "1,000");
    assert_string_equal(tly_number_exact(text, sizeof text, 1234567), "1,234,567");
    assert_string_equal(tly_number_exact(text, sizeof text, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void test_size(void **state) {
    (void)state;
    assert_string_equal(tly_number_size(text, sizeof text, 0), "0 B");
    assert_string_equal(tly_number_size(text, sizeof text, 1023), "1023 B");
    assert_string_equal(tly_number_size(text, sizeof text, 1024), "1.00 KiB");
    assert_string_equal(tly_number_size(text, sizeof text, 1234567), "1.18 MiB");
    assert_string_equal(tly_number_size(text, sizeof text, 10239), "10.0 KiB");
    assert_string_equal(tly_number_size(text, sizeof text, 102399), "100 KiB");
    assert_string_equal(tly_number_size(text, sizeof text, 1048575), "1.00 MiB"); /* not 1024 KiB */
    assert_string_equal(tly_number_size(text, sizeof text, UINT64_MAX), "16.0 EiB");
}

static void test_count(void **state) {
    (void)state;
    assert_string_equal(tly_number_count(text, sizeof text, 999), "999");
    assert_string_equal(tly_number_count(text, sizeof text, 1000), "1.00 k");
    assert_string_equal(tly_number_count(text, sizeof text, 999999), "1.00 M");
    assert_string_equal(tly_number_count(text, sizeof text, 1234567890), "1.23 G");
    assert_string_equal(tly_number_count(text, sizeof text, UINT64_MAX), "18.4 E");
}

static void test_percent(void **state) {
    (void)state;
    assert_string_equal(tly_number_percent(text, sizeof text, 0, 0), "-");
    assert_string_equal(tly_number_percent(text, sizeof text, 0, 7), "0.0 %");
    assert_string_equal(tly_number_percent(text, sizeof text, 1, 8), "12.5 %");
    assert_string_equal(tly_number_percent(text, sizeof text, 7, 7), "100.0 %");
    assert_string_equal(tly_number_percent(text, sizeof text, 9999, 10000), "99.9 %"); /* 100 % means all of it */
    assert_string_equal(tly_number_percent(text, sizeof text, 1, 1000000), "<0.1 %");
    assert_string_equal(tly_number_percent(text, sizeof text, UINT64_MAX, UINT64_MAX), "100.0 %");
}

static void test_duration(void **state) {
    (void)state;
    assert_string_equal(tly_number_duration(text, sizeof text, 0), "0 ns");
    assert_string_equal(tly_number_duration(text, sizeof text, 45000), "45.0 us");
    assert_string_equal(tly_number_duration(text, sizeof text, 12345678), "12.3 ms");
    assert_string_equal(tly_number_duration(text, sizeof text, 999999999), "1.00 s");
    assert_string_equal(tly_number_duration(text, sizeof text, 3210000000), "3.21 s");
    assert_string_equal(tly_number_duration(text, sizeof text, 65000000000), "1 min 05 s");
    assert_string_equal(tly_number_duration(text, sizeof text, 7500000000000), "2 h 05 min");
}

static void test_short_buffers(void **state) {
    (void)state;
    char small[4];
    assert_string_equal(tly_number_exact(small, sizeof small, 1234567), "1,2");
    assert_string_equal(tly_number_size(small, 1, 5), "");
    small[0] = 'x';
    tly_number_size(small, 0, 5);
    assert_int_equal(small[0], 'x');
}

static void test_parse_size(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},          {"12", 12},           {"12k", 12288},        {"12K", 12288},
                {"1.5M", 1572864}, {"2GiB", 2147483648}, {"64 KB", 65536},      {"7B", 7},
                {"0.5k", 512},     {".25k", 256},        {"1t", 1099511627776}, {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",   ".",    "k",     "1x",
                                      "-1", "1kk",  "1 k x", "9223372036854775808",
                                      "8E", "1e99", "0x10",  "99999999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t value = 1;
        assert_int_equal(tly_number_parse_size(good[i].text, &value), 0);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t value;
        assert_int_equal(tly_number_parse_size(bad[i], &value), -EINVAL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),      cmocka_unit_test(test_size),     cmocka_unit_test(test_count),
        cmocka_unit_test(test_percent),    cmocka_unit_test(test_duration), cmocka_unit_test(test_short_buffers),
        cmocka_unit_test(test_parse_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

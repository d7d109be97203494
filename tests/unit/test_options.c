/* test_options.c - option values: what is accepted, what is said about the rest, and the way back to text. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"

static char problems[4000];
static int problem_count;
static void problem(const char *line) {
    problem_count++;
    snprintf(problems + strlen(problems), sizeof problems - strlen(problems), "%s\n", line);
}
static struct tly_options parse(const char *text) {
    struct tly_options options;
    tly_options_default(&options);
    problems[0] = 0;
    problem_count = 0;
    tly_options_parse(&options, text, problem);
    tly_options_parse(&options, text, NULL); /* nobody to complain to */
    return options;
}

static void defaults(void **state) {
    (void)state;
    struct tly_options options = parse("");
    assert_true(options.tags && options.follow && !options.share && !options.quiet);
    assert_int_equal(options.auto_tags, 0);
    assert_string_equal(options.output, "%n.%p.tally");
    assert_int_equal(options.consolidate_period_ms, 23);
    assert_int_equal(options.path_node_table_mb, 128);
    for (size_t i = 0; i < tly_option_count(); i++) {
        const struct tly_option_row *row = tly_option_row(i);
        assert_ptr_equal(tly_option_find(row->name, strlen(row->name)), row);
        assert_true(row->help[0]);
    }
    assert_null(tly_option_row(tly_option_count()));
    assert_null(tly_option_find("tag", 3));
    assert_null(tly_option_find("tagss", 5));
    assert_non_null(tly_option_find("auto-tags=x", 9)); /* as a flag writes it; only the bytes that were given */
}

static void values(void **state) {
    (void)state;
    struct tly_options options =
        parse("tags:no,quiet:1,auto_tags:module+caller,checkpoint-s:86400, \tfollow:off,output:a:b\\,c\\\\d");
    assert_int_equal(problem_count, 0);
    assert_false(options.tags || options.follow);
    assert_true(options.quiet);
    assert_int_equal(options.auto_tags, 5);
    assert_int_equal(options.checkpoint_s, 86400);
    assert_string_equal(options.output, "a:b,c\\d");
    assert_int_equal(parse("auto_tags:none").auto_tags, 0);
    assert_int_equal(parse("auto_tags:thread|module").auto_tags, 3);
    assert_int_equal(parse("checkpoint_s:1,checkpoint_s:2").checkpoint_s, 2); /* the later one */
    assert_string_equal(parse("output:").output, "");
    assert_int_equal(problem_count, 0);
}

static void bad_values(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"tgas:true", "tags"},
        {"tags", "name:value"},
        {"tags:maybe", "neither"},
        {"tags:", "neither"},
        {"checkpoint_s:-1", "0 to 86400"},
        {"checkpoint_s:86401", "0 to 86400"},
        {"checkpoint_s:99999999999999999999999999", "outside"},
        {"checkpoint_s:12x", "whole number"},
        {"checkpoint_s:", "whole number"},
        {"checkpoint_s:-", "whole number"},
        {"auto_tags:modul", "module"},
        {"auto_tags:module+", "not one of"},
        {"\x1b[31m:1", "there is no option"},
        {":", "there is no option"},
        {"event_buffers_mb:0", "1 to"},
    };
    char usual[9000], now[9000];
    struct tly_options options = parse("");
    tly_options_write(&options, usual, sizeof usual);
    assert_string_equal(usual, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options = parse(cases[i].text);
        assert_int_equal(problem_count, 1);
        if (!strstr(problems, cases[i].says)) fail_msg("%s: %s", cases[i].text, problems);
        assert_null(strchr(problems, '\x1b'));
        tly_options_write(&options, now, sizeof now);
        assert_string_equal(now, "");
    }
    options = parse("tgas:1,quiet:true,nonsense");
    assert_int_equal(problem_count, 2);
    assert_true(options.quiet);
}

static void long_texts(void **state) {
    (void)state;
    static char text[20000];
    for (size_t bytes = 4090; bytes <= 9000; bytes += bytes < 4100 ? 1 : 1000) {
        memset(text, 0, sizeof text);
        memcpy(text, "output:", 7);
        memset(text + 7, 'x', bytes);
        struct tly_options options = parse(text);
        assert_int_equal(problem_count, bytes > 4096);
        assert_int_equal(strlen(options.output), bytes > 4096 ? strlen("%n.%p.tally") : bytes);
    }
    struct tly_options options = parse("");
    char error[10];
    assert_int_equal(tly_option_set(&options, "nosuch", 6, "1", 1, error, sizeof error), -EINVAL);
    assert_int_equal(strlen(error), 9); /* cut, terminated */
    assert_int_equal(tly_option_set(&options, "nosuch", 6, "1", 1, NULL, 0), -EINVAL);
    assert_int_equal(tly_option_set(&options, "quiet", 5, "yes", 3, NULL, 0), 0);
    assert_true(options.quiet);
}

static void there_and_back(void **state) {
    (void)state;
    uint64_t random = world_seed();
    for (int round = 0; round < 2000; round++) {
        struct tly_options options, again;
        tly_options_default(&options);
        for (size_t i = 0; i < tly_option_count(); i++) {
            const struct tly_option_row *row = tly_option_row(i);
            char value[200];
            uint64_t r = world_random(&random);
            if (r % 2) continue;
            switch (row->type) {
            case TLY_OPTION_BOOL: strcpy(value, r & 2 ? "true" : "false"); break;
            case TLY_OPTION_INT:
                snprintf(value, sizeof value, "%lld",
                         (long long)(row->min + (int64_t)((r >> 4) % (uint64_t)(row->max - row->min + 1))));
                break;
            case TLY_OPTION_TAGS: strcpy(value, r & 2 ? "caller+thread" : "module"); break;
            case TLY_OPTION_TEXT:
                for (size_t k = 0; k < 20; k++)
                    value[k] = ",\\:+abc %"[(r >> (k * 3)) % 9];
                value[r >> 60] = 0;
                break;
            }
            assert_int_equal(tly_option_set(&options, row->name, strlen(row->name), value, strlen(value), NULL, 0), 0);
        }
        char text[9000];
        size_t length = tly_options_write(&options, text, sizeof text);
        assert_int_equal(length, strlen(text));
        again = parse(text);
        assert_int_equal(problem_count, 0);
        char second[9000];
        tly_options_write(&again, second, sizeof second);
        assert_string_equal(text, second);
        assert_string_equal(options.output, again.output);
        assert_int_equal(options.event_buffers_mb, again.event_buffers_mb);
        assert_int_equal(options.auto_tags, again.auto_tags);
        assert_int_equal(options.share, again.share);
        /* into too small a buffer */
        char small[12];
        memset(small, 'z', sizeof small);
        assert_int_equal(tly_options_write(&options, small, 8), length);
        assert_true(strlen(small) < 8 && strncmp(small, text, strlen(small)) == 0);
        assert_int_equal(small[8], 'z');
    }
}

static void suggestions(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {{"", "", 0},
                 {"", "abc", 3},
                 {"abc", "", 3},
                 {"tags", "tags", 0},
                 {"tgas", "tags", 1},
                 {"tag", "tags", 1},
                 {"tagss", "tags", 1},
                 {"tigs", "tags", 1},
                 {"auto-tags", "AUTO_TAGS", 0},
                 {"kitten", "sitting", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tly_suggest_distance(cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b)),
                         cases[i].distance);
    static const char *const names[] = {"output", "tags", "quiet"};
    int likely = 7;
    assert_string_equal(tly_suggest("tgas", 4, names, 3, &likely), "tags");
    assert_int_equal(likely, 1);
    assert_non_null(tly_suggest("zzzzzzzzzzzz", 12, names, 3, &likely));
    assert_int_equal(likely, 0);
    assert_null(tly_suggest("x", 1, names, 0, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),   cmocka_unit_test(values),         cmocka_unit_test(bad_values),
        cmocka_unit_test(long_texts), cmocka_unit_test(there_and_back), cmocka_unit_test(suggestions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

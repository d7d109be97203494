/* test_options.c - option values: parser, messages, and the way back to text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"
#include "base/suggest.h"

static struct tly_options options;
static char problems[4096];
static int problem_count;

static void note(const char *line) {
    problem_count++;
    snprintf(problems + strlen(problems), sizeof problems - strlen(problems), "%s\n", line);
}

static void parse(const char *text) {
    tly_options_default(&options);
    problems[0] = 0;
    problem_count = 0;
    tly_options_parse(&options, text, note);
}

static void defaults_are_the_tables(void **state) {
    (void)state;
    tly_options_default(&options);
#define CHECK_BOOL(NAME, DEFAULT) assert_int_equal(options.NAME, DEFAULT);
#define CHECK_INT(NAME, DEFAULT) assert_int_equal(options.NAME, DEFAULT);
#define CHECK_TAGS(NAME, DEFAULT) assert_int_equal(options.NAME, DEFAULT);
#define CHECK_TEXT(NAME, DEFAULT) assert_string_equal(options.NAME, DEFAULT);
#define CHECK(NAME, TYPE, DEFAULT, MIN, MAX, HELP) CHECK_##TYPE(NAME, DEFAULT)
    TLY_OPTION_TABLE(CHECK)
}

static void good_values_are_set(void **state) {
    (void)state;
    parse("tags:false,auto_tags:module+caller,output:/a/b:c.tally, consolidate_period_ms:0 ,checkpoint_s:86400");
    /* a blank before the next comma belongs to the value */
    assert_int_equal(problem_count, 1);
    parse("tags:off,auto-tags:thread|caller,output:/a/b:c.tally, consolidate_period_ms:0,checkpoint_s:86400");
    assert_int_equal(problem_count, 0);
    assert_false(options.tags);
    assert_int_equal(options.auto_tags, 6);
    assert_string_equal(options.output, "/a/b:c.tally");
    assert_int_equal(options.consolidate_period_ms, 0);
    assert_int_equal(options.checkpoint_s, 86400);
    parse("auto_tags:caller,auto_tags:none,,quiet:yes,quiet:no,quiet:1,");
    assert_int_equal(problem_count, 0);
    assert_int_equal(options.auto_tags, 0);
    assert_true(options.quiet);
    parse("output:a\\,b\\\\c\\d,share:true");
    assert_int_equal(problem_count, 0);
    assert_string_equal(options.output, "a,b\\c\\d");
    assert_true(options.share);
    parse("output:");
    assert_int_equal(problem_count, 0);
    assert_string_equal(options.output, "");
}

static void bad_ones_are_told_and_change_nothing(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"tag:true", "there is no option \"tag\"; did you mean tags?"},
        {"TAGS:true", "did you mean tags?"},
        {"folow:true", "did you mean follow?"},
        {"auto_tgas:none", "did you mean auto_tags?"},
        {"xyzzyxyzzyxyzzy:1", "the nearest is "},
        {"tags", "\"tags\" has no value"},
        {"tags:maybe", "tags: \"maybe\" is neither true nor false"},
        {"tags:", "neither true nor false"},
        {"auto_tags:modul", "did you mean module?"},
        {"auto_tags:module+", "is not one of none, module, thread, caller"},
        {"checkpoint_s:86401", "\"86401\" is outside the range 0 to 86400"},
        {"checkpoint_s:-1", "outside the range"},
        {"checkpoint_s:1s", "not a whole number; the range is 0 to 86400"},
        {"checkpoint_s:", "not a whole number"},
        {"checkpoint_s:-", "not a whole number"},
        {"checkpoint_s:99999999999999999999999999999999999999", "outside the range"},
        {"checkpoint_s:18446744073709551617", "outside the range"},
        {"event_buffers_mb:0", "outside the range 1 to 1048576"},
        {":", "there is no option \"\""},
        {"\033[31m:1", "there is no option \"?[31m\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tly_options before;
        parse(bad[i].text);
        assert_int_equal(problem_count, 1);
        if (!strstr(problems, bad[i].message)) fail_msg("%s: %s", bad[i].text, problems);
        tly_options_default(&before);
        assert_memory_equal(&options, &before, sizeof before);
    }
    parse("nonsense,tags:false,auto_tags:zzz,quiet:true");
    assert_int_equal(problem_count, 2);
    assert_false(options.tags);
    assert_true(options.quiet);
}

static void long_texts_end_at_the_limit(void **state) {
    (void)state;
    static char text[6000];
    memcpy(text, "output:", 7);
    memset(text + 7, 'x', 4096);
    text[7 + 4096] = 0;
    parse(text);
    assert_int_equal(problem_count, 0);
    assert_int_equal(strlen(options.output), 4096);
    strcpy(text + 7 + 4096, "y");
    parse(text);
    assert_int_equal(problem_count, 1);
    assert_non_null(strstr(problems, "longer than 4096 bytes"));
    assert_string_equal(options.output, "%n.%p.tally");
    char error[40];
    assert_int_equal(tly_option_set(&options, "checkpoint_s", 12, text, strlen(text), error, sizeof error), -EINVAL);
    assert_true(strlen(error) < sizeof error);
    assert_int_equal(tly_option_set(&options, "checkpoint_s", 12, "x", 1, NULL, 0), -EINVAL);
}

static void written_is_read_again(void **state) {
    (void)state;
    static const char *const texts[] = {"", "tags:false",
                                        "auto_tags:module+thread+caller,output:a\\,b\\\\c:%p,quiet:true",
                                        "consolidate_period_ms:0,event_buffers_mb:1,path_node_table_mb:65536"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[8192], small[8];
        struct tly_options first;
        parse(texts[i]);
        assert_int_equal(problem_count, 0);
        first = options;
        size_t length = tly_options_write(&first, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_string_equal(text, texts[i]);
        parse(text);
        assert_memory_equal(&first, &options, sizeof first);
        assert_int_equal(tly_options_write(&first, small, sizeof small), length);
        assert_true(strlen(small) < sizeof small);
    }
}

static void the_references_variables_are_aliases(void **state) {
    (void)state;
    char *environment[] = {"A=1",
                           "PXR_TF_MALLOC_TAG_EVENT_BUFFERS_MB=17",
                           "PXR_TF_MALLOC_TAG_CONSOLIDATE_PERIOD_MS=0",
                           "PXR_TF_MALLOC_TAG_PATH_NODE_TABLE_MB=x",
                           "PXR_TF_MALLOC_TAG_EVENT_BUFFERS_MBS=18",
                           NULL};
    parse("");
    tly_options_aliases(&options, environment, note);
    assert_int_equal(options.event_buffers_mb, 17);
    assert_int_equal(options.consolidate_period_ms, 0);
    assert_int_equal(options.path_node_table_mb, 128);
    assert_int_equal(problem_count, 1);
    assert_non_null(strstr(problems, "path_node_table_mb: \"x\" is not a whole number"));
}

static void distances(void **state) {
    (void)state;
    assert_int_equal(tly_suggest_distance("", 0, "abc", 3), 3);
    assert_int_equal(tly_suggest_distance("abc", 3, "abc", 3), 0);
    assert_int_equal(tly_suggest_distance("abc", 3, "acb", 3), 1);
    assert_int_equal(tly_suggest_distance("Auto-Tags", 9, "auto_tags", 9), 0);
    assert_int_equal(tly_suggest_distance("kitten", 6, "sitting", 7), 3);
    char longer[200];
    memset(longer, 'a', sizeof longer);
    assert_int_equal(tly_suggest_distance(longer, sizeof longer, longer, 63), 0);
    static const char *const names[] = {"alpha", "beta", "gamma"};
    int likely;
    assert_string_equal(tly_suggest("gama", 4, names, 3, &likely), "gamma");
    assert_true(likely);
    assert_null(tly_suggest("x", 1, names, 0, &likely));
    assert_false(likely);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_tables),
        cmocka_unit_test(good_values_are_set),
        cmocka_unit_test(bad_ones_are_told_and_change_nothing),
        cmocka_unit_test(long_texts_end_at_the_limit),
        cmocka_unit_test(written_is_read_again),
        cmocka_unit_test(distances),
        cmocka_unit_test(the_references_variables_are_aliases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

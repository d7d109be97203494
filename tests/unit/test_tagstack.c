/* test_tagstack.c - the thread's stack of tags: what is billed where after any sequence of calls. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/account.h"
#include "core/gate.h"
#include "core/tag.h"
#include "core/tagstack.h"
#include "region/writer.h"

static uint32_t here(void) { return tly_self.tag_node; }
static void pop(void) { tly_tag_pop_to(tly_self.depth - 1); }
/* The node that an allocation is billed to now. */
static uint32_t billed(void) {
    void *block = world_block(0, 0);
    uint64_t size;
    uint32_t node = UINT32_MAX, entry[3];
    tly_account_made(block, 40, NULL);
    memcpy(entry, tly_map_entry_for((uintptr_t)block), sizeof entry);
    if (!tly_map_take(entry, &size, &node)) return UINT32_MAX;
    tly_account_gone(block);
    return node;
}
static uint64_t errors(void) { return tly_thread_ledger()->pop_errors; }

/* Each test begins with a ready thread and an empty stack. */
static int empty(void **state) {
    (void)state;
    assert_true(tly_thread_ready(&tly_self));
    if (tly_self.depth) tly_tag_pop_to(0);
    assert_int_equal(here(), TLY_NODE_ROOT);
    assert_int_equal(billed(), TLY_NODE_ROOT);
    return 0;
}

static void push_and_pop(void **state) {
    (void)state;
    assert_int_equal(tly_tag_push("A"), 1);
    uint32_t a = here();
    assert_int_equal(a, world_node(TLY_NODE_ROOT, "A"));
    assert_int_equal(tly_tag_push("B"), 2);
    assert_int_equal(here(), world_node(a, "B"));
    assert_int_equal(billed(), here());
    pop();
    assert_int_equal(here(), a);
    pop();
    assert_int_equal(here(), TLY_NODE_ROOT);
    uint64_t before = errors();
    assert_false(tly_tag_pop_to(0)); /* empty */
    assert_false(tly_tag_pop_to(5));
    assert_int_equal(errors(), before + 2);
    assert_int_equal(here(), TLY_NODE_ROOT);
}

static void no_name(void **state) {
    (void)state;
    tly_tag_push("A");
    uint32_t a = here();
    const char *const empties[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tly_tag_push(empties[i]), 2);
        assert_int_equal(here(), a);
        assert_int_equal(tly_tag_push_copy(empties[i]), 3);
        assert_int_equal(here(), a);
        pop();
        pop();
        assert_int_equal(tly_self.depth, 1);
    }
}

/* The slot of a depth remembers the last push there: it must not answer for another name or another parent. */
static void other_names_at_one_depth(void **state) {
    (void)state;
    static const char *const names[] = {"slot 1", "slot 2", "slot 3"};
    for (int round = 0; round < 30; round++) {
        const char *outer = names[round % 3];
        tly_tag_push(outer);
        uint32_t above = here();
        assert_int_equal(above, world_node(TLY_NODE_ROOT, outer));
        for (int i = 0; i < 6; i++) {
            const char *inner = names[(round / 3 + i / 2) % 3];
            tly_tag_push(inner);
            assert_int_equal(here(), world_node(above, inner));
            pop();
        }
        pop();
    }
}

static void copies(void **state) {
    (void)state;
    char buffer[20] = "first";
    tly_tag_push_copy(buffer);
    uint32_t first = here();
    pop();
    strcpy(buffer, "second");
    tly_tag_push_copy(buffer);
    assert_int_not_equal(here(), first);
    assert_int_equal(here(), world_node(TLY_NODE_ROOT, "second"));
    pop();
    assert_int_equal(world_node(TLY_NODE_ROOT, "first"), first);
    /* a copy and a literal of one name are one tag */
    tly_tag_push("second");
    assert_int_equal(here(), world_node(TLY_NODE_ROOT, "second"));
    pop();
}

static void long_names(void **state) {
    (void)state;
    static char name[6000];
    memset(name, 'n', sizeof name - 1);
    uint64_t before = tly_thread_ledger()->cut_names;
    name[TLY_NAME_MAX] = 0;
    tly_tag_push_copy(name);
    uint32_t longest = here();
    pop();
    assert_int_equal(tly_thread_ledger()->cut_names, before);
    name[TLY_NAME_MAX] = 'n';
    tly_tag_push_copy(name);
    assert_int_equal(here(), longest);
    assert_int_equal(tly_thread_ledger()->cut_names, before + 1);
    pop();
}

static void deep(void **state) {
    (void)state;
    enum { LEVELS = 10000 };
    static uint32_t nodes[LEVELS + 1];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < LEVELS; i++) {
            nodes[i] = here();
            assert_int_equal(tly_tag_push(i % 2 ? "even" : "odd"), i + 1);
            if (round == 0) assert_int_equal(tly_writer_node(here())->parent, nodes[i]);
        }
        for (uint32_t i = LEVELS; i-- > 0;) {
            tly_tag_pop_to(i);
            assert_int_equal(here(), nodes[i]);
        }
    }
}

/* ---- override, rewind, pause ------------------------------------------------------------------------------------- */

static void override(void **state) {
    (void)state;
    uint32_t theirs = world_node(world_node(TLY_NODE_ROOT, "their"), "stack");
    tly_tag_push("mine");
    uint32_t mine = here();
    struct tly_position mark, inner;
    tly_tag_position(&mark);
    assert_int_equal(tly_tag_override(theirs), 0);
    assert_int_equal(here(), theirs);
    tly_tag_push("more");
    assert_int_equal(here(), world_node(theirs, "more"));
    tly_tag_position(&inner);
    assert_int_equal(tly_tag_override(TLY_NODE_ROOT), 0);
    assert_int_equal(here(), TLY_NODE_ROOT);
    tly_tag_push("left pushed");
    assert_int_equal(tly_tag_rewind(&inner), 0);
    assert_int_equal(here(), world_node(theirs, "more"));
    tly_tag_push("left pushed");
    assert_int_equal(tly_tag_rewind(&mark), 0);
    assert_int_equal(here(), mine);
    assert_int_equal(tly_self.depth, 1);
    assert_int_equal(tly_tag_rewind(&inner), -EINVAL); /* deeper than we are */
    assert_int_equal(tly_tag_rewind(&mark), 0);        /* already there */
    assert_int_equal(tly_tag_override(TLY_NODE_PAUSED), -EINVAL);
    assert_int_equal(tly_tag_override(tly_node_count() + TLY_NODE_FIRST), -EINVAL);
    assert_int_equal(tly_tag_override(UINT32_MAX), -EINVAL);
    assert_int_equal(here(), mine);
    /* popped below and pushed anew: another stack at the same depth */
    tly_tag_position(&mark);
    pop();
    tly_tag_push("another");
    assert_int_equal(tly_tag_rewind(&mark), -EINVAL);
    assert_int_equal(here(), world_node(TLY_NODE_ROOT, "another"));
}

static struct tly_position handed_over;
static void *on_another_thread(void *result) {
    tly_tag_push("other thread");
    *(int *)result = tly_tag_rewind(&handed_over);
    if (tly_tag_override(handed_over.node) != 0) return NULL;
    return here() == handed_over.node ? result : NULL;
}

static void hand_over(void **state) {
    (void)state;
    int result = 0;
    void *fine;
    pthread_t thread;
    tly_tag_push("hand over");
    tly_tag_position(&handed_over);
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, &result), 0);
    pthread_join(thread, &fine);
    assert_int_equal(result, -EINVAL);
    assert_non_null(fine);
}

/* Before it has pushed or allocated anything. */
static void *override_first(void *result) {
    if (tly_tag_override(handed_over.node) != 0) return NULL;
    return billed() == handed_over.node ? result : NULL;
}
static void first_of_all_an_override(void **state) {
    (void)state;
    int something;
    void *fine;
    pthread_t thread;
    tly_tag_push("first of all");
    tly_tag_position(&handed_over);
    assert_int_equal(pthread_create(&thread, NULL, override_first, &something), 0);
    pthread_join(thread, &fine);
    assert_ptr_equal(fine, &something);
}

static void pause_thread(void **state) {
    (void)state;
    tly_tag_push("before");
    uint32_t before = here();
    assert_int_equal(billed(), before);
    tly_tag_pause_thread();
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    assert_int_equal(tly_self.generation, TLY_GENERATION_NONE); /* no fast path */
    tly_tag_push("within");
    assert_int_equal(here(), world_node(before, "within"));
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    tly_tag_pause_thread();
    tly_tag_resume_thread();
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    pop();
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    tly_tag_push("other");
    tly_tag_resume_thread();
    assert_int_equal(billed(), world_node(before, "other"));
    assert_int_equal(tly_self.generation, tly_gate_page.alloc);
    uint64_t errors_before = errors();
    tly_tag_resume_thread();
    assert_int_equal(errors(), errors_before + 1);
    assert_int_equal(billed(), world_node(before, "other"));
}

static void pause_all(void **state) {
    (void)state;
    tly_tag_push("all");
    uint32_t node = here();
    tly_gate_state.paused_all++;
    tly_gate_renew();
    assert_int_not_equal(tly_self.generation, tly_gate_page.alloc);
    assert_true(tly_thread_ready(&tly_self));
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    tly_tag_pause_thread();
    tly_tag_resume_thread(); /* still paused by the other */
    assert_int_equal(billed(), TLY_NODE_PAUSED);
    tly_gate_state.paused_all--;
    tly_gate_renew();
    assert_true(tly_thread_ready(&tly_self));
    assert_int_equal(billed(), node);
    assert_int_equal(tly_self.generation, tly_gate_page.alloc);
}

/* ---- any sequence ------------------------------------------------------------------------------------------------ */

static const char *const words[] = {"w0", "w1", "w2", "w3", "", "w5", "a longer one/with a slash\n", "w7"};
enum { WORDS = sizeof words / sizeof *words, DEEPEST = 700 };
static struct {
    uint32_t node[DEEPEST + 1]; /* node[i]: at depth i, found by names alone */
    uint32_t depth;
} model;

static uint32_t model_child(uint32_t node, const char *name) { return name[0] ? world_node(node, name) : node; }

static void any_step(uint64_t *random) {
    uint64_t r = world_random(random);
    const char *word = words[r >> 8 & (WORDS - 1)];
    char copy[100];
    switch (r % 8) {
    case 0:
    case 1:
    case 2:
        if (model.depth >= DEEPEST - 1) break;
        if (r & 16) {
            strcpy(copy, word);
            tly_tag_push_copy(copy);
            memset(copy, 'z', sizeof copy);
        } else {
            tly_tag_push(word);
        }
        model.node[model.depth + 1] = model_child(model.node[model.depth], word);
        model.depth++;
        break;
    case 3:
    case 4:
        if (model.depth == 0) break;
        pop();
        model.depth--;
        break;
    case 5: { /* a scope that is left with something still pushed */
        if (model.depth == 0) break;
        uint32_t to = (uint32_t)(r >> 20) % model.depth;
        if (model.depth - to > 3) to = model.depth - 3;
        tly_tag_pop_to(to);
        model.depth = to;
        break;
    }
    case 6: {
        if (model.depth >= DEEPEST - 1) break;
        struct tly_position mark;
        tly_tag_position(&mark);
        uint32_t target = model.node[(r >> 20) % (model.depth + 1)];
        assert_int_equal(tly_tag_override(target), 0);
        tly_tag_push(word);
        assert_int_equal(here(), model_child(target, word));
        assert_int_equal(tly_tag_rewind(&mark), 0);
        break;
    }
    default: /* what is cached becomes void */
        if (r % 64 != 7) break;
        tly_gate_renew();
        assert_true(tly_thread_ready(&tly_self));
    }
    assert_int_equal(tly_self.depth, model.depth);
    assert_int_equal(here(), model.node[model.depth]);
}

static void any_sequence(void **state) {
    (void)state;
    uint64_t random = world_seed();
    memset(&model, 0, sizeof model);
    for (int i = 0; i < 300000; i++)
        any_step(&random);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup(NAME, empty)
    const struct CMUnitTest tests[] = {
        TEST(push_and_pop), TEST(no_name),    TEST(other_names_at_one_depth),
        TEST(copies),       TEST(long_names), TEST(deep),
        TEST(override),     TEST(hand_over),  TEST(first_of_all_an_override),
        TEST(pause_thread), TEST(pause_all),  TEST(any_sequence),
    };
    return cmocka_run_group_tests(tests, world_setup, NULL);
}

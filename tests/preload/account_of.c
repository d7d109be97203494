/* account_of.c - see account_of.h. */
#include "account_of.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region/view.h"

struct picture {
    struct tly_view view;
    struct tly_balance *balance;
    uint32_t nodes;
};

static int take(const char *path, struct picture *out) {
    const char *why = NULL;
    int result = tly_view_open(path, &out->view, &why);
    if (result != 0) {
        fprintf(stderr, "%s: %s%s%s\n", path, strerror(-result), why ? ": " : "", why ? why : "");
        return -1;
    }
    /* nodes that come up while we read are left out: their balances are not in the sums of this picture */
    out->nodes = tly_view_count(&out->view, TLY_SEC_NODES);
    out->balance = calloc(out->nodes + 1u, sizeof *out->balance);
    if (!out->balance || (result = tly_view_balances(&out->view, out->balance, out->nodes)) != 0) {
        fprintf(stderr, "%s: balances: %s\n", path, strerror(-result));
        tly_view_close(&out->view);
        free(out->balance);
        return -1;
    }
    return 0;
}

static void drop(struct picture *picture) {
    free(picture->balance);
    tly_view_close(&picture->view);
}

static const struct tly_node *node_of(const struct picture *picture, uint32_t id) {
    return tly_view_record(&picture->view, TLY_SEC_NODES, id);
}

static bool is_paused(const struct picture *picture, uint32_t id) {
    while (id > TLY_NODE_PAUSED) {
        const struct tly_node *node = node_of(picture, id);
        if (!node || node->parent >= id) return false;
        id = node->parent;
    }
    return id == TLY_NODE_PAUSED;
}

int account_of(const char *path, struct account *out) {
    struct picture picture;
    memset(out, 0, sizeof *out);
    if (take(path, &picture) != 0) return -1;
    const struct tly_region *region = picture.view.region;
    out->pid = region->pid;
    out->forked_from = region->forked_from;
    out->flags = region->flags;
    out->state = region->state;
    out->inherited_blocks = region->inherited_blocks;
    out->inherited_bytes = region->inherited_bytes;
    out->off_radar_allocs = region->off_radar_allocs;
    out->spills = region->spills;
    out->nodes = picture.nodes;
    for (uint32_t id = 0; id < picture.nodes; id++) {
        const struct tly_balance *b = &picture.balance[id];
        if (b->free_bytes > b->alloc_bytes || b->free_blocks > b->alloc_blocks) out->negative_nodes++;
        if (is_paused(&picture, id)) {
            out->paused_live_blocks += b->alloc_blocks - b->free_blocks;
            out->paused_live_bytes += b->alloc_bytes - b->free_bytes;
            continue;
        }
        out->allocated_blocks += b->alloc_blocks;
        out->allocated_bytes += b->alloc_bytes;
        out->freed_blocks += b->free_blocks;
        out->freed_bytes += b->free_bytes;
    }
    out->live_blocks = out->allocated_blocks - out->freed_blocks;
    out->live_bytes = out->allocated_bytes - out->freed_bytes;
    out->total_bytes = tly_view_live_bytes(&picture.view);
    for (uint32_t i = 0; i < tly_view_count(&picture.view, TLY_SEC_LEDGERS); i++) {
        const struct tly_ledger *ledger = tly_view_record(&picture.view, TLY_SEC_LEDGERS, i);
        if (!ledger) continue;
        out->unmatched_frees += ledger->unmatched_frees;
        out->untracked_allocs += ledger->untracked_allocs;
        out->missed_frees += ledger->missed_frees;
        out->pop_errors += ledger->pop_errors;
        out->cut_names += ledger->cut_names;
    }
    drop(&picture);
    return 0;
}

static void print_escaped(const char *text, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        switch (text[i]) {
        case '\n': fputs("\\n", stdout); break;
        case '\t': fputs("\\t", stdout); break;
        case '\\': fputs("\\\\", stdout); break;
        case '/': fputs("\\/", stdout); break;
        default: putchar(text[i]);
        }
    }
}

static void print_site(const struct picture *picture, const struct tly_site *site) {
    const char *name = NULL;
    if (site->kind == TLY_SITE_TAG || site->kind == TLY_SITE_THREAD) {
        name = tly_view_name(&picture->view, site->name_offset, site->name_bytes);
        fputs(site->kind == TLY_SITE_THREAD ? "thread:" : "", stdout);
        if (name) print_escaped(name, site->name_bytes);
        return;
    }
    const struct tly_module *module = tly_view_record(&picture->view, TLY_SEC_MODULES, site->module);
    fputs(site->kind == TLY_SITE_MODULE ? "module:" : "caller:", stdout);
    if (module && (name = tly_view_name(&picture->view, module->name_offset, module->name_bytes)) != NULL) {
        uint32_t from = module->name_bytes;
        while (from > 0 && name[from - 1] != '/')
            from--;
        print_escaped(name + from, module->name_bytes - from);
    } else {
        putchar('?');
    }
    if (site->kind == TLY_SITE_CALLER) printf("+%llx", (unsigned long long)site->value);
}

static void print_path(const struct picture *picture, uint32_t id) {
    const struct tly_node *node = node_of(picture, id);
    if (!node || id <= TLY_NODE_PAUSED) return;
    if (node->parent > TLY_NODE_PAUSED) {
        print_path(picture, node->parent);
        putchar('/');
    } else if (node->parent == TLY_NODE_PAUSED) {
        fputs("(paused)/", stdout);
    }
    const struct tly_site *site = tly_view_record(&picture->view, TLY_SEC_SITES, node->site_plus_1 - 1);
    if (site) print_site(picture, site);
}

int account_print_nodes(const char *path) {
    struct picture picture;
    if (take(path, &picture) != 0) return -1;
    for (uint32_t id = 0; id < picture.nodes; id++) {
        const struct tly_balance *b = &picture.balance[id];
        if (b->alloc_blocks == 0) continue;
        if (id <= TLY_NODE_PAUSED) fputs(id == TLY_NODE_ROOT ? "__root" : "(paused)", stdout);
        print_path(&picture, id);
        printf("\t%llu\t%llu\t%llu\t%llu\n", (unsigned long long)(b->alloc_blocks - b->free_blocks),
               (unsigned long long)(b->alloc_bytes - b->free_bytes), (unsigned long long)b->alloc_blocks,
               (unsigned long long)b->alloc_bytes);
    }
    drop(&picture);
    return 0;
}

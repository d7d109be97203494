/* report.c - `tally report`: options, and one report per file. */
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/number.h"
#include "command.h"
#include "offline/label.h"
#include "offline/recording.h"
#include "offline/symbolise.h"

static const char usage[] =
    "Usage: tally report [options] FILE...\n"
    "\n"
    "Shows who owned how much memory: the tree of tags, modules, threads and callers in each FILE, a recording "
    "(.tally)\n"
    "or a raw region.\n"
    "\n"
    "  -s, --sort KEY      order and threshold by KEY: bytes (live), blocks (live), allocated (bytes since\n"
    "                      the start), allocations (blocks since the start), name; default: bytes, or\n"
    "                      allocated if everything was freed\n"
    "  -m, --min AMOUNT    rows below AMOUNT go into a line for the rest: a size (64k, 1.5MiB) or a share (2%);\n"
    "                      default 1%, less while no more than 25 rows are shown; in JSON and CSV 0\n"
    "  -d, --depth N       no more than N levels below the root\n"
    "  -t, --tag PATTERN   only what lies below call sites that match the shell pattern (quote it)\n"
    "      --sites         a flat table of call sites instead of the tree\n"
    "      --full          do not fold a call site that is repeated on a path (A/B/C/B/C is shown as A/B/C "
    "otherwise),\n"
    "                      and show all functions inlined at a call site\n"
    "      --exact         every digit of the figures in the table\n"
    "      --json          the report as JSON, one object per FILE\n"
    "      --csv           the tree as comma-separated values\n"
    "      --color WHEN    auto (the default), always, never; NO_COLOR is honoured\n"
    "  -h, --help          this text\n";

/* ---- Options ---------------------------------------------------------------------------------------------------- */

enum { OPTION_SITES = 256, OPTION_FULL, OPTION_EXACT, OPTION_JSON, OPTION_CSV, OPTION_COLOUR };

static const struct option long_options[] = {
    {"sort", required_argument, NULL, 's'},
    {"min", required_argument, NULL, 'm'},
    {"depth", required_argument, NULL, 'd'},
    {"tag", required_argument, NULL, 't'},
    {"sites", no_argument, NULL, OPTION_SITES},
    {"full", no_argument, NULL, OPTION_FULL},
    {"exact", no_argument, NULL, OPTION_EXACT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"csv", no_argument, NULL, OPTION_CSV},
    {"color", required_argument, NULL, OPTION_COLOUR},
    {"colour", required_argument, NULL, OPTION_COLOUR},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int bad_value(const char *option, const char *value, const char *expected) {
    fprintf(stderr, "tally report: %s %s: expected %s\n", option, value, expected);
    return -EINVAL;
}

static int parse_sort(const char *text, enum tly_rollup_sort *out) {
    static const char *const names[] = {"bytes", "blocks", "allocated", "allocations", "name"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (enum tly_rollup_sort)i;
        return 0;
    }
    return bad_value("--sort", text, "bytes, blocks, allocated, allocations or name");
}

static int parse_min(const char *text, struct report_options *options) {
    size_t length = strlen(text);
    options->min_given = true;
    options->min = 0;
    options->min_permyriad = 0;
    if (length && text[length - 1] == '%') {
        char *end;
        double percent = strtod(text, &end);
        if (end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
            return bad_value("--min", text, "a size like 64k, or a share from 0% to 100%");
        options->min_permyriad = (uint32_t)(percent * 100 + 0.5);
        return 0;
    }
    if (tly_number_parse_size(text, &options->min) == 0) return 0;
    return bad_value("--min", text, "a size like 64k or 1.5MiB, or a share like 2%");
}

static int parse_depth(const char *text, uint32_t *out) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value >= UINT32_MAX)
        return bad_value("--depth", text, "a number of levels");
    *out = (uint32_t)value;
    return 0;
}

/* 1 after --help. */
static int parse_options(int argc, char **argv, struct report_options *options, int *colour) {
    int letter, result = 0;
    argv[0] = (char *)(uintptr_t) "tally report"; /* getopt puts it in front of its messages */
    optind = 0;                                   /* begin anew, whoever has used getopt before */
    while ((letter = getopt_long(argc, argv, "s:m:d:t:h", long_options, NULL)) != -1 && result == 0) {
        switch (letter) {
        case 's':
            options->sort_given = true;
            result = parse_sort(optarg, &options->sort);
            break;
        case 'm': result = parse_min(optarg, options); break;
        case 'd': result = parse_depth(optarg, &options->depth); break;
        case 't': options->tag = optarg; break;
        case OPTION_SITES: options->format = REPORT_SITES; break;
        case OPTION_FULL: options->full = true; break;
        case OPTION_EXACT: options->exact_figures = true; break;
        case OPTION_JSON: options->format = REPORT_JSON; break;
        case OPTION_CSV: options->format = REPORT_CSV; break;
        case OPTION_COLOUR:
            *colour = strcmp(optarg, "always") == 0 ? 1 : strcmp(optarg, "never") == 0 ? 0 : -1;
            if (*colour < 0 && strcmp(optarg, "auto") != 0)
                result = bad_value("--color", optarg, "auto, always or never");
            break;
        case 'h': fputs(usage, stdout); return 1;
        default: result = -EINVAL; break; /* getopt has said why */
        }
    }
    if (result == 0 && optind == argc) {
        fputs("tally report: which file? Give one or more recordings (.tally) or raw regions\n", stderr);
        result = -EINVAL;
    }
    if (result != 0) fputs("Try 'tally report --help'.\n", stderr);
    return result;
}

/* ---- Helpers of the parts --------------------------------------------------------------------------------------- */

void report_largest_add(struct report_largest *largest, uint64_t figure) {
    uint32_t at = largest->count;
    if (at > REPORT_ROWS && figure <= largest->figure[REPORT_ROWS]) return;
    if (at > REPORT_ROWS) at = REPORT_ROWS; /* the smallest falls out */
    for (; at > 0 && largest->figure[at - 1] < figure; at--)
        largest->figure[at] = largest->figure[at - 1];
    largest->figure[at] = figure;
    if (largest->count <= REPORT_ROWS) largest->count++;
}

static uint64_t part_of(uint64_t whole, uint32_t permyriad) {
    return (uint64_t)(((unsigned __int128)whole * permyriad + 9999) / 10000);
}

uint64_t report_threshold(const struct report_options *options, uint64_t whole, const struct report_largest *largest) {
    if (options->min_given) {
        uint64_t part = part_of(whole, options->min_permyriad);
        return part > options->min ? part : options->min;
    }
    if (!largest) return 0;
    uint64_t percent = part_of(whole, 100);
    /* above the first figure that has no row left; rows that hold nothing are never shown */
    uint64_t enough = largest->count > REPORT_ROWS ? largest->figure[REPORT_ROWS] + 1 : 1;
    return percent < enough && percent > 0 ? percent : enough;
}

bool report_matches(const struct report *report, uint32_t row) {
    const struct tly_snapshot *snapshot = report->snapshot;
    uint32_t number = report->rollup.rows[row].site;
    if (number == TLY_NONE) return false;
    const struct tly_snapshot_site *site = &snapshot->sites[number];
    if (site->name.bytes) return fnmatch(report->options->tag, site->name.bytes, 0) == 0;
    if (site->kind == TLY_SITE_MODULE) {
        if (site->module == TLY_NONE) return fnmatch(report->options->tag, "?", 0) == 0;
        struct tly_bytes path = snapshot->modules[site->module].path;
        return fnmatch(report->options->tag, path.bytes, 0) == 0 ||
               fnmatch(report->options->tag, tly_label_base_name(path).bytes, 0) == 0;
    }
    for (uint32_t i = 0; i < site->frame_count; i++) {
        const struct tly_snapshot_frame *frame = &snapshot->frames[site->first_frame + i];
        if (frame->function.bytes && fnmatch(report->options->tag, frame->function.bytes, 0) == 0) return true;
    }
    return false;
}

uint32_t report_next_row(const struct report *report, uint32_t top, uint32_t row, bool descend, uint32_t *depth) {
    const struct tly_row *rows = report->rollup.rows;
    if (descend && rows[row].first_child != 0) {
        ++*depth;
        return rows[row].first_child;
    }
    for (; row != top; row = rows[row].parent, --*depth) {
        if (rows[row].next_sibling != 0) return rows[row].next_sibling;
    }
    return 0;
}

char *report_site_label(const struct report *report, uint32_t site) {
    size_t length = tly_label_site(NULL, 0, report->snapshot, site);
    char *label = malloc(length + 1);
    if (label) tly_label_site(label, length + 1, report->snapshot, site);
    return label;
}

char *report_row_path(const struct report *report, uint32_t row) {
    const struct tly_rollup *rollup = &report->rollup;
    size_t depth = 0, length;
    for (uint32_t i = row; i != 0; i = rollup->rows[i].parent)
        depth++;
    uint32_t *sites = malloc((depth + 1) * sizeof *sites);
    if (!sites) return NULL;
    for (uint32_t i = row, at = (uint32_t)depth; i != 0; i = rollup->rows[i].parent)
        sites[--at] = rollup->rows[i].site;
    length = tly_label_path(NULL, 0, report->snapshot, sites, depth);
    char *path = malloc(length + 1);
    if (path) tly_label_path(path, length + 1, report->snapshot, sites, depth);
    free(sites);
    return path;
}

const char *report_kind_name(uint32_t kind) {
    switch (kind) {
    case TLY_SITE_TAG: return "tag";
    case TLY_SITE_MODULE: return "module";
    case TLY_SITE_THREAD: return "thread";
    case TLY_SITE_CALLER: return "caller";
    default: return "root";
    }
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static uint32_t terminal_width(void) {
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    return width >= 20 && width <= 10000 ? (uint32_t)width : 80;
}

static void set_up_terminal(struct report *report, int colour) {
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool terminal = isatty(STDOUT_FILENO);
    report->width = terminal ? terminal_width() : 0;
    report->bars = report->width >= 80;
    report->colour =
        colour > 0 || (colour < 0 && terminal && !(no_colour && *no_colour) && !(kind && strcmp(kind, "dumb") == 0));
}

static int print(const struct report *report) {
    int result = 0;
    switch (report->options->format) {
    case REPORT_JSON: return report_json(report);
    case REPORT_CSV: return report_csv(report);
    case REPORT_TREE:
    case REPORT_SITES: break;
    }
    result = report_head(report);
    if (result != 0) return result;
    return report->options->format == REPORT_SITES ? report_sites(report) : report_tree(report);
}

/* 0, or the errno of what went wrong, which has been told. */
static int report_file(const char *path, const struct report_options *given, int colour, bool first) {
    struct report_options own = *given, *options = &own;
    struct tly_snapshot *snapshot;
    char error[1024];
    int result = tly_snapshot_load(path, &snapshot, error, sizeof error);
    if (result != 0) {
        fprintf(stderr, "tally report: %s\n", error);
        return result;
    }
    struct report report = {.path = path, .snapshot = snapshot, .options = options, .out = stdout};
    bool text = options->format == REPORT_TREE || options->format == REPORT_SITES;
    set_up_terminal(&report, colour);
    /* nothing is left to show by live bytes */
    if (text && !own.sort_given && snapshot->totals.sum.alloc_blocks == snapshot->totals.sum.free_blocks)
        own.sort = TLY_SORT_ALLOCATED;
    result = tly_snapshot_symbolise(snapshot);
    if (result == 0)
        result =
            tly_rollup_make(snapshot, !options->full || options->format == REPORT_SITES, options->sort, &report.rollup);
    if (result == 0) {
        if (text && !first) fputc('\n', stdout);
        result = print(&report);
        tly_rollup_free(&report.rollup);
    }
    if (result != 0) fprintf(stderr, "tally report: %s: not enough memory\n", path);
    tly_snapshot_free(snapshot);
    return result;
}

int tly_cmd_report(int argc, char **argv) {
    struct report_options options = {.format = REPORT_TREE, .sort = TLY_SORT_BYTES, .depth = UINT32_MAX};
    int colour = -1, failures = 0;
    int result = parse_options(argc, argv, &options, &colour);
    if (result != 0) return result > 0 ? 0 : TLY_EXIT_USAGE;
    bool first = true;
    for (int i = optind; i < argc; i++) {
        fflush(stdout); /* so that complaints come where they belong */
        if (report_file(argv[i], &options, colour, first) != 0)
            failures++;
        else
            first = false;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tally report: cannot write the report: %s\n", strerror(errno));
        failures++;
    }
    return failures ? 1 : 0;
}

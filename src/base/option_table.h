/*
 * option_table.h - every option, once: X(name, TYPE, default, min, max, help).
 *
 * A row feeds TALLY_CONF="key:value,key:value", the flags of `tally run` (name with '-' for '_'), the man page and the
 * C API. TYPE: BOOL (true/false; default 0/1), INT (default, min, max), TEXT (default is a string; min, max are the
 * longest and unused), TAGS (a set of none|module|thread|caller joined by '+' or, in flags, ','; default is a mask).
 * Unknown keys and bad values cost one line on stderr with the nearest valid name, and the default is kept.
 */
#ifndef TLY_OPTION_TABLE_H
#define TLY_OPTION_TABLE_H

#define TLY_OPTION_TABLE(X)                                                                                            \
    X(tags, BOOL, 1, 0, 1, "account from the start (a preloaded library; a linked one waits for tally_start)")         \
    X(auto_tags, TAGS, 0, 0, 7, "bill blocks to module, thread or caller below the tags: none, or names joined by +")  \
    X(output, TEXT, "%n.%p.tally", 4096, 0,                                                                            \
      "file written at exit: %p pid, %n program name, %h host, %% a percent sign")                                     \
    X(follow, BOOL, 1, 0, 1, "account in forked and executed children too")                                            \
    X(share, BOOL, 0, 0, 1, "put the account of a linked library where tally start, stop and dump can reach it")       \
    X(consolidate_period_ms, INT, 23, 0, 86400000, "milliseconds between two looks at the balances; 0: none")          \
    X(event_buffers_mb, INT, 256, 1, 1048576, "most memory for per-thread counters, MiB; beyond it threads share")     \
    X(path_node_table_mb, INT, 128, 1, 65536, "address space of the path-node index, MiB; a power of two of buckets")  \
    X(checkpoint_s, INT, 0, 0, 86400, "seconds between two files of a process that nobody collects; 0: only at exit")  \
    X(quiet, BOOL, 0, 0, 1, "no notes on stderr, only errors")

#endif

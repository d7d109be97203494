/*
 * statements.c - a plug-in for sqlite3 that tags each SQL statement while it runs, so that memory is billed to it.
 *
 *     sqlite> .load ./statements
 *
 * Tags need nothing linked: without Tally this does nothing but cut out a few words.
 */
#include <ctype.h>
#include <string.h>

#include <sqlite3ext.h>
#include <tally/tally.h>
SQLITE_EXTENSION_INIT1

/* The statement's first words, "INSERT INTO customer": as much as tells it from the others. */
static void first_words(const char *sql, char *name, size_t name_bytes) {
    size_t length = 0;
    int words = 0;
    while (isspace((unsigned char)*sql))
        sql++;
    for (; *sql && length + 1 < name_bytes; sql++) {
        if (isspace((unsigned char)*sql) || *sql == '(' || *sql == ';') {
            if (++words == 3) break;
            name[length++] = ' ';
            while (isspace((unsigned char)sql[1]))
                sql++;
        } else {
            name[length++] = *sql;
        }
    }
    while (length && name[length - 1] == ' ')
        length--;
    name[length] = '\0';
}

static int pushed; /* the first end has no begin: it is that of the statement that loaded this plug-in */

static int on_statement(unsigned event, void *context, void *statement, void *more) {
    (void)context;
    (void)statement;
    if (event == SQLITE_TRACE_STMT) {
        const char *sql = more;
        char name[64];
        if (strncmp(sql, "--", 2) == 0) return 0; /* a trigger inside the statement: it has no end of its own */
        first_words(sql, name, sizeof name);
        tally_push_copy(name);
        pushed++;
    } else if (event == SQLITE_TRACE_PROFILE && pushed > 0) {
        tally_pop();
        pushed--;
    }
    return 0;
}

__attribute__((visibility("default"))) int sqlite3_statements_init(sqlite3 *db, char **error,
                                                                   const sqlite3_api_routines *routines) {
    (void)error;
    SQLITE_EXTENSION_INIT2(routines);
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_statement, NULL);
}

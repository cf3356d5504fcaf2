/* Looking up tuned schedules from C99: the library tilefarm_db.
 *
 *   tilefarm_db* db;
 *   char* error;
 *   if (tilefarm_db_open("tune.db", &db, &error) != TILEFARM_DB_OK) ...
 *   tilefarm_db_match match;
 *   if (tilefarm_db_best(db, program_text, "host", NULL, &match, &error) ==
 *       TILEFARM_DB_OK) {
 *     puts(match.trace);
 *     tilefarm_db_match_free(&match);
 *   }
 *   tilefarm_db_close(db);
 *
 * Databases are opened for reading only, also beside a running server. A
 * handle may be used from several threads, a cursor from one at a time.
 * Strings are UTF-8 and end with a NUL. Where a function fails and `error` is
 * not NULL, it gets a message that the caller frees with tilefarm_db_free;
 * otherwise it gets NULL.
 */
#ifndef TILEFARM_DATABASE_TILEFARM_DB_H_
#define TILEFARM_DATABASE_TILEFARM_DB_H_

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TILEFARM_DB_OK = 0,
  TILEFARM_DB_NOT_FOUND = 1,   /* no such file, or no usable record */
  TILEFARM_DB_INVALID = 2,     /* a bad argument, program or target */
  TILEFARM_DB_UNAVAILABLE = 3, /* busy, no permission, failed input: retry */
  TILEFARM_DB_CORRUPT = 4,     /* the file is damaged */
  TILEFARM_DB_SCHEMA = 5,      /* the file needs another release */
  TILEFARM_DB_INTERNAL = 6,
  TILEFARM_DB_DONE = 7 /* a cursor is at its end */
};

typedef struct tilefarm_db tilefarm_db;

/* Opens an existing database. */
int tilefarm_db_open(const char* path, tilefarm_db** db, char** error);
/* Close its cursors first. NULL is ignored. */
void tilefarm_db_close(tilefarm_db* db);

/* The answer; its strings are freed by tilefarm_db_match_free. */
typedef struct {
  char* program; /* the exact text that the trace applies to */
  char* trace;
  char* target; /* of the record */
  char* reason; /* why this record: "exact device model", ... */
  double median_seconds;
} tilefarm_db_match;

/* The best record for `program` (the text of one function) on `target`
 * ("host", "x86-64:znver4,cores=1"). With `fingerprint` only records of that
 * compiler count; with NULL those of any. */
int tilefarm_db_best(tilefarm_db* db, const char* program, const char* target,
                     const char* fingerprint, tilefarm_db_match* match,
                     char** error);
/* The same for a workload hash (64 hexadecimal digits, `workload` in exports),
 * which is much faster, since no program is parsed. The hash alone cannot tell
 * two programs that share it, so if the database has several the answer is
 * TILEFARM_DB_NOT_FOUND. */
int tilefarm_db_best_hash(tilefarm_db* db, const char* workload,
                          const char* target, const char* fingerprint,
                          tilefarm_db_match* match, char** error);
void tilefarm_db_match_free(tilefarm_db_match* match);
void tilefarm_db_free(char* text); /* NULL is ignored */

/* --- Iteration ---------------------------------------------------------- */

/* One record; the strings belong to the cursor, until its next call. */
typedef struct {
  const char* workload; /* hash */
  const char* program;
  const char* target;
  const char* trace;
  const char* device;
  const char* status; /* "ok", "wrong_result", ... */
  const char* fingerprint;
  double median_seconds; /* NaN where it was not measured */
  int verified;          /* 0 or 1 */
} tilefarm_db_record;

typedef struct tilefarm_db_cursor tilefarm_db_cursor;

/* All records of a workload, or, with NULL, of the database, in the order in
 * which they were stored. */
int tilefarm_db_records(tilefarm_db* db, const char* workload,
                        tilefarm_db_cursor** cursor, char** error);
/* The best record of each workload and target that have one, in order of
 * workload and target; its time is that of tilefarm_db_best_hash. */
int tilefarm_db_all_best(tilefarm_db* db, const char* fingerprint,
                         tilefarm_db_cursor** cursor, char** error);
/* TILEFARM_DB_OK: *record is the next one. TILEFARM_DB_DONE: there is none, and
 * *record is NULL. */
int tilefarm_db_next(tilefarm_db_cursor* cursor,
                     const tilefarm_db_record** record, char** error);
void tilefarm_db_cursor_close(tilefarm_db_cursor* cursor); /* NULL is ignored */

#ifdef __cplusplus
}
#endif

#endif /* TILEFARM_DATABASE_TILEFARM_DB_H_ */

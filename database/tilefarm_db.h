/* Looking up tuned schedules from C.
 *
 *   tilefarm_db* db;
 *   char* error;
 *   if (tilefarm_db_open("tune.db", &db, &error) != TILEFARM_DB_OK) ...
 *   tilefarm_db_match match;
 *   int code = tilefarm_db_best(db, program_text, "host", NULL, &match,
 * &error); if (code == TILEFARM_DB_OK) { puts(match.trace);
 *     tilefarm_db_match_free(&match);
 *   }
 *   tilefarm_db_close(db);
 *
 * A handle may be used from several threads. Strings are UTF-8 and end with a
 * NUL. Where a function fails and `error` is not NULL, it gets a message that
 * the caller frees with tilefarm_db_free; otherwise it gets NULL.
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
  TILEFARM_DB_INTERNAL = 6
};

typedef struct tilefarm_db tilefarm_db;

/* Opens an existing database for reading, also beside a running server. */
int tilefarm_db_open(const char* path, tilefarm_db** db, char** error);
void tilefarm_db_close(tilefarm_db* db); /* NULL is ignored */

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
void tilefarm_db_match_free(tilefarm_db_match* match);
void tilefarm_db_free(char* text); /* NULL is ignored */

#ifdef __cplusplus
}
#endif

#endif /* TILEFARM_DATABASE_TILEFARM_DB_H_ */

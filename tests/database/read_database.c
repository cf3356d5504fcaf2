/* Reads a database from C99, through the library alone:
 *
 *   read_database FILE TARGET        the best record of every task
 *   read_database FILE TARGET HASH   the best for a workload, and its records
 *
 * Prints one line each; exits with the code of a function that failed.
 */
#include <stdio.h>

#include "database/tilefarm_db.h"

static int Failed(int code, char* error) {
  fprintf(stderr, "error %d: %s\n", code, error == NULL ? "" : error);
  tilefarm_db_free(error);
  return code;
}

static int PrintAll(tilefarm_db_cursor* cursor, const char* what) {
  const tilefarm_db_record* record;
  char* error;
  int code;
  while ((code = tilefarm_db_next(cursor, &record, &error)) == TILEFARM_DB_OK) {
    printf("%s %.8s %s %s %s %g %d\n", what, record->workload, record->target,
           record->device, record->status, record->median_seconds,
           record->verified);
  }
  return code == TILEFARM_DB_DONE ? 0 : Failed(code, error);
}

static int Read(tilefarm_db* db, int argc, char** argv) {
  tilefarm_db_cursor* cursor;
  tilefarm_db_match match;
  char* error;
  int code;
  if (argc > 3) {
    code = tilefarm_db_best_hash(db, argv[3], argv[2], NULL, &match, &error);
    if (code != TILEFARM_DB_OK) return Failed(code, error);
    printf("best %s %g %s\n", match.target, match.median_seconds, match.reason);
    tilefarm_db_match_free(&match);
    code = tilefarm_db_records(db, argv[3], &cursor, &error);
  } else {
    code = tilefarm_db_all_best(db, NULL, &cursor, &error);
  }
  if (code != TILEFARM_DB_OK) return Failed(code, error);
  code = PrintAll(cursor, argc > 3 ? "record" : "best");
  tilefarm_db_cursor_close(cursor);
  return code;
}

int main(int argc, char** argv) {
  tilefarm_db* db;
  char* error;
  int code;
  if (argc < 3) {
    fprintf(stderr, "usage: read_database FILE TARGET [HASH]\n");
    return TILEFARM_DB_INVALID;
  }
  code = tilefarm_db_open(argv[1], &db, &error);
  if (code != TILEFARM_DB_OK) return Failed(code, error);
  code = Read(db, argc, argv);
  tilefarm_db_close(db);
  return code;
}

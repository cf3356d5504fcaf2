/* The header is C, and the library is usable from it. */
#include "database/tilefarm_db.h"

int TilefarmDbOpensMissingFileFromC(const char* path);

int TilefarmDbOpensMissingFileFromC(const char* path) {
  tilefarm_db* db;
  char* error;
  const int code = tilefarm_db_open(path, &db, &error);
  tilefarm_db_free(error);
  tilefarm_db_close(db);
  return code;
}

// A check sum of all that a stored record says, program and trace included. It
// tells a record that was damaged on the disk from a sound one; it is no
// protection against forgery.
#ifndef TILEFARM_DATABASE_RECORD_CHECK_H_
#define TILEFARM_DATABASE_RECORD_CHECK_H_

#include <cstdint>

#include "database/record.h"

namespace tilefarm::database {

// Identical on every platform. The id and re-measurements do not count.
int64_t CheckOf(const Record& record);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RECORD_CHECK_H_

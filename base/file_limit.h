// How many files, and so connections, this process may have open.
#ifndef TILEFARM_BASE_FILE_LIMIT_H_
#define TILEFARM_BASE_FILE_LIMIT_H_

#include <cstdint>

namespace tilefarm {

// Raises the soft limit to the hard one, which any process may; many systems
// start daemons with 1,024, too few for a thousand connections. Children
// inherit it. Returns the limit that holds now.
int64_t RaiseFileLimit();

}  // namespace tilefarm

#endif  // TILEFARM_BASE_FILE_LIMIT_H_

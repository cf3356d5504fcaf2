// The number of files, and therefore connections, that this process may open.
#ifndef TILEFARM_BASE_FILE_LIMIT_H_
#define TILEFARM_BASE_FILE_LIMIT_H_

#include <cstdint>

namespace tilefarm {

// Raises the soft limit to the hard one, which every process may do. Many
// systems start daemons with 1,024, too few for a thousand connections.
// Children inherit the limit. Returns the limit in force.
int64_t RaiseFileLimit();

}  // namespace tilefarm

#endif  // TILEFARM_BASE_FILE_LIMIT_H_

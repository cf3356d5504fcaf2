// Random identifiers that nobody can guess.
#ifndef TILEFARM_SERVER_FARM_RANDOM_ID_H_
#define TILEFARM_SERVER_FARM_RANDOM_ID_H_

#include <string>

namespace tilefarm::farm {

// `bits` (a multiple of 8, at most 256) of the system's random source in
// lower-case hexadecimal.
std::string RandomId(int bits = 128);

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_RANDOM_ID_H_

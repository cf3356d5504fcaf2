// The version of the wire contracts in this folder, as Hello, Welcome and
// --version state it. Raised with every change that an older peer would
// misunderstand; new fields that it may ignore are none.
#ifndef TILEFARM_PROTO_TILEFARM_V1_PROTOCOL_VERSION_H_
#define TILEFARM_PROTO_TILEFARM_V1_PROTOCOL_VERSION_H_

#include <cstdint>

namespace tilefarm::v1 {

inline constexpr uint32_t kProtocolVersion = 2;

}  // namespace tilefarm::v1

#endif  // TILEFARM_PROTO_TILEFARM_V1_PROTOCOL_VERSION_H_

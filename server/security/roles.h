// The table that says which role may call which method.
#ifndef TILEFARM_SERVER_SECURITY_ROLES_H_
#define TILEFARM_SERVER_SECURITY_ROLES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/security/limits.h"

namespace tilefarm::security {

enum class Role { kWorker, kUser, kCi, kAdmin };

// "worker", "user", "ci", "admin".
std::string_view RoleName(Role role);
std::optional<Role> ParseRole(std::string_view name);

// The lowest role that may call a method. An admin may call all methods.
enum class Access {
  kAnyone,  // without credentials, also beyond loopback
  kWorkers,
  kUsers,   // also those of CI
  kPeople,  // users, but not CI: what a person must decide
  kCi,      // those who may bring machine code to the devices
  kAdmins,
};

// Which limit applies to the size of a client's message.
enum class Size { kSmall, kProgram, kFarm, kRecord, kPart };

struct Method {
  const char* path;  // "/package.Service/Method"
  Access access;
  Size size = Size::kSmall;
};

// Every method of every service that the server offers.
std::span<const Method> Methods();
// Null: there is no such method, and nobody may call it.
const Method* FindMethod(std::string_view path);

bool MayCall(Role role, Access access);
int64_t MaxBytes(Size size, const Limits& limits);

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_ROLES_H_

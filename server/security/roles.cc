#include "server/security/roles.h"

namespace tilefarm::security {
namespace {

constexpr Method kMethods[] = {
    {"/tilefarm.v1.Farm/Connect", Access::kWorkers, Size::kFarm},
    // Only artifacts of its own leases.
    {"/tilefarm.v1.Farm/GetArtifact", Access::kWorkers},

    {"/tilefarm.v1.Tune/Submit", Access::kUsers, Size::kProgram},
    {"/tilefarm.v1.Tune/Watch", Access::kUsers},
    {"/tilefarm.v1.Tune/ListJobs", Access::kUsers},
    // Users may change only their own jobs.
    {"/tilefarm.v1.Tune/Cancel", Access::kUsers},
    {"/tilefarm.v1.Tune/ListDevices", Access::kUsers},
    // Users may make reservations for themselves; other orders need an admin.
    {"/tilefarm.v1.Tune/ChangeDevice", Access::kUsers},
    {"/tilefarm.v1.Tune/DeviceLog", Access::kUsers},
    {"/tilefarm.v1.Tune/Best", Access::kUsers, Size::kProgram},
    {"/tilefarm.v1.Tune/Measure", Access::kUsers, Size::kProgram},
    {"/tilefarm.v1.Tune/Read", Access::kUsers},
    {"/tilefarm.v1.Tune/DbStats", Access::kUsers},
    {"/tilefarm.v1.Tune/DbExport", Access::kUsers},
    // Imported records are believed, so this needs an admin.
    {"/tilefarm.v1.Tune/DbImport", Access::kAdmins, Size::kRecord},

    // Artifacts are machine code, and points are believed.
    {"/tilefarm.v1.Regression/PutArtifact", Access::kCi, Size::kPart},
    {"/tilefarm.v1.Regression/Compare", Access::kCi, Size::kProgram},
    {"/tilefarm.v1.Regression/AppendPoints", Access::kCi, Size::kRecord},
    {"/tilefarm.v1.Regression/FindDevices", Access::kUsers},
    {"/tilefarm.v1.Regression/ReadHistory", Access::kUsers},
    // A CI job must not wave its own change through.
    {"/tilefarm.v1.Regression/Acknowledge", Access::kPeople},

    {"/tilefarm.v1.Admin/CreateToken", Access::kAdmins},
    {"/tilefarm.v1.Admin/ListTokens", Access::kAdmins},
    {"/tilefarm.v1.Admin/Revoke", Access::kAdmins},
    {"/tilefarm.v1.Admin/TokenLog", Access::kAdmins},

    // A probe learns only that the server is alive. Watch needs a stream, and
    // therefore a credential.
    {"/grpc.health.v1.Health/Check", Access::kAnyone},
    {"/grpc.health.v1.Health/Watch", Access::kUsers},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     Access::kUsers},

    // The pages of the HTTP port have the same rules.
    {"/healthz", Access::kAnyone},
    {"/readyz", Access::kAnyone},
    {"/metrics", Access::kUsers},

    // The API (server/api/route.cc).
    {"GET /api/v1", Access::kUsers},
    {"GET /api/v1/caller", Access::kUsers},
    {"GET /api/v1/events", Access::kUsers},
    {"GET /api/v1/jobs", Access::kUsers},
    {"GET /api/v1/jobs/{job}", Access::kUsers},
    {"GET /api/v1/jobs/{job}/program", Access::kUsers},
    {"GET /api/v1/jobs/{job}/candidates", Access::kUsers},
    {"GET /api/v1/jobs/{job}/timeline", Access::kUsers},
    {"GET /api/v1/jobs/{job}/events", Access::kUsers},
    {"GET /api/v1/devices", Access::kUsers},
    {"GET /api/v1/devices/{device}", Access::kUsers},
    {"GET /api/v1/history", Access::kUsers},
    {"GET /api/v1/database", Access::kUsers},
    {"GET /api/v1/records", Access::kUsers},
    {"GET /api/v1/records/{record}", Access::kUsers},
    {"GET /api/v1/records/{record}/schedule", Access::kUsers},
    {"GET /api/v1/records/{record}/assembly", Access::kUsers},
    {"GET /api/v1/workloads", Access::kUsers},
    {"GET /api/v1/workloads/{workload}", Access::kUsers},
    {"GET /api/v1/workloads/{workload}/candidates", Access::kUsers},
    {"GET /api/v1/workloads/{workload}/decisions", Access::kUsers},
    {"GET /api/v1/benchmarks", Access::kUsers},
    {"GET /api/v1/benchmarks/history", Access::kUsers},
    {"POST /api/v1/jobs", Access::kUsers, Size::kProgram},
    {"POST /api/v1/jobs/{job}/cancel", Access::kUsers},
    {"POST /api/v1/devices/{device}/{action}", Access::kUsers},
};

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kUser:
      return "user";
    case Role::kCi:
      return "ci";
    case Role::kAdmin:
      break;
  }
  return "admin";
}

std::optional<Role> ParseRole(std::string_view name) {
  for (const Role role :
       {Role::kWorker, Role::kUser, Role::kCi, Role::kAdmin}) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

std::span<const Method> Methods() { return kMethods; }

const Method* FindMethod(std::string_view path) {
  for (const Method& method : kMethods) {
    if (method.path == path) return &method;
  }
  return nullptr;
}

bool MayCall(Role role, Access access) {
  switch (access) {
    case Access::kAnyone:
      return true;
    case Access::kWorkers:
      return role == Role::kWorker || role == Role::kAdmin;
    case Access::kUsers:
      return role == Role::kUser || role == Role::kCi || role == Role::kAdmin;
    case Access::kPeople:
      return role == Role::kUser || role == Role::kAdmin;
    case Access::kCi:
      return role == Role::kCi || role == Role::kAdmin;
    case Access::kAdmins:
      break;
  }
  return role == Role::kAdmin;
}

int64_t MaxBytes(Size size, const Limits& limits) {
  switch (size) {
    case Size::kProgram:
      return limits.program_bytes;
    case Size::kFarm:
      return limits.farm_bytes;
    case Size::kRecord:
      return limits.record_bytes;
    case Size::kPart:
      return limits.part_bytes;
    case Size::kSmall:
      break;
  }
  return limits.small_bytes;
}

}  // namespace tilefarm::security

// The addresses of the API: one table, from which the server answers, which
// GET /api/v1 lists, and which docs/openapi.yaml describes.
#ifndef TILEFARM_SERVER_API_ROUTE_H_
#define TILEFARM_SERVER_API_ROUTE_H_

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/api/parts.h"
#include "server/api/query.h"
#include "server/security/gate.h"

namespace tilefarm::api {

using Json = nlohmann::ordered_json;

// One request of a caller that may make it.
struct Call {
  // The parts of the path in braces, unescaped.
  std::map<std::string, std::string> path;
  Query query;
  std::string body;           // JSON, of a POST
  std::string authorization;  // as sent
  security::Caller caller;
};

using Handler = absl::StatusOr<Json> (*)(const Parts&, const Call&);

struct Route {
  bool post = false;
  const char* path;  // "/api/v1/jobs/{job}"
  // Null: a stream of events (feeds.h).
  Handler handler;
};
std::span<const Route> Routes();

struct Match {
  const Route* route = nullptr;  // null: none
  bool other_method = false;     // the path has a route of the other method
  std::map<std::string, std::string> path;
};
// InvalidArgument: the path is damaged.
absl::StatusOr<Match> FindRoute(bool post, std::string_view path);

// The name of a route in the table of roles (server/security/roles.cc):
// "GET /api/v1/jobs/{job}".
std::string MethodOf(const Route& route);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_ROUTE_H_

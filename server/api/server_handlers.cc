// About the server and the caller.
#include <string>

#include "base/status_macros.h"
#include "server/api/handlers.h"
#include "server/security/roles.h"

namespace tilefarm::api {

absl::StatusOr<Json> GetServer(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  Json routes = Json::array();
  for (const Route& route : Routes()) {
    routes.push_back({{"method", route.post ? "POST" : "GET"},
                      {"path", route.path},
                      {"stream", route.handler == nullptr}});
  }
  const bool open = parts.gate.mode() == security::Gate::Mode::kOpen;
  return Json{{"release", parts.release},
              {"fingerprint", parts.fingerprint},
              {"database", parts.store.uuid()},
              {"open", open},
              {"demo", parts.demo},
              {"routes", std::move(routes)}};
}

absl::StatusOr<Json> GetCaller(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  // On an open server everyone may read; what a token adds is to be seen.
  security::Caller caller = call.caller;
  if (caller.open && !call.authorization.empty()) {
    TF_ASSIGN_OR_RETURN(caller, parts.gate.AuthorizeToken("GET /api/v1/caller",
                                                          call.authorization));
  }
  const bool known = !caller.open;
  return Json{
      {"name", caller.name},
      {"role", known ? Json(std::string(security::RoleName(caller.role)))
                     : Json(nullptr)},
      {"may_change", known && !caller.token_hash.empty()}};
}

}  // namespace tilefarm::api

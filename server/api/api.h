// The JSON API: what the pages show, and what they may change.
//
//   GET   reads. On an open server anyone may; otherwise a user's credential is
//         needed, as for the gRPC port.
//   POST  changes. A token is needed, on an open server too: a page of another
//         site cannot know one, and a browser sends it to nobody by itself.
//
// Answers and errors are JSON; docs/openapi.yaml describes them.
#ifndef TILEFARM_SERVER_API_API_H_
#define TILEFARM_SERVER_API_API_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/route.h"
#include "server/http/http_request.h"

namespace tilefarm::api {

// Whether the path is one of the API.
bool IsApiPath(std::string_view path);

// A caller that may call the route, or the refusal.
struct Admitted {
  Match match;
  security::Caller caller;
};
absl::StatusOr<Admitted> Admit(const Parts& parts,
                               const http::Request& request);

// The answer to an admitted request that is no stream. May take long: it reads
// the database.
http::Response Answer(const Parts& parts, Admitted admitted,
                      const http::Request& request);

// The same for a caller that has proved itself in another way: a GET.
absl::StatusOr<Json> Get(const Parts& parts, std::string_view path,
                         std::string_view query,
                         const security::Caller& caller);

// {"error": {"code": "not_found", "message": "..."}} with the HTTP status.
http::Response ErrorResponse(const absl::Status& status);
http::Response JsonResponse(const Json& json);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_API_H_

#include "server/api/api.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::api {
namespace {

constexpr char kJsonType[] = "application/json";

struct Code {
  absl::StatusCode code;
  int status;
  const char* name;
};
constexpr Code kCodes[] = {
    {absl::StatusCode::kInvalidArgument, 400, "invalid_argument"},
    {absl::StatusCode::kUnauthenticated, 401, "unauthenticated"},
    {absl::StatusCode::kPermissionDenied, 403, "permission_denied"},
    {absl::StatusCode::kNotFound, 404, "not_found"},
    {absl::StatusCode::kUnimplemented, 405, "other_method"},
    {absl::StatusCode::kAlreadyExists, 409, "already_exists"},
    {absl::StatusCode::kFailedPrecondition, 409, "failed_precondition"},
    {absl::StatusCode::kResourceExhausted, 429, "resource_exhausted"},
    {absl::StatusCode::kUnavailable, 503, "unavailable"},
    {absl::StatusCode::kDeadlineExceeded, 503, "unavailable"},
    {absl::StatusCode::kInternal, 500, "internal"},
};

const Code& CodeOf(const absl::Status& status) {
  for (const Code& code : kCodes) {
    if (code.code == status.code()) return code;
  }
  return kCodes[std::size(kCodes) - 1];
}

absl::StatusOr<Json> Run(const Parts& parts, Match match,
                         std::string_view query, Call call) {
  call.path = std::move(match.path);
  TF_ASSIGN_OR_RETURN(call.query, Query::Parse(query));
  return match.route->handler(parts, call);
}

}  // namespace

bool IsApiPath(std::string_view path) {
  return path == "/api" || absl::StartsWith(std::string(path), "/api/");
}

absl::StatusOr<Admitted> Admit(const Parts& parts,
                               const http::Request& request) {
  const security::Credentials credentials{
      .certificate = request.certificate,
      .authorization = request.authorization};
  TF_ASSIGN_OR_RETURN(Match match, FindRoute(request.post, request.path));
  // Where there is no route, the caller is checked all the same: one without
  // permission does not learn which addresses exist.
  const std::string method =
      match.route == nullptr ? "GET /api/v1" : MethodOf(*match.route);
  Admitted admitted;
  if (match.route != nullptr && request.post) {
    TF_ASSIGN_OR_RETURN(admitted.caller, parts.gate.AuthorizeToken(
                                             method, request.authorization));
    if (request.content_type != kJsonType) {
      return absl::InvalidArgumentError(
          absl::StrCat("the Content-Type of a body is ", kJsonType));
    }
    TF_RETURN_IF_ERROR(parts.gate.CheckSize(method, request.body_bytes));
  } else {
    TF_RETURN_IF_ERROR(parts.gate.Authorize(method, credentials));
    TF_ASSIGN_OR_RETURN(admitted.caller, parts.gate.Identify(credentials));
  }
  if (match.route == nullptr) {
    return match.other_method
               ? absl::UnimplementedError(absl::StrCat(
                     request.path, " takes ", request.post ? "GET" : "POST"))
               : absl::NotFoundError(
                     "there is no such address; GET /api/v1 lists them");
  }
  admitted.match = std::move(match);
  return admitted;
}

http::Response Answer(const Parts& parts, Admitted admitted,
                      const http::Request& request) {
  const auto json = Run(parts, std::move(admitted.match), request.query,
                        {.body = request.body,
                         .authorization = request.authorization,
                         .caller = std::move(admitted.caller)});
  return json.ok() ? JsonResponse(*json) : ErrorResponse(json.status());
}

absl::StatusOr<Json> Get(const Parts& parts, std::string_view path,
                         std::string_view query,
                         const security::Caller& caller) {
  TF_ASSIGN_OR_RETURN(Match match, FindRoute(false, path));
  if (match.route == nullptr || match.route->handler == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the server has no answer for ", std::string(path)));
  }
  return Run(parts, std::move(match), query, {.caller = caller});
}

http::Response JsonResponse(const Json& json) {
  // Texts of programs and errors may hold any bytes.
  return {.content_type = kJsonType,
          .body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

http::Response ErrorResponse(const absl::Status& status) {
  const Code& code = CodeOf(status);
  http::Response response = JsonResponse(
      {{"error",
        {{"code", code.name}, {"message", std::string(status.message())}}}});
  response.status = code.status;
  return response;
}

}  // namespace tilefarm::api

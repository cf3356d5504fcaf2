#include "server/security/gate.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/security/certificate.h"
#include "server/security/token.h"

namespace tilefarm::security {
namespace {

constexpr size_t kMaxCertificates = 10'000;
constexpr absl::string_view kBearer = "Bearer ";

std::string IdentityOf(const Caller& caller) {
  return absl::StrCat(std::string(RoleName(caller.role)), ":", caller.name);
}

absl::Status TokenRevoked(const std::string& name) {
  return absl::UnauthenticatedError(
      absl::StrCat("the token of ", name, " was revoked"));
}

absl::Status TokenExpired(const std::string& name) {
  return absl::UnauthenticatedError(
      absl::StrCat("the token of ", name, " has expired"));
}

}  // namespace

Gate::LiveCall::~LiveCall() { gate_.Leave(id_); }

Gate::Gate(database::Store& store, Mode mode, Limits limits, Clock& clock)
    : store_(store),
      mode_(mode),
      limits_(limits),
      clock_(clock),
      user_rate_(limits.user_burst, limits.user_calls_per_second),
      worker_rate_(limits.worker_burst, limits.worker_calls_per_second) {}

Gate::~Gate() {
  {
    MutexLock lock(stop_mutex_);
    stopping_ = true;
    stopped_.NotifyAll();
  }
  if (sweeper_.joinable()) sweeper_.join();
}

absl::Status Gate::Start() {
  TF_RETURN_IF_ERROR(Reload());
  if (mode_ == Mode::kAuthenticated) {
    sweeper_ = std::thread([this] { SweepLoop(); });
  }
  return absl::OkStatus();
}

void Gate::SweepLoop() {
  while (true) {
    {
      MutexLock lock(stop_mutex_);
      if (!stopping_) stopped_.WaitFor(stop_mutex_, limits_.sweep);
      if (stopping_) return;
    }
    Sweep();
  }
}

absl::Status Gate::Reload() {
  TF_ASSIGN_OR_RETURN(auto tokens, store_.ListTokens());
  TF_ASSIGN_OR_RETURN(const auto revoked, store_.ListRevokedNames());
  MutexLock lock(mutex_);
  tokens_ = std::move(tokens);
  revoked_names_.clear();
  for (const auto& [name, at] : revoked) {
    revoked_names_[name] = TimeOfText(at, absl::InfiniteFuture());
  }
  return absl::OkStatus();
}

// --- Who ------------------------------------------------------------------

absl::StatusOr<Caller> Gate::ByToken(std::string_view header) {
  const absl::string_view text(header.data(), header.size());
  if (!absl::StartsWithIgnoreCase(text, kBearer)) {
    return absl::UnauthenticatedError(
        "the authorization is no bearer token: \"Bearer TOKEN\"");
  }
  const std::string hash = TokenHash(header.substr(kBearer.size()));
  // Compares with all of them, so that the time does not depend on which fits.
  const database::TokenRow* found = nullptr;
  for (const database::TokenRow& token : tokens_) {
    if (SameHash(token.sha256, hash)) found = &token;
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError("the server does not know this token");
  }
  const std::optional<Role> role = ParseRole(found->role);
  if (!role.has_value()) {
    return absl::UnauthenticatedError("the token has a role of a newer server");
  }
  Caller caller;
  caller.name = found->name;
  caller.role = *role;
  caller.token_hash = found->sha256;
  TF_RETURN_IF_ERROR(StillValid(caller));
  return caller;
}

absl::StatusOr<Caller> Gate::ByCertificate(const std::string& pem) {
  auto known = certificates_.find(pem);
  if (known == certificates_.end()) {
    if (certificates_.size() >= kMaxCertificates) certificates_.clear();
    absl::StatusOr<Caller> caller;
    auto facts = ReadCertificate(pem);
    if (facts.ok()) {
      Caller read;
      read.name = std::move(facts->name);
      read.role = facts->role;
      read.not_before = facts->not_before;
      read.not_after = facts->not_after;
      caller = std::move(read);
    } else {
      caller = facts.status();
    }
    known = certificates_.emplace(pem, std::move(caller)).first;
  }
  if (!known->second.ok()) return known->second.status();
  TF_RETURN_IF_ERROR(StillValid(*known->second));
  return *known->second;
}

absl::Status Gate::StillValid(const Caller& caller) {
  if (caller.open) return absl::OkStatus();
  const absl::Time now = clock_.Now();
  if (!caller.token_hash.empty()) {
    for (const database::TokenRow& token : tokens_) {
      if (token.sha256 != caller.token_hash) continue;
      if (!token.revoked_at.empty()) return TokenRevoked(token.name);
      if (TimeOfText(token.expires_at, absl::InfiniteFuture()) <= now) {
        return TokenExpired(token.name);
      }
      return absl::OkStatus();
    }
    return absl::UnauthenticatedError("the token is gone");
  }
  if (caller.not_after <= now) {
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate of ", caller.name, " has expired"));
  }
  const auto revoked = revoked_names_.find(caller.name);
  if (revoked != revoked_names_.end() && caller.not_before <= revoked->second) {
    return absl::UnauthenticatedError(
        absl::StrCat("certificates that ", caller.name, " got up to ",
                     TimeText(revoked->second), " were revoked"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Caller> Gate::Identify(const Credentials& credentials) {
  if (mode_ == Mode::kOpen) {
    Caller caller;
    caller.open = true;
    return caller;
  }
  MutexLock lock(mutex_);
  if (!credentials.authorization.empty()) {
    return ByToken(credentials.authorization);
  }
  if (!credentials.certificate.empty()) {
    return ByCertificate(credentials.certificate);
  }
  return absl::UnauthenticatedError(
      "this server asks for a token (--token-file or TUNE_TOKEN) or a client "
      "certificate (--tls-cert and --tls-key)");
}

// --- May they ---------------------------------------------------------------

absl::Status Gate::Authorize(std::string_view path,
                             const Credentials& credentials) {
  if (mode_ == Mode::kOpen) return absl::OkStatus();
  const absl::Status allowed = Check(path, credentials);
  CountRefusal(allowed);
  return allowed;
}

absl::StatusOr<Caller> Gate::AuthorizeToken(std::string_view path,
                                            std::string_view authorization) {
  absl::StatusOr<Caller> caller = absl::UnauthenticatedError(
      "changes take a token: \"Authorization: Bearer TOKEN\"; tune tokens "
      "create makes one");
  if (!authorization.empty()) {
    MutexLock lock(mutex_);
    caller = ByToken(authorization);
  }
  if (caller.ok()) {
    const absl::Status allowed = CheckCaller(path, *caller);
    if (!allowed.ok()) caller = allowed;
  }
  CountRefusal(caller.status());
  return caller;
}

void Gate::CountRefusal(const absl::Status& refused) {
  MutexLock lock(mutex_);
  if (absl::IsUnauthenticated(refused)) ++refused_.unauthenticated;
  if (absl::IsPermissionDenied(refused)) ++refused_.permission_denied;
  if (absl::IsResourceExhausted(refused)) ++refused_.resource_exhausted;
}

GateFigures Gate::figures() {
  MutexLock lock(mutex_);
  GateFigures figures = refused_;
  for (const auto& [id, live] : live_) {
    ++(live.kind == CallKind::kTransfer ? figures.transfers : figures.streams);
  }
  return figures;
}

absl::Status Gate::Check(std::string_view path,
                         const Credentials& credentials) {
  const Method* const method = FindMethod(path);
  if (method != nullptr && method->access == Access::kAnyone) {
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(const Caller caller, Identify(credentials));
  return CheckCaller(path, caller);
}

absl::Status Gate::CheckCaller(std::string_view path, const Caller& caller) {
  const Method* const method = FindMethod(path);
  if (method == nullptr || !MayCall(caller.role, method->access)) {
    return absl::PermissionDeniedError(absl::StrCat(
        caller.name, " is ",
        caller.role == Role::kWorker ? "a worker" : "a user", " and may not ",
        method == nullptr ? "call methods that the server does not know, "
                          : "call ",
        std::string(path),
        method == nullptr                    ? ""
        : method->access == Access::kAdmins  ? ": that takes an admin"
        : method->access == Access::kWorkers ? ": that takes a worker"
                                             : ": that takes a user"));
  }
  MutexLock lock(mutex_);
  RateLimiter& rate = caller.role == Role::kWorker ? worker_rate_ : user_rate_;
  const absl::Duration wait = rate.Take(IdentityOf(caller), clock_.Monotonic());
  if (wait > absl::ZeroDuration()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("too many calls of %s: wait %.2f s", caller.name,
                        absl::ToDoubleSeconds(wait)));
  }
  return absl::OkStatus();
}

absl::Status Gate::CheckWorkerName(const Caller& caller,
                                   const std::string& name) const {
  if (caller.open || name == caller.name ||
      absl::StartsWith(name, absl::StrCat(caller.name, "."))) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the credential of ", caller.name, " lets no worker connect as ", name,
      ": give rpc-worker --name ", caller.name, " or ", caller.name,
      ".SOMETHING, or a credential for ", name));
}

absl::Status Gate::CheckSize(std::string_view path, int64_t bytes) const {
  const Method* const method = FindMethod(path);
  const int64_t most =
      MaxBytes(method == nullptr ? Size::kSmall : method->size, limits_);
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a message of ", bytes, " bytes; ", std::string(path),
                   " takes ", most, " at most"));
}

// --- Calls that last --------------------------------------------------------

absl::StatusOr<std::unique_ptr<Gate::LiveCall>> Gate::Enter(
    const Caller& caller, CallKind kind, Close close) {
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(StillValid(caller));
  // Authorize counts nobody who proves nothing, so they are counted here, all
  // as one.
  if (caller.open) {
    const absl::Duration wait =
        worker_rate_.Take(IdentityOf(caller), clock_.Monotonic());
    if (wait > absl::ZeroDuration()) {
      ++refused_.resource_exhausted;
      return absl::ResourceExhaustedError(absl::StrFormat(
          "too many streams and measurements begin on the open server: wait "
          "%.2f s",
          absl::ToDoubleSeconds(wait)));
    }
  }
  int& count = counts_[{IdentityOf(caller), kind}];
  // Without credentials all callers share one identity.
  const int most = caller.open || caller.role == Role::kWorker
                       ? limits_.worker_streams
                   : kind == CallKind::kTransfer ? limits_.user_transfers
                                                 : limits_.user_streams;
  if (count >= most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        caller.open ? "the open server" : caller.name, " has ", count,
        kind == CallKind::kTransfer ? " imports and exports"
                                    : " streams and measurements",
        " already: wait for one of them to end"));
  }
  ++count;
  const int64_t id = next_live_++;
  live_.emplace(id, Live{caller, kind, std::move(close)});
  return std::unique_ptr<LiveCall>(new LiveCall(*this, id));
}

void Gate::Leave(int64_t id) {
  MutexLock lock(mutex_);
  const auto it = live_.find(id);
  if (it == live_.end()) return;
  const auto count =
      counts_.find({IdentityOf(it->second.caller), it->second.kind});
  if (--count->second == 0) counts_.erase(count);
  live_.erase(it);
}

void Gate::Sweep() {
  MutexLock lock(mutex_);
  SweepLocked();
  user_rate_.Prune(clock_.Monotonic());
  worker_rate_.Prune(clock_.Monotonic());
}

void Gate::SweepLocked() {
  for (auto& [id, live] : live_) {
    if (live.closed) continue;
    const absl::Status valid = StillValid(live.caller);
    if (valid.ok()) continue;
    live.closed = true;
    Log(LogLevel::kWarning, "security",
        absl::StrCat("closing a call of ", IdentityOf(live.caller), ": ",
                     valid.message()));
    live.close(valid);
  }
}

// --- For admins -------------------------------------------------------------

absl::StatusOr<std::string> Gate::CreateToken(const std::string& name,
                                              Role role,
                                              absl::Duration lifetime,
                                              const std::string& actor) {
  TF_ASSIGN_OR_RETURN(const NewTokenRow made,
                      MakeToken(name, role, lifetime, clock_.Now()));
  TF_RETURN_IF_ERROR(store_.AddToken(made.row, actor));
  TF_RETURN_IF_ERROR(Reload());
  Log(LogLevel::kInfo, "security",
      absl::StrCat("a new token: ", made.row.role, " ", name, ", by ", actor));
  return made.token;
}

absl::StatusOr<std::vector<database::TokenRow>> Gate::ListTokens() {
  return store_.ListTokens();
}

absl::StatusOr<std::vector<database::AuditEntry>> Gate::TokenLog(
    const std::string& name, int64_t limit) {
  return store_.device_tables().ReadTokenAudit(name, limit);
}

absl::StatusOr<int> Gate::Revoke(const std::string& name,
                                 const std::string& actor) {
  TF_RETURN_IF_ERROR(CheckName(name));
  TF_ASSIGN_OR_RETURN(const int tokens,
                      store_.RevokeName(name, TimeText(clock_.Now()), actor));
  TF_RETURN_IF_ERROR(Reload());
  Log(LogLevel::kWarning, "security",
      absl::StrCat("revoked ", name, ": ", tokens,
                   " tokens, and its certificates, by ", actor));
  Sweep();
  return tokens;
}

}  // namespace tilefarm::security

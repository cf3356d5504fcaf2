// Decides who a caller is and what it may call. Knows nothing of gRPC:
//
//   call's metadata and certificate --> Authorize (before any message is read)
//   handler                         --> Identify, Enter (for lasting calls)
//   revoked, expired                --> calls that have entered are closed
//
// On open loopback, and with --insecure, no credentials are needed: every
// caller is an admin under the name that it claims.
#ifndef TILEFARM_SERVER_SECURITY_GATE_H_
#define TILEFARM_SERVER_SECURITY_GATE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "database/store.h"
#include "server/security/limits.h"
#include "server/security/rate_limiter.h"
#include "server/security/roles.h"

namespace tilefarm::security {

// The credentials of a call.
struct Credentials {
  std::string certificate;    // PEM, verified by the handshake; empty: none
  std::string authorization;  // the header's value; empty: none
};

struct Caller {
  bool open = false;  // no credentials: `name` is empty, and claims count
  std::string name;
  Role role = Role::kAdmin;
  // The credential: the token's hash, or the certificate's dates.
  std::string token_hash;
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfiniteFuture();

  // The name to use for a caller that claims `claimed`.
  const std::string& NameOr(const std::string& claimed) const {
    return open ? claimed : name;
  }
  bool admin() const { return open || role == Role::kAdmin; }
};

// Counts since the start, and current numbers.
struct GateFigures {
  int64_t unauthenticated = 0, permission_denied = 0, resource_exhausted = 0;
  int streams = 0, transfers = 0;
};

// The limit of an identity that a lasting call counts against.
enum class CallKind { kStream, kTransfer };

// Thread-safe.
class Gate {
 public:
  enum class Mode { kOpen, kAuthenticated };

  // One lasting call. The call has left when this is destroyed: `close` is not
  // running then, and will not run.
  class LiveCall {
   public:
    ~LiveCall();
    LiveCall(const LiveCall&) = delete;
    LiveCall& operator=(const LiveCall&) = delete;

   private:
    friend class Gate;
    LiveCall(Gate& gate, int64_t id) : gate_(gate), id_(id) {}
    Gate& gate_;
    const int64_t id_;
  };
  // Called at most once, under the gate's lock: it must not call the gate.
  using Close = std::function<void(const absl::Status&)>;

  // The store outlives it.
  Gate(database::Store& store, Mode mode, Limits limits,
       Clock& clock = Clock::Real());
  ~Gate();
  // Reads tokens and revocations, and starts the thread that checks live calls.
  absl::Status Start();

  Mode mode() const { return mode_; }
  const Limits& limits() const { return limits_; }

  // Unauthenticated, with the reason. A token takes precedence over a
  // certificate.
  absl::StatusOr<Caller> Identify(const Credentials& credentials);
  // Counts one call. Unauthenticated; PermissionDenied: not for this role;
  // ResourceExhausted: too many calls, with the time to wait.
  absl::Status Authorize(std::string_view path, const Credentials& credentials);
  // The same for one that takes a token also where the gate is open; a
  // certificate does not do, because a browser sends it with every request.
  absl::StatusOr<Caller> AuthorizeToken(std::string_view path,
                                        std::string_view authorization);
  GateFigures figures();
  // PermissionDenied unless the worker may have this name: its credential's, or
  // that with a suffix after a dot ("rack" may be "rack.7").
  absl::Status CheckWorkerName(const Caller& caller,
                               const std::string& name) const;
  // ResourceExhausted for a message larger than the method's limit.
  absl::Status CheckSize(std::string_view path, int64_t bytes) const;

  // Until the LiveCall ends, `close` is called when the caller's credential is
  // revoked or expires. ResourceExhausted: too many such calls already;
  // Unauthenticated: revoked just now.
  absl::StatusOr<std::unique_ptr<LiveCall>> Enter(const Caller& caller,
                                                  CallKind kind, Close close);

  // --- For admins, `actor` being the one; both are in the audit log ---
  // Returns the token, which cannot be shown again.
  absl::StatusOr<std::string> CreateToken(const std::string& name, Role role,
                                          absl::Duration lifetime,
                                          const std::string& actor);
  absl::StatusOr<std::vector<database::TokenRow>> ListTokens();
  // Revokes every token of that name, and every certificate issued to it so
  // far. Returns the number of tokens. Their live calls are closed before it
  // returns.
  absl::StatusOr<int> Revoke(const std::string& name, const std::string& actor);
  // The latest entries, oldest first; an empty name: of all names.
  absl::StatusOr<std::vector<database::AuditEntry>> TokenLog(
      const std::string& name, int64_t limit);

  // Closes calls whose credential is no longer valid. Called every
  // Limits::sweep.
  void Sweep();

 private:
  struct Live {
    Caller caller;
    CallKind kind;
    Close close;
    bool closed = false;
  };

  absl::Status Check(std::string_view path, const Credentials& credentials);
  absl::Status CheckCaller(std::string_view path, const Caller& caller);
  void CountRefusal(const absl::Status& refused);
  absl::Status Reload();
  absl::StatusOr<Caller> ByToken(std::string_view header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Caller> ByCertificate(const std::string& pem)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StillValid(const Caller& caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SweepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(int64_t id);
  void SweepLoop();

  database::Store& store_;
  const Mode mode_;
  const Limits limits_;
  Clock& clock_;

  Mutex mutex_;
  std::vector<database::TokenRow> tokens_ ABSL_GUARDED_BY(mutex_);
  // For names, the time up to which issued certificates are revoked.
  std::map<std::string, absl::Time> revoked_names_ ABSL_GUARDED_BY(mutex_);
  // Parsed certificates, because parsing is slow. Emptied when it grows large.
  std::map<std::string, absl::StatusOr<Caller>> certificates_
      ABSL_GUARDED_BY(mutex_);
  GateFigures refused_ ABSL_GUARDED_BY(mutex_);
  RateLimiter user_rate_ ABSL_GUARDED_BY(mutex_);
  RateLimiter worker_rate_ ABSL_GUARDED_BY(mutex_);
  int64_t next_live_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, Live> live_ ABSL_GUARDED_BY(mutex_);
  // Numbers of calls in live_ by identity and kind.
  std::map<std::pair<std::string, CallKind>, int> counts_
      ABSL_GUARDED_BY(mutex_);

  Mutex stop_mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(stop_mutex_) = false;
  std::thread sweeper_;
};

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_GATE_H_

// Who is calling, and may they. Knows nothing of gRPC:
//
//   call's metadata and certificate --> Authorize (before any message is read)
//   handler                         --> Identify, Enter (for calls that last)
//   revoked, expired                --> the calls that entered are closed
//
// On open loopback (and with --insecure) nobody proves anything: every caller
// is an admin under the name that it claims.
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

// As a call brings them.
struct Credentials {
  std::string certificate;    // PEM, verified by the handshake; empty: none
  std::string authorization;  // the header's value; empty: none
};

struct Caller {
  bool open = false;  // nothing is proved: `name` is empty, claims count
  std::string name;
  Role role = Role::kAdmin;
  // What was shown: the token's hash, or the certificate's dates.
  std::string token_hash;
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfiniteFuture();

  // The name to act under where the caller claims another.
  const std::string& NameOr(const std::string& claimed) const {
    return open ? claimed : name;
  }
  bool admin() const { return open || role == Role::kAdmin; }
};

// Since the start, and now.
struct GateFigures {
  int64_t unauthenticated = 0, permission_denied = 0, resource_exhausted = 0;
  int streams = 0, transfers = 0;
};

// Which of an identity's limits a lasting call counts against.
enum class CallKind { kStream, kTransfer };

// Thread-safe.
class Gate {
 public:
  enum class Mode { kOpen, kAuthenticated };

  // One call that lasts. It has left when this is destroyed; by then `close` is
  // not running and will not run.
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
  // Called once at most, under the gate's lock: it must not call the gate.
  using Close = std::function<void(const absl::Status&)>;

  // The store outlives it.
  Gate(database::Store& store, Mode mode, Limits limits,
       Clock& clock = Clock::Real());
  ~Gate();
  // Reads tokens and revocations, and starts to look after live calls.
  absl::Status Start();

  Mode mode() const { return mode_; }
  const Limits& limits() const { return limits_; }

  // Unauthenticated, with the reason. A token counts before the certificate.
  absl::StatusOr<Caller> Identify(const Credentials& credentials);
  // Unauthenticated; PermissionDenied: not this role; ResourceExhausted: too
  // many calls, with how long to wait. Counts one call.
  absl::Status Authorize(std::string_view path, const Credentials& credentials);
  GateFigures figures();
  // PermissionDenied unless a worker may carry this name: its credential's, or
  // that and a suffix after a dot ("rack" may be "rack.7").
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
  // The token, shown this once.
  absl::StatusOr<std::string> CreateToken(const std::string& name, Role role,
                                          absl::Duration lifetime,
                                          const std::string& actor);
  absl::StatusOr<std::vector<database::TokenRow>> ListTokens();
  // Every token of that name, and every certificate issued to it up to now; the
  // number of tokens. Their live calls are closed before it returns.
  absl::StatusOr<int> Revoke(const std::string& name, const std::string& actor);
  // The latest entries, oldest first; an empty name: of all.
  absl::StatusOr<std::vector<database::AuditEntry>> TokenLog(
      const std::string& name, int64_t limit);

  // Closes what is not valid any more. Called every Limits::sweep.
  void Sweep();

 private:
  struct Live {
    Caller caller;
    CallKind kind;
    Close close;
    bool closed = false;
  };

  absl::Status Check(std::string_view path, const Credentials& credentials);
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
  // Names to the time up to which their certificates are void.
  std::map<std::string, absl::Time> revoked_names_ ABSL_GUARDED_BY(mutex_);
  // Parsing takes longer than finding; emptied where it grows large.
  std::map<std::string, absl::StatusOr<Caller>> certificates_
      ABSL_GUARDED_BY(mutex_);
  GateFigures refused_ ABSL_GUARDED_BY(mutex_);
  RateLimiter user_rate_ ABSL_GUARDED_BY(mutex_);
  RateLimiter worker_rate_ ABSL_GUARDED_BY(mutex_);
  int64_t next_live_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, Live> live_ ABSL_GUARDED_BY(mutex_);
  // Calls of (identity, kind) in live_.
  std::map<std::pair<std::string, CallKind>, int> counts_
      ABSL_GUARDED_BY(mutex_);

  Mutex stop_mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(stop_mutex_) = false;
  std::thread sweeper_;
};

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_GATE_H_

// A TCP proxy between a client and a server of a test that can cause faults:
//
//   worker --> FaultProxy(address of the server) --> server
//
//   kPass     bytes go both ways
//   kStall    no bytes go either way and nothing is closed; bytes wait, as if
//             a cable is unplugged for a moment
//   kToClient kToServer
//             bytes go only this way; the other one is stalled
//
// Cut() closes all connections; waiting bytes are lost.
#ifndef TILEFARM_TESTS_SUPPORT_FAULT_PROXY_H_
#define TILEFARM_TESTS_SUPPORT_FAULT_PROXY_H_

#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace tilefarm::testing {

// Thread-safe; has a thread of its own.
class FaultProxy {
 public:
  enum class Mode { kPass, kStall, kToClient, kToServer };

  // Listens on a free port of the loopback interface. Connects to `server`, a
  // HOST:PORT on this interface, for each connection.
  explicit FaultProxy(std::string server);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  const std::string& address() const { return address_; }
  // Applies to existing and future connections.
  void SetMode(Mode mode);
  // Every byte arrives after this delay.
  void SetDelay(absl::Duration delay);
  void Cut();
  // Connections accepted so far.
  int accepted() const;

 private:
  struct Connection;

  void Main();
  void Accept();
  // Forwards bytes as the mode allows; false if the connection has ended.
  bool Move(Connection& connection, short client_events, short server_events);
  void Wake();

  const std::string server_;
  std::string address_;
  int listen_fd_ = -1;
  int wake_[2] = {-1, -1};
  // Used by the thread only.
  std::list<std::unique_ptr<Connection>> connections_;

  mutable Mutex mutex_;
  Mode mode_ ABSL_GUARDED_BY(mutex_) = Mode::kPass;
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_FAULT_PROXY_H_

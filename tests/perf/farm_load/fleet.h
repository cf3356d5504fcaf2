// Workers without devices: each dials the server over its own TCP connection,
// sends the messages of a real worker, and answers every lease with a good
// result after a set time. Nothing is built or run.
#ifndef TILEFARM_TESTS_PERF_FARM_LOAD_FLEET_H_
#define TILEFARM_TESTS_PERF_FARM_LOAD_FLEET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tilefarm::load {

struct FleetOptions {
  std::string server;         // HOST:PORT
  std::string ca, cert, key;  // PEM files
  std::string name = "load";  // of the certificate; workers are load.0001
  std::string fingerprint;
  int workers = 1;
  // A device runs one candidate at a time, for this long on average (half to
  // one and a half times); the next one is built meanwhile, in half the time.
  absl::Duration service = absl::Milliseconds(100);
};

// Observations since StartWindow. Latency is the time from sending a result,
// which frees its slot, to the arrival of the lease for this slot.
struct Seen {
  int64_t acknowledged = 0;
  std::vector<float> lease_milliseconds;  // not sorted
};

struct Totals {
  int64_t leases = 0;
  int64_t results = 0;     // sent
  int64_t superseded = 0;  // among the acknowledgements
  int64_t cancelled = 0;   // leases taken back by the server
  int64_t ended = 0;       // streams that ended before Close
  std::string why;         // of the first one
  // Trials (canaries and baselines are not records), once for each
  // acknowledgement that was not superseded.
  std::vector<std::string> acknowledged;
  std::vector<int64_t> leases_of_worker;
};

// All methods must be called from one thread.
class Fleet {
 public:
  explicit Fleet(FleetOptions options);
  ~Fleet();

  // Dials and sends hellos; returns when every worker was welcomed.
  // DeadlineExceeded with the missing ones.
  absl::Status Connect(absl::Duration timeout);
  // From now on, workers request leases.
  void Go(int slots);
  void StartWindow();
  Seen EndWindow();
  // Stops sending results. Returns when all sent ones are acknowledged, or
  // DeadlineExceeded.
  absl::Status Settle(absl::Duration timeout);
  void Close();
  Totals totals() const;  // after Close

 private:
  class Worker;
  class Timer;
  struct Shared;

  const FleetOptions options_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Timer> timer_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace tilefarm::load

#endif  // TILEFARM_TESTS_PERF_FARM_LOAD_FLEET_H_

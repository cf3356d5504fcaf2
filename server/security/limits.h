// Every limit that holds a stranger, or a user who means no harm, from taking
// the whole server: sizes, rates and counts. Durations of the farm are in
// server/farm/timeouts.h.
#ifndef TILEFARM_SERVER_SECURITY_LIMITS_H_
#define TILEFARM_SERVER_SECURITY_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tilefarm::security {

struct Limits {
  // --- Sizes of one message from a client ---
  // A program (ir::Limits: 4 MiB) and a trace.
  int64_t program_bytes = 8 << 20;
  // A result with its samples, or the leases held.
  int64_t farm_bytes = 4 << 20;
  // One record as JSON; it holds a program and a trace.
  int64_t record_bytes = 16 << 20;
  // Everything else: names and numbers.
  int64_t small_bytes = 64 << 10;

  // --- Calls of one identity (a name in a role) ---
  // A token bucket: so many calls at once, and so many a second after that.
  double user_burst = 200;
  double user_calls_per_second = 50;
  // Workers may share one identity and come back all at once.
  double worker_burst = 2000;
  double worker_calls_per_second = 200;
  // Calls that last (Watch, Measure, the farm's stream) at the same time.
  int user_streams = 64;
  int worker_streams = 4096;
  // DbExport and DbImport, each of which takes a thread.
  int user_transfers = 4;

  // --- Connections ---
  // Calls on one connection at the same time; more wait at the client.
  int connection_streams = 100;
  // From the first byte to the end of the TLS handshake.
  absl::Duration handshake = absl::Seconds(10);
  // A connection without calls is closed after this.
  absl::Duration connection_idle = absl::Minutes(15);
  // Threads of gRPC for calls that are short.
  int threads = 64;

  // How often live calls are held against revocation and expiry.
  absl::Duration sweep = absl::Milliseconds(500);
  // Between two looks at certificate, key and CA files.
  absl::Duration reload = absl::Seconds(1);
};

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_LIMITS_H_

// Every limit that keeps a client from taking the whole server: sizes of
// messages, rates and counts. Limits of single strings and lists are in
// proto/tilefarm/v1/message_limits.cc, durations of the farm in
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

  // --- One stream of a worker ---
  // Messages at once, and a second after that; 16 KiB of one message count as
  // one more. A worker that comes back sends all results that waited.
  double stream_burst = 8192;
  double stream_messages_per_second = 2000;
  // What the server has to say and the worker has not read: beyond these the
  // server reads no more from it, and hands it nothing out.
  int unread_messages = 256;
  int64_t unread_bytes = 4 << 20;
  // Devices of one credential ("NAME", "NAME.SUFFIX"), and in all, connected or
  // not. What is known of each stays in memory until it is forgotten.
  int worker_devices = 1024;
  int devices = 8192;

  // --- Jobs that have not ended ---
  // Of one user, and in all; and the bytes of their programs and sketches.
  int user_jobs = 1000;
  int jobs = 10'000;
  int64_t user_jobs_bytes = 64 << 20;
  int64_t jobs_bytes = 256 << 20;

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

// The limits that keep one client from using up the server: sizes of messages,
// rates and counts. Limits of single strings and lists are in
// proto/tilefarm/v1/message_limits.cc, durations of the farm in
// server/farm/timeouts.h.
#ifndef TILEFARM_SERVER_SECURITY_LIMITS_H_
#define TILEFARM_SERVER_SECURITY_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tilefarm::security {

struct Limits {
  // --- Sizes of one message from a client ---
  // Holds a program (ir::Limits: 4 MiB) and a trace.
  int64_t program_bytes = 8 << 20;
  // Holds a result with its samples, or the list of held leases.
  int64_t farm_bytes = 4 << 20;
  // Holds one record as JSON, with a program and a trace.
  int64_t record_bytes = 16 << 20;
  // Holds a part of an artifact with its header.
  int64_t part_bytes = (1 << 20) + (128 << 10);
  // For all other messages: names and numbers.
  int64_t small_bytes = 64 << 10;

  // --- Calls of one identity (a name in a role) ---
  // A token bucket: its size in calls, and calls per second.
  double user_burst = 200;
  double user_calls_per_second = 50;
  // Workers may share one identity and reconnect at the same time.
  double worker_burst = 2000;
  double worker_calls_per_second = 200;
  // Lasting calls (Watch, Measure, the farm's stream) at the same time.
  int user_streams = 64;
  int worker_streams = 4096;
  // DbExport and DbImport, each of which takes a thread.
  int user_transfers = 4;

  // --- Artifacts ---
  // The largest one: two of them, with a workload, fit into a message to the
  // worker's runner.
  int64_t artifact_bytes = 96 << 20;
  // Of artifacts that are being stored, which are in memory until they have
  // been checked.
  int64_t incoming_artifact_bytes = 256 << 20;
  // The time for one artifact, from its header to its last part.
  absl::Duration artifact_transfer = absl::Minutes(10);

  // --- One stream of a worker ---
  // A token bucket: its size in messages, and messages per second. Each 16 KiB
  // of a message count as one more message. A worker that reconnects sends all
  // results that it has kept.
  double stream_burst = 8192;
  double stream_messages_per_second = 2000;
  // Messages that the worker has not read. Beyond these limits the server reads
  // nothing from the worker and grants it no leases.
  int unread_messages = 256;
  int64_t unread_bytes = 4 << 20;
  // Devices of one credential ("NAME", "NAME.SUFFIX"), and of all, connected or
  // not. Each one uses memory until it is forgotten.
  int worker_devices = 1024;
  int devices = 8192;

  // --- Jobs that have not ended ---
  // Numbers of one user and of all, and the bytes of programs and sketches.
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
  // gRPC's threads for short calls.
  int threads = 64;

  // How often the credentials of live calls are checked again.
  absl::Duration sweep = absl::Milliseconds(500);
  // How often certificate, key and CA files are checked for changes.
  absl::Duration reload = absl::Seconds(1);
};

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_LIMITS_H_

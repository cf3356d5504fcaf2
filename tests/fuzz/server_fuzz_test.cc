// Structure-aware fuzzing of the server's input, from seeds.
#include "tests/fuzz/http_target.h"
#include "tests/fuzz/seeded.h"
#include "tests/fuzz/server_targets.h"

namespace tilefarm::fuzz {
namespace {

TEST(ServerFuzz, StreamsOfWorkers) {
  ServerTarget target;
  RunSeeded(3, [&](ByteSource& source) { return target.WorkerStream(source); });
}

TEST(ServerFuzz, CallsOfClients) {
  ServerTarget target;
  RunSeeded(3, [&](ByteSource& source) { return target.ClientCalls(source); });
}

TEST(ServerFuzz, TextOfTraces) { RunSeeded(2, TraceText); }

TEST(ServerFuzz, LinesOfImports) { RunSeeded(2, ImportLines); }

TEST(ServerFuzz, HeadsOfHttpRequests) { RunSeeded(2, HttpHead); }

}  // namespace
}  // namespace tilefarm::fuzz

// Arbitrary input from a client to a server, made from bytes. Each target
// returns the violated condition; empty: none.
#ifndef TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_
#define TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_

#include <memory>
#include <string>

#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/services/server.h"
#include "tests/fuzz/byte_source.h"

namespace tilefarm::fuzz {

// A whole server in this process, with an endless job, over real gRPC.
class ServerTarget {
 public:
  ServerTarget();
  ~ServerTarget();

  // One worker's stream: a sequence of messages, some incomplete or out of
  // order.
  std::string WorkerStream(ByteSource& source);
  // Calls of a client.
  std::string ClientCalls(ByteSource& source);

 private:
  std::string Submit(const v1::SubmitRequest& request);
  // Checks that the server answers.
  std::string Health();
  std::string OneCall(ByteSource& source, grpc::ClientContext& context);

  std::unique_ptr<services::Server> server_;
  std::unique_ptr<v1::Farm::Stub> farm_;
  std::unique_ptr<v1::Tune::Stub> tune_;
  Words words_;  // known to clients
};

// A trace as text: if it parses, it is applied, and the printed result parses
// to the same trace.
std::string TraceText(ByteSource& source);
// Lines of an import: accepted ones are exported and imported again.
std::string ImportLines(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_

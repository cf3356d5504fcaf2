// What a stranger may send to a server, made out of bytes. Each target returns
// what was violated; empty: nothing.
#ifndef TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_
#define TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_

#include <memory>
#include <string>

#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/services/server.h"
#include "tests/fuzz/byte_source.h"

namespace tilefarm::fuzz {

// A whole server in this process, with a job that never ends, over real gRPC.
class ServerTarget {
 public:
  ServerTarget();
  ~ServerTarget();

  // One worker's stream: a sequence of messages, whole or not in order.
  std::string WorkerStream(ByteSource& source);
  // Calls of a client.
  std::string ClientCalls(ByteSource& source);

 private:
  std::string Submit(const v1::SubmitRequest& request);
  // It answers.
  std::string Health();
  std::string OneCall(ByteSource& source, grpc::ClientContext& context);

  std::unique_ptr<services::Server> server_;
  std::unique_ptr<v1::Farm::Stub> farm_;
  std::unique_ptr<v1::Tune::Stub> tune_;
  Words words_;  // what clients know
};

// The text of a trace, applied where it parses: what is printed parses again
// to the same.
std::string TraceText(ByteSource& source);
// Lines of an import; what was taken is exported and taken again.
std::string ImportLines(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_SERVER_TARGETS_H_

// The artifacts of a suite's benchmarks: compiled by this program, or by the
// tunec of another commit.
#ifndef TILEFARM_SERVER_CLI_REGRESS_BUILD_H_
#define TILEFARM_SERVER_CLI_REGRESS_BUILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "server/regression/suite.h"
#include "transport/endpoint.h"

namespace tilefarm::cli {

// What a commit makes of a benchmark.
struct BuiltArtifact {
  std::string bytes;  // a shared object
  std::string sha256;
  std::string symbol;
  // The functions that are called: the symbol, or those of a model.
  std::vector<std::string> symbols;
  double spread = 0;   // schedule::RoundingSpread
  std::string target;  // key
  // The program that it computes, or the signature of a model
  // (regress_model.h), and the trace that makes its schedule of it; empty: the
  // default schedule, which has none, or a model.
  std::string program;
  std::string workload;  // hash
  std::string trace;
  std::string fingerprint;  // of the compiler
};

class ArtifactBuilder {
 public:
  // `server` has the best records. `tunec`: the program that compiles; empty:
  // this one.
  ArtifactBuilder(transport::Endpoint server, std::string tunec)
      : server_(std::move(server)), tunec_(std::move(tunec)) {}

  // InvalidArgument: the program, the trace or the target is bad; errors of the
  // compiler and of the server.
  absl::StatusOr<BuiltArtifact> Build(
      const regression::SuiteBenchmark& benchmark) const;
  // The program with this trace (empty: its default schedule).
  absl::StatusOr<BuiltArtifact> BuildWith(const std::string& program,
                                          const std::string& trace,
                                          const target::Target& target) const;

 private:
  // The best record's program and trace; empty: there is none.
  struct Schedule {
    std::string program, trace;
  };
  absl::StatusOr<Schedule> FindBest(const ir::IRModule& module,
                                    const target::Target& target) const;
  absl::StatusOr<BuiltArtifact> BuildModel(
      const regression::SuiteBenchmark& benchmark,
      const target::Target& target) const;
  absl::Status CompileHere(const ir::IRModule& module,
                           const target::Target& target,
                           BuiltArtifact& artifact) const;
  absl::Status CompileByTunec(BuiltArtifact& artifact) const;

  const transport::Endpoint server_;
  const std::string tunec_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_BUILD_H_

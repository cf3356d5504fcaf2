// What `tune regress` measures: suite.toml.
//
//   name = "kernels"
//   threshold = "3%"             # or 0.03
//   budget = "10s"               # device time of a benchmark
//
//   [[benchmark]]
//   name = "conv2d"
//   program = "conv2d.py"        # with a pinned schedule
//   trace = "conv2d.trace"
//   target = "x86-64:znver4"
//   require = ["label.rack=b2"]
//
//   [[benchmark]]
//   name = "dense"
//   program = "dense.py"         # with the database's current best
//   schedule = "best"
//   target = "x86-64:znver4"
//   threshold = "5%"
//
//   [[benchmark]]
//   name = "resnet50"
//   model = "resnet50.onnx"
//   target = "x86-64:znver4"
//
//   [[benchmark]]
//   name = "parser"              # prints Google Benchmark JSON
//   command = ["./build/parser_bench", "--benchmark_format=json"]
//
// docs/formats.md, "Suites", has every key.
#ifndef TILEFARM_SERVER_REGRESSION_SUITE_H_
#define TILEFARM_SERVER_REGRESSION_SUITE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilefarm::regression {

struct SuiteBenchmark {
  enum class Kind {
    kPinned,   // program and trace
    kBest,     // program, with the best schedule of the database
    kModel,    // an ONNX model, compiled as a whole
    kCommand,  // prints Google Benchmark JSON; each of its benchmarks counts
  };
  Kind kind = Kind::kBest;
  std::string name;
  // Paths as the file states them, joined to the suite's folder if relative.
  std::string program;   // of kPinned, kBest
  std::string function;  // of a program with several; empty: the only one
  std::string trace;     // of kPinned
  std::string model;     // of kModel
  std::map<std::string, int64_t> dimensions;  // of open ones of a model
  std::vector<std::string> command;           // of kCommand: argv, no shell
  std::string target;  // "host" if none is given; not of kCommand
  // What devices must have, in the notation of farm/requirement.h.
  std::vector<std::string> require;
  double threshold = 0.03;
  absl::Duration budget = absl::Seconds(10);
  int line = 0;  // of the file, for messages
};

struct Suite {
  std::string name;
  std::string folder;  // of the file; commands run there
  std::vector<SuiteBenchmark> benchmarks;
};

// InvalidArgument with FILE:LINE:COLUMN: invalid TOML, an unknown key (the
// message has the nearest one), a missing, contradictory or ill-typed value, a
// name that is empty or given twice, or no benchmarks. Targets and requirements
// are checked by their own parsers, elsewhere. Reads no other file.
absl::StatusOr<Suite> ParseSuite(std::string_view text,
                                 const std::string& file);
// NotFound: no such file.
absl::StatusOr<Suite> ReadSuite(const std::string& file);

// "3%", "3 %", "0.03" -> 0.03. InvalidArgument: anything else, or outside
// [0.001, 1]. Also the notation of --threshold.
absl::StatusOr<double> ParseThreshold(std::string_view text);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_SUITE_H_

// ONNX's backend tests: a directory per case with a model, inputs and outputs.
#ifndef TILEFARM_TESTS_ONNX_BACKEND_CASES_H_
#define TILEFARM_TESTS_ONNX_BACKEND_CASES_H_

#include <string>
#include <vector>

namespace tilefarm::testing {

enum class CaseResult { kPassed, kUnsupported, kFailed };

struct CaseOutcome {
  CaseResult result = CaseResult::kFailed;
  std::string reason;                  // empty for kPassed
  std::vector<std::string> operators;  // of the model, without repetition
};

enum class CaseMode {
  kInterpreted,  // call by call, without passes
  kCompiled,     // passes, default schedules, generated code for this machine
};

// Imports DIRECTORY/model.onnx and runs it on every test_data_set_*. Inputs of
// the model stay inputs; their open dimensions get the sizes of the data.
// Floats are compared as by ONNX's own runner: |a - b| <= 1e-7 + 1e-3 |b|.
CaseOutcome RunBackendCase(const std::string& directory,
                           CaseMode mode = CaseMode::kInterpreted);

// The cases of a directory, sorted; empty if there is no such directory.
std::vector<std::string> CaseNames(const std::string& directory);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_ONNX_BACKEND_CASES_H_

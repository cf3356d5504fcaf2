// A farm that compares artifacts, and suites for it.
#ifndef TILEFARM_TESTS_E2E_REGRESS_FIXTURE_H_
#define TILEFARM_TESTS_E2E_REGRESS_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {

inline constexpr char kMatmul[] = R"(@T.prim_func
def mm(A: T.Buffer((128, 128), "float32"),
       B: T.Buffer((128, 128), "float32"),
       C: T.Buffer((128, 128), "float32")):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// `lanes`: of its vectors. With 4 it takes far longer than with 16.
inline std::string MatmulTrace(int lanes) {
  return "b0 = sch.get_block(name=\"Y\", func_name=\"mm\")\n"
         "l1, l2, l3 = sch.get_loops(block=b0)\n"
         "l4, l5 = sch.split(loop=l2, factors=[" +
         std::to_string(128 / lanes) + ", " + std::to_string(lanes) +
         "])\n"
         "sch.reorder(l1, l4, l3, l5)\n"
         "sch.vectorize(loop=l5)\n";
}

// `Base` is FarmFixture, or made of it.
template <typename Base>
class RegressFixtureOf : public Base {
 protected:
  RegressFixtureOf() {
    this->server_options_.insert(
        this->server_options_.end(),
        {"--allow-artifacts", "--artifact-isolation", "none", "--no-canary"});
    this->dir_.Write("mm.py", kMatmul);
    WriteTrace(16);
    suite_ = this->dir_.Write("suite.toml",
                              "name = \"kernels\"\n"
                              "[[benchmark]]\n"
                              "name = \"matmul\"\n"
                              "program = \"mm.py\"\n"
                              "trace = \"mm.trace\"\n"
                              "target = \"host,cores=1\"\n");
  }
  void WriteTrace(int lanes) {
    this->dir_.Write("mm.trace", MatmulTrace(lanes));
  }
  CommandResult Regress(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "regress");
    return this->Tune(std::move(arguments));
  }
  CommandResult RunSuite(const std::string& commit) {
    return Regress({"run", "--suite", suite_, "--commit", commit, "--json"});
  }
  CommandResult Gate(const std::string& commit,
                     std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"gate",       "--suite", suite_,
                                          "--commit",   commit,    "--json",
                                          "--baseline", "main"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Regress(std::move(arguments));
  }
  static nlohmann::json Parse(const CommandResult& result) {
    return nlohmann::json::parse(result.output, nullptr, false);
  }

  std::string suite_;
};

using RegressFixture = RegressFixtureOf<FarmFixture>;

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_E2E_REGRESS_FIXTURE_H_

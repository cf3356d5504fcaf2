// fission: a block for each statement, and rejections.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kFissionParams[] =
    "A: T.Buffer((8, 12), \"float32\"), S: T.Buffer((8,), \"float32\"), "
    "Q: T.Buffer((8,), \"float32\")";
constexpr char kFission[] = R"(b0 = sch.get_block("sums")
b1, b2 = sch.fission(b0)
)";

// Both sums of each row, with this initialisation and update.
std::string Sums(const std::string& init, const std::string& update) {
  return Program(kFissionParams, absl::StrCat(R"(for i, k in T.grid(8, 12):
    with T.block("sums"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
)",
                                              init, update));
}
constexpr char kInit[] = R"(            S[vi] = T.float32(0)
            Q[vi] = T.float32(0)
)";
constexpr char kUpdate[] = R"(        S[vi] = S[vi] + A[vi, vk]
        Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
)";

TEST(Fission, MakesABlockOfEachStatement) {
  ExpectBecomes(Sums(kInit, kUpdate), kFission,
                Program(kFissionParams, R"(for i, k in T.grid(8, 12):
    with T.block("sums_S"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            S[vi] = T.float32(0)
        S[vi] = S[vi] + A[vi, vk]
for i, k in T.grid(8, 12):
    with T.block("sums_Q"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            Q[vi] = T.float32(0)
        Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk])"));
  ExpectSameResults(Sums(kInit, kUpdate), kFission);
}

TEST(Fission, KeepsConditionsAndOtherLoopKinds) {
  const std::string program = Program(kFissionParams, R"(for i in T.parallel(8):
    for k0, k1 in T.grid(3, 5):
        with T.block("sums"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(12, k0 * 5 + k1)
            T.where(k0 * 5 + k1 < 12)
            with T.init():
                Q[vi] = T.float32(1)
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
            Q[vi] = Q[vi] * A[vi, vk])");
  ExpectSameResults(program, kFission);
  // Both results can be scheduled, and the traces replay.
  ExpectSameResults(program,
                    absl::StrCat(kFission, R"(l3, l4, l5 = sch.get_loops(b1)
l6, l7, l8 = sch.get_loops(b2)
l9 = sch.fuse(l4, l5)
sch.unroll(l8)
)"));
}

TEST(Fission, AnUpdateInPlaceStaysOne) {
  const std::string program =
      Program("A: T.Buffer((8,), \"float32\"), S: T.Buffer((8,), \"float32\")",
              R"(for i in range(8):
    with T.block("sums"):
        vi = T.axis.spatial(8, i)
        A[vi] = A[vi] + T.float32(1)
        S[vi] = S[vi] * T.float32(2))");
  ExpectSameResults(program, kFission);
}

TEST(Fission, RefusesStatementsThatNeedEachOther) {
  ExpectRefused(Sums(kInit, R"(        S[vi] = S[vi] + A[vi, vk]
        Q[vi] = Q[vi] + S[vi]
)"),
                kFission, kIllegal,
                {"fission", "the statement that writes Q reads S"});
  ExpectRefused(Sums(kInit, R"(        S[vi] = S[vi] + Q[vi]
        Q[vi] = Q[vi] + A[vi, vk]
)"),
                kFission, kIllegal,
                {"fission", "the statement that writes S reads Q"});
  ExpectRefused(Sums(R"(            S[vi] = T.float32(0)
            Q[vi] = S[vi]
)",
                     kUpdate),
                kFission, kIllegal,
                {"fission", "the statement that writes Q reads S"});
}

TEST(Fission, RefusesOtherBodies) {
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("C")
b1, b2 = sch.fission(b0)
)",
                kIllegal, {"fission", "single statement"});
  ExpectRefused(Sums(kInit, R"(        S[vi] = S[vi] + A[vi, vk]
        S[vi] = S[vi] + T.float32(1)
        Q[vi] = Q[vi] + A[vi, vk]
)"),
                kFission, kIllegal, {"fission", "one store for each"});
  ExpectRefused(Sums(kInit, R"(        S[vi] = S[vi] + A[vi, vk]
        if vk < 3:
            Q[vi] = Q[vi] + A[vi, vk]
)"),
                kFission, kIllegal, {"fission", "one store for each"});
}

TEST(Fission, RefusesLoopsWithOtherBlocks) {
  const std::string program = Program(kFissionParams, R"(for i in range(8):
    for k in range(12):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
            Q[vi] = Q[vi] + A[vi, vk]
    for k in range(1):
        with T.block("other"):
            vi, vk = T.axis.remap("SS", [i, k])
            S[vi] = S[vi] * T.float32(2))");
  ExpectRefused(program, kFission, kIllegal,
                {"fission", "other blocks below them"});
}

}  // namespace
}  // namespace tilefarm::testing

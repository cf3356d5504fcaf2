// Blocks that cannot run ahead of time are errors with place and reason.
#include "compiler/lower/split_prepack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::lower {
namespace {

using ::testing::HasSubstr;

constexpr char kPack[] = R"(
    for i in range(20):
        with T.block("P"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1})
            P[vi] = B[vi]
)";
constexpr char kUse[] = R"(
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = A[vi] + P[vi]
)";

ir::PrimFuncPtr Parse(const std::string& body,
                      const std::string& layout_free = "[1]") {
  auto parsed = ir::ParseFunction(absl::StrCat(R"(
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32"),
      C: T.Buffer((20,), "float32")):
    T.func_attr({"layout_free_buffers": )",
                                               layout_free, R"(})
    P = T.alloc_buffer((20,))
    Q = T.alloc_buffer((20,), "float32", scope="local")
)",
                                               body));
  EXPECT_TRUE(parsed.ok()) << parsed.status() << body;
  return *parsed;
}

TEST(SplitPrepack, CutsTheNestOut) {
  const auto split = SplitPrepack(*Parse(absl::StrCat(kPack, kUse)));
  ASSERT_TRUE(split.ok()) << split.status();
  ASSERT_EQ(split->params.size(), 1u);
  EXPECT_EQ(split->params[0].param, 1);
  EXPECT_EQ(split->params[0].bytes, 128);  // 80, in whole units of 64
  ASSERT_NE(split->params[0].pack, nullptr);
  EXPECT_TRUE(ir::Verify(*split->params[0].pack).ok());
  EXPECT_TRUE(ir::Verify(*split->packed).ok()) << ir::Print(*split->packed);
  EXPECT_EQ(split->packed->params[1]->name, "P");
}

TEST(SplitPrepack, WithoutANestThePackedFormIsACopy) {
  const ir::PrimFuncPtr function = Parse(R"(
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = A[vi] + B[vi]
)",
                                         "[0, 1]");
  const auto split = SplitPrepack(*function);
  ASSERT_TRUE(split.ok()) << split.status();
  ASSERT_EQ(split->params.size(), 2u);
  EXPECT_EQ(split->params[0].pack, nullptr);
  EXPECT_EQ(split->params[1].pack, nullptr);
  EXPECT_EQ(ir::Print(*split->packed), ir::Print(*function));
}

TEST(SplitPrepack, RefusesWhatIsNotOfTheParameterAlone) {
  const std::string kTwice = R"(
    for i in range(20):
        with T.block("P2"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1})
            Q[vi] = B[vi]
)";
  const auto pack_with = [](const std::string& statement) {
    return absl::StrCat(R"(
    for i in range(20):
        with T.block("P"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1})
            )",
                        statement, "\n");
  };
  const std::string kReadsB = R"(
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = B[vi] + P[vi]
)";
  const std::string kOneNest = R"(
    for i in range(20):
        with T.block("P"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1})
            P[vi] = B[vi]
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = A[vi] + P[vi]
)";
  const struct {
    std::string body;
    const char* message;
  } kCases[] = {
      {kOneNest, "is not a nest of its own at the root"},
      {pack_with("P[vi] = A[vi]") + kUse,
       "reads no parameter of layout_free_buffers"},
      {pack_with("P[vi] = A[vi] + B[vi]") + kUse, "reads A beside B"},
      {pack_with("C[vi] = B[vi]"), "must write one buffer of the function's"},
      {pack_with("Q[vi] = B[vi]"), "writes a buffer of scope \"local\""},
      {absl::StrCat(kPack, kReadsB),
       "packs parameter B, which is also used as it is"},
      {absl::StrCat(kPack, kTwice),
       "packs parameter B, which is also used as it is"},
      {absl::StrCat(kUse, kPack), "makes P, which is written or read before"},
  };
  for (const auto& [body, message] : kCases) {
    const auto split = SplitPrepack(*Parse(body));
    EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument)
        << body;
    EXPECT_THAT(std::string(split.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(split.status().message()), HasSubstr("block \"P"));
  }
}

// Half floats, packed as float32, with the given `store` and `use`.
ir::PrimFuncPtr ParseHalf(const std::string& store, const std::string& use,
                          const std::string& dtype = "float16") {
  auto parsed = ir::ParseFunction(absl::Substitute(
      R"(
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "$2"),
      C: T.Buffer((20,), "float32")):
    T.func_attr({"layout_free_buffers": [1]})
    P = T.alloc_buffer((20,), "$2")
    for i in range(20):
        with T.block("P"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1, "tilefarm.prepack_float32": 1})
            P[vi] = $0
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = $1
)",
      store, use, dtype));
  EXPECT_TRUE(parsed.ok()) << parsed.status() << store << use;
  return *parsed;
}

TEST(SplitPrepack, HalfFloatsMayBeFloat32AheadOfTime) {
  for (const char* dtype : {"float16", "bfloat16"}) {
    const auto split = SplitPrepack(
        *ParseHalf("B[vi]", "A[vi] * T.cast(P[vi], \"float32\")", dtype));
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->params[0].bytes, 128);  // 80, in whole units of 64
    EXPECT_EQ(split->packed->params[1]->dtype, ir::DataType::Float(32));
    ASSERT_NE(split->params[0].pack, nullptr);
    EXPECT_EQ(split->params[0].pack->params[1]->dtype, ir::DataType::Float(32));
    EXPECT_TRUE(ir::Verify(*split->params[0].pack).ok())
        << ir::Print(*split->params[0].pack);
    EXPECT_TRUE(ir::Verify(*split->packed).ok()) << ir::Print(*split->packed);
    EXPECT_THAT(ir::Print(*split->packed), HasSubstr("= A[vi] * P[vi]"));
  }
}

TEST(SplitPrepack, RefusesFloat32OfWhatIsNotACopyReadAsFloat32) {
  const std::string use = "A[vi] * T.cast(P[vi], \"float32\")";
  for (const auto& function :
       {ParseHalf("B[vi] * B[vi]", use),
        ParseHalf("B[vi]", "T.cast(P[vi] * P[vi], \"float32\")"),
        ParseHalf("B[vi]", use + " + T.cast(P[vi] + P[vi], \"float32\")"),
        ParseHalf("B[vi]", "A[vi] * P[vi]", "float32")}) {
    const auto split = SplitPrepack(*function);
    EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument)
        << ir::Print(*function);
    EXPECT_THAT(
        std::string(split.status().message()),
        HasSubstr("block \"P\" (tilefarm.prepack) makes P, which is to be "
                  "float32 (tilefarm.prepack_float32), of other than"));
  }
}

TEST(SplitPrepack, PaddedRowsAreDenseInAPackedBuffer) {
  const auto split = SplitPrepack(*Parse(R"(
    R = T.alloc_buffer((4, 5))
    for i in range(20):
        with T.block("R"):
            vi = T.axis.spatial(20, i)
            T.block_attr({"tilefarm.prepack": 1,
                          "buffer_dim_align": [[0, 0, 8, 3]]})
            R[vi // 5, vi % 5] = B[vi]
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = A[vi] + R[vi // 5, vi % 5]
)"));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_TRUE(split->packed->params[1]->dim_align.empty());
  EXPECT_EQ(split->params[0].bytes, 128);
  EXPECT_TRUE(ir::Verify(*split->packed).ok()) << ir::Print(*split->packed);
}

}  // namespace
}  // namespace tilefarm::lower

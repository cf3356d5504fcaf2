// layout_free_buffers: which parameters are constant across calls.
#include "compiler/ir/layout_free.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"

namespace tilefarm::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<PrimFuncPtr> Parse(const std::string& attrs) {
  return ParseFunction(absl::StrCat(R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
      C: T.Buffer((8,), "float32")):
    T.func_attr({)",
                                    attrs, R"(})
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + B[vi]
)"));
}

TEST(LayoutFree, NamesParameters) {
  const auto none = Parse("\"tir.noalias\": True");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(*LayoutFreeParams(**none), IsEmpty());
  const auto both = Parse("\"layout_free_buffers\": [1, 0]");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(*LayoutFreeParams(**both), ElementsAre(0, 1));
  EXPECT_TRUE(IsLayoutFree(**both, (*both)->params[1].get()));
  EXPECT_FALSE(IsLayoutFree(**both, (*both)->params[2].get()));
}

TEST(LayoutFree, RefusesWhatIsNoConstant) {
  const std::pair<const char*, const char*> kCases[] = {
      {"\"layout_free_buffers\": 1", "is no list"},
      {"\"layout_free_buffers\": [\"B\"]", "an entry that is no number"},
      {"\"layout_free_buffers\": [True]", "an entry that is no number"},
      {"\"layout_free_buffers\": [3]", "names parameter 3 of 3"},
      {"\"layout_free_buffers\": [-1]", "names parameter -1 of 3"},
      {"\"layout_free_buffers\": [1, 1]", "names parameter 1 twice"},
      {"\"layout_free_buffers\": [2]",
       "names parameter 2 (C), which the function writes"}};
  for (const auto& [attrs, message] : kCases) {
    const auto parsed = Parse(attrs);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << attrs;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(message));
  }
}

TEST(LayoutFree, IsASetOfTheWorkload) {
  const auto hash = [](const char* attrs) {
    const auto parsed = Parse(attrs);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? WorkloadHash(**parsed) : "";
  };
  const std::string plain = hash("\"tir.noalias\": True");
  EXPECT_EQ(hash("\"layout_free_buffers\": []"), plain);
  EXPECT_NE(hash("\"layout_free_buffers\": [1]"), plain);
  EXPECT_EQ(hash("\"layout_free_buffers\": [0, 1]"),
            hash("\"layout_free_buffers\": [1, 0]"));
}

}  // namespace
}  // namespace tilefarm::ir

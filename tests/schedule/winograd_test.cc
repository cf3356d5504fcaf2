// winograd: the resulting blocks, equal results, rejections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/printer.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

std::string Trace(int tile, const std::string& before = "") {
  return absl::StrCat("b0 = sch.get_block(\"C\")\n", before,
                      "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=", tile,
                      ")\n");
}

// A convolution without padding: H x W outputs, 2 into 3 channels.
struct Conv {
  int height = 4, width = 4;
  std::string dtype = "float32";
  std::string data = "A[vn, vh + vr, vw + vs, vk]";
  std::string kernel = "W[vr, vs, vk, vc]";
  std::string term = "DATA * KERNEL";
  int window = 3;
  std::string block_attr;

  std::string Text() const {
    const std::string body =
        R"(for n, h, w, c, r, s, k in T.grid(2, HH, WW, 3, NN, NN, 2):
    with T.block("C"):
        vn, vh, vw, vc, vr, vs, vk = T.axis.remap("SSSSRRR", [n, h, w, c, r, s, k])BLOCK_ATTR
        with T.init():
            C[vn, vh, vw, vc] = T.DTYPE(0)
        C[vn, vh, vw, vc] = C[vn, vh, vw, vc] + TERM)";
    const std::string params =
        "A: T.Buffer((2, 20, 20, 4), \"DTYPE\"), "
        "W: T.Buffer((NN, NN, 2, 3), \"DTYPE\"), "
        "C: T.Buffer((2, HH, WW, 3), \"DTYPE\")";
    std::string text = Program(params, body);
    const std::pair<const char*, std::string> values[] = {
        {"TERM", term},
        {"DATA", data},
        {"KERNEL", kernel},
        {"DTYPE", dtype},
        {"HH", absl::StrCat(height)},
        {"WW", absl::StrCat(width)},
        {"NN", absl::StrCat(window)},
        {"BLOCK_ATTR",
         block_attr.empty()
             ? ""
             : absl::StrCat("\n            T.block_attr({", block_attr, "})")}};
    for (const auto& [from, to] : values) {
      text = absl::StrReplaceAll(text, {{from, to}});
    }
    return text;
  }
};

std::string Scheduled(const std::string& program, const std::string& trace) {
  const auto schedule = Apply(ParseProgram(program), trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? ir::Print(schedule->module()) : "";
}

TEST(Winograd, TransformsMultipliesAndTransformsBack) {
  const std::string text = Scheduled(Conv().Text(), Trace(2));
  for (const char* expected :
       {// The kernel, as products with the entries of G.
        "for x, y, k, c in T.grid(4, 4, 2, 3):",
        "T.Select(vx == 0, T.float32(-1.0), T.Select(vx == 1, T.float32(0.5), "
        "T.Select(vx == 2, T.float32(0.5), T.float32(0.0)))) * "
        "W[0, 0, vk, vc]",
        // Data tiles of 4 x 4 that start at every second element.
        "for x, y, n, th, tw, k in T.grid(4, 4, 2, 2, 2, 2):",
        "C_tile[vx, vy, vn, vth, vtw, vk] = A[vn, vth * 2 + vx, vtw * 2 + vy, "
        "vk]",
        // Only additions.
        "T.Select(vx == 0, C_tile[2, vy, vn, vth, vtw, vk] - C_tile[0, vy, vn, "
        "vth, vtw, vk], T.Select(vx == 1, C_tile[2, vy, vn, vth, vtw, vk] + "
        "C_tile[1, vy, vn, vth, vtw, vk]",
        // Sixteen products of matrices.
        "for x, y, n, th, tw, c, k in T.grid(4, 4, 2, 2, 2, 3, 2):",
        "C_product[vx, vy, vn, vth, vtw, vc] + C_input[vx, vy, vn, vth, vtw, "
        "vk] * C_kernel[vx, vy, vk, vc]",
        "for x, y, n, th, tw, c in T.grid(2, 4, 2, 2, 2, 3):",
        // The original block, over its own loops.
        "for n, h, w, c in T.grid(2, 4, 4, 3):",
        "C[vn, vh, vw, vc] = T.Select(vw % 2 == 0, C_product_rows[vh % 2, 0, "
        "vn, vh // 2, vw // 2, vc] + (C_product_rows[vh % 2, 1, vn, vh // 2, "
        "vw // 2, vc] + C_product_rows[vh % 2, 2, vn, vh // 2, vw // 2, "
        "vc])"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(expected));
  }
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("if_then_else")));
}

// With tiles of 2 and small integers, no operation rounds.
TEST(Winograd, ComputesTheSame) {
  ExpectSameResults(Conv().Text(), Trace(2));
  // The last tiles are incomplete: nothing beyond the data is read.
  for (const auto& [height, width] :
       {std::pair{5, 4}, {4, 7}, {7, 5}, {1, 3}}) {
    Conv odd;
    odd.height = height;
    odd.width = width;
    ExpectSameResults(odd.Text(), Trace(2));
    EXPECT_THAT(Scheduled(odd.Text(), Trace(2)),
                ::testing::HasSubstr("T.if_then_else("));
  }
}

TEST(Winograd, ReadsThroughConditionsAndOtherLayouts) {
  Conv conv;
  conv.data =
      "T.if_then_else(1 <= vh + vr and vh + vr < 5 and 1 <= vw + vs, "
      "A[vn, vh + vr - 1, vw + vs - 1, vk], T.float32(0))";
  ExpectSameResults(conv.Text(), Trace(2));
  // The kernel comes first, turned and transposed; the data has its channels
  // first and its dimensions swapped.
  conv.term = "KERNEL * DATA";
  conv.data = "A[vn, vw + vs, vh + vr, 3 - vk]";
  conv.kernel = "W[2 - vs, vr, vk, 2 - vc]";
  ExpectSameResults(conv.Text(), Trace(2));
  ExpectSameResults(
      Program(
          "A: T.Buffer((1, 2, 6, 6, 4), \"float32\"), "
          "W: T.Buffer((2, 2, 3, 3, 4, 2), \"float32\"), "
          "C: T.Buffer((1, 2, 4, 4, 2), \"float32\")",
          R"(for n, h, w, o, i, b, r, s, k in T.grid(1, 4, 4, 2, 2, 2, 3, 3, 4):
    with T.block("C"):
        vn, vh, vw, vo, vi, vb, vr, vs, vk = T.axis.remap("SSSSSRRRR", [n, h, w, o, i, b, r, s, k])
        with T.init():
            C[vn, vo, vh, vw, vi] = T.float32(0)
        C[vn, vo, vh, vw, vi] = C[vn, vo, vh, vw, vi] + A[vn, vb, vh + vr, vw + vs, vk] * W[vo, vb, vr, vs, vk, vi])"),
      Trace(2));
}

TEST(Winograd, ThreeChannelsAreNoWindow) {
  ExpectSameResults(Program("A: T.Buffer((6, 6, 3), \"float32\"), "
                            "W: T.Buffer((3, 3, 3, 3), \"float32\"), "
                            "C: T.Buffer((4, 4, 3), \"float32\")",
                            R"(for k, h, w, c, r, s in T.grid(3, 4, 4, 3, 3, 3):
    with T.block("C"):
        vk, vh, vw, vc, vr, vs = T.axis.remap("RSSSRR", [k, h, w, c, r, s])
        with T.init():
            C[vh, vw, vc] = T.float32(0)
        C[vh, vw, vc] = C[vh, vw, vc] + A[vh + vr, vw + vs, vk] * W[vr, vs, vk, vc])"),
                    Trace(2));
}

// Other primitives on the resulting blocks preserve the result.
TEST(Winograd, ItsBlocksAreScheduled) {
  ExpectSameResults(Conv().Text(), absl::StrCat(Trace(2), R"(
n, h, w, c = sch.get_loops(b0)
h0, h1 = sch.split(h, factors=[None, 2])
w0, w1 = sch.split(w, factors=[None, 2])
sch.reorder(n, h0, w0, c, h1, w1)
sch.compute_at(b6, c, preserve_unit_loops=True)
sch.compute_at(b5, w0, preserve_unit_loops=True)
sch.compute_at(b4, h0, preserve_unit_loops=True)
l0, l1, x, y, l2, l3, l4, k = sch.get_loops(b4)
sch.reorder(k, x, y)
sch.compute_at(b3, k)
sch.compute_at(b2, k)
sch.unroll(x)
sch.unroll(y)
sch.transform_layout(b1, buffer=("write", 0), index_map=lambda x, y, k, c: (c, x, y, k))
)"));
}

TEST(Winograd, ItsTraceReplays) {
  const ir::IRModule module = ParseProgram(Conv().Text());
  const auto first = Apply(module, Trace(4));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string text = first->trace().Print();
  EXPECT_THAT(text,
              ::testing::HasSubstr("b1, b2, b3, b4, b5, b6 = sch.winograd("));
  const auto again = Apply(module, text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trace().Print(), text);
  EXPECT_EQ(ir::Print(again->module()), ir::Print(first->module()));
}

TEST(Winograd, RefusesWhatIsNoConvolutionByThreeOfStrideOne) {
  const auto refused = [](const Conv& conv, const std::string& reason,
                          const std::string& trace = Trace(2)) {
    ExpectRefused(conv.Text(), trace, kIllegal, {"winograd: block C", reason});
  };
  Conv conv;
  conv.data = "A[vn, vh * 2 + vr, vw * 2 + vs, vk]";
  refused(conv, "steps of one element (strides and dilations are refused)");
  conv.data = "A[vn, vh + vr * 2, vw + vs * 2, vk]";
  refused(conv, "steps of one element (strides and dilations are refused)");
  // One dimension only.
  conv.data = "A[vn, vh + vr, vw * 2 + vs, vk]";
  refused(conv, "steps of one element");
  conv = Conv();
  conv.window = 5;
  refused(conv, "its window is not 3 x 3");
  conv.window = 1;
  refused(conv, "its window is not 3 x 3");
  conv = Conv();
  conv.data = "A[vn, vh + vr, vw + vs, vc]";
  conv.kernel = "W[vr, vs, 0, vc]";
  refused(conv, "vc is in both factors (groups are refused)");
  conv.kernel = "W[vr, vs, vk, 0]";
  conv.data = "A[vn, vh + vr, vw + vs, vk]";
  refused(conv, "vc is in neither factor");
  conv = Conv();
  conv.term = "(DATA + KERNEL)";
  refused(conv, "it is no sum of products");
  conv = Conv();
  conv.dtype = "int32";
  refused(conv, "it sums up int32");
  conv = Conv();
  conv.block_attr = "\"tilefarm.skip_padding\": 1";
  refused(conv, "its annotation tilefarm.skip_padding");
}

TEST(Winograd, RefusesOtherTilesAndLoops) {
  ExpectRefused(Conv().Text(), Trace(3), absl::StatusCode::kInvalidArgument,
                {"winograd: block C", "the tile is 3; there are 2 and 4"});
  ExpectRefused(Conv().Text(),
                Trace(2,
                      "l0, l1, l2, l3, l4, l5, l6 = sch.get_loops(b0)\n"
                      "l7, l8 = sch.split(l1, factors=[2, 2])\n"),
                kIllegal, {"its loops are not its own"});
  ExpectRefused(Conv().Text(),
                Trace(2,
                      "l0, l1, l2, l3, l4, l5, l6 = sch.get_loops(b0)\n"
                      "sch.parallel(l0)\n"),
                kIllegal, {"the loop is not serial"});
  ExpectRefused(MatmulRelu(),
                "b0 = sch.get_block(\"D\")\n"
                "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=2)\n",
                kIllegal, {"winograd: block D"});
}

}  // namespace
}  // namespace tilefarm::testing

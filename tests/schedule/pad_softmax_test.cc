// pad_softmax: rewrites and rejections.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kParams[] =
    "Q: T.Buffer((2, 6, 3), \"float32\"), K: T.Buffer((2, 5, 3), \"float32\"), "
    "V: T.Buffer((2, 5, 2), \"float32\"), W: T.Buffer((6, 5), \"float32\"), "
    "O: T.Buffer((2, 6, 2), \"float32\")";

constexpr char kScores[] = R"(for h, r, c, k in T.grid(2, 6, 5, 3):
    with T.block("S"):
        b, i, j, l = T.axis.remap("SSSR", [h, r, c, k])
        with T.init():
            S[b, i, j] = T.float32(0)
        S[b, i, j] = S[b, i, j] + Q[b, i, l] * K[b, j, l]
)";
constexpr char kSoftmax[] = R"(for h, r, c in T.grid(2, 6, 5):
    with T.block("M"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            M[b, i] = T.float32(-3.4028234663852886e38)
        M[b, i] = T.max(M[b, i], EXPONENT)
for h, r, c in T.grid(2, 6, 5):
    with T.block("D"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            D[b, i] = T.float32(0)
        D[b, i] = D[b, i] + T.exp(EXPONENT - M[b, i])
for h, r, c in T.grid(2, 6, 5):
    with T.block("P"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        P[b, i, j] = T.exp(EXPONENT - M[b, i]) / D[b, i]
for h, r, e, c in T.grid(2, 6, 2, 5):
    with T.block("O"):
        b, i, d, j = T.axis.remap("SSSR", [h, r, e, c])
        with T.init():
            O[b, i, d] = T.float32(0)
        O[b, i, d] = O[b, i, d] + TERM
)";

struct Attention {
  std::string exponent = "S[b, i, j]";
  std::string term = "P[b, i, j] * V[b, j, d]";
  std::string scores = kScores;
  std::string after;  // a block more

  std::string Text() const {
    return Program(
        kParams,
        absl::StrCat("S = T.alloc_buffer((2, 6, 5), \"float32\")\n"
                     "M = T.alloc_buffer((2, 6), \"float32\")\n"
                     "D = T.alloc_buffer((2, 6), \"float32\")\n"
                     "P = T.alloc_buffer((2, 6, 5), \"float32\")\n",
                     scores,
                     absl::StrReplaceAll(
                         kSoftmax, {{"EXPONENT", exponent}, {"TERM", term}}),
                     after));
  }
};

std::string PadTrace(const std::string& padding, int depth = 4) {
  return absl::StrCat("b0 = sch.get_block(\"O\")\nsch.pad_softmax(b0, padding=",
                      padding, ", depth=", depth, ")\n");
}

TEST(PadSoftmax, TermsBeyondTheLastAreZero) {
  ExpectBecomes(Attention().Text(), PadTrace("[1, 4, 1, 4]"),
                Program(kParams, R"(Q_pad = T.alloc_buffer((2, 8, 4))
K_pad = T.alloc_buffer((2, 8, 4))
S_pad = T.alloc_buffer((2, 8, 8))
P_pad = T.alloc_buffer((2, 8, 8))
V_pad = T.alloc_buffer((2, 8, 2))
O_pad = T.alloc_buffer((2, 8, 2))
M_pad = T.alloc_buffer((2, 8))
D_pad = T.alloc_buffer((2, 8))
for ax0, ax1, ax2 in T.grid(2, 8, 4):
    with T.block("Q_pad"):
        v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
        Q_pad[v0, v1, v2] = T.if_then_else(v1 < 6 and v2 < 3, Q[v0, v1, v2], T.float32(0))
for ax0, ax1, ax2 in T.grid(2, 8, 4):
    with T.block("K_pad"):
        v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
        K_pad[v0, v1, v2] = T.if_then_else(v1 < 5 and v2 < 3, K[v0, v1, v2], T.float32(0))
for h, r, c, k in T.grid(2, 8, 8, 4):
    with T.block("S"):
        b, i, j, l = T.axis.remap("SSSR", [h, r, c, k])
        with T.init():
            S_pad[b, i, j] = T.float32(0)
        S_pad[b, i, j] = S_pad[b, i, j] + Q_pad[b, i, l] * K_pad[b, j, l]
for h, r, c in T.grid(2, 8, 8):
    with T.block("M"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            M_pad[b, i] = T.float32(-3.4028234663852886e38)
        M_pad[b, i] = T.max(M_pad[b, i], T.if_then_else(j < 5, S_pad[b, i, j], T.float32("-inf")))
for h, r, c in T.grid(2, 8, 8):
    with T.block("D"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            D_pad[b, i] = T.float32(0)
        D_pad[b, i] = D_pad[b, i] + T.exp(T.if_then_else(j < 5, S_pad[b, i, j], T.float32("-inf")) - M_pad[b, i])
for h, r, c in T.grid(2, 8, 8):
    with T.block("P"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        P_pad[b, i, j] = T.exp(T.if_then_else(j < 5, S_pad[b, i, j], T.float32("-inf")) - M_pad[b, i]) / D_pad[b, i]
for ax0, ax1, ax2 in T.grid(2, 8, 2):
    with T.block("V_pad"):
        v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
        V_pad[v0, v1, v2] = T.if_then_else(v1 < 5, V[v0, v1, v2], T.float32(0))
for h, r, e, c in T.grid(2, 8, 2, 8):
    with T.block("O"):
        b, i, d, j = T.axis.remap("SSSR", [h, r, e, c])
        with T.init():
            O_pad[b, i, d] = T.float32(0)
        O_pad[b, i, d] = O_pad[b, i, d] + P_pad[b, i, j] * V_pad[b, j, d]
for ax0, ax1, ax2 in T.grid(2, 6, 2):
    with T.block("O_pad"):
        v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
        O[v0, v1, v2] = O_pad[v0, v1, v2]
)"));
}

TEST(PadSoftmax, GivesTheSame) {
  const Attention masked = {.exponent =
                                "S[b, i, j] * T.float32(0.5) + W[i, j]"};
  // Rows whose terms are all as low as can be are no padding.
  const Attention lowest = {.exponent =
                                "T.if_then_else(i < 3, S[b, i, j], "
                                "T.float32(-3.4028234663852886e38))"};
  const Attention given = {.exponent = "W[i, j]", .scores = ""};
  const Attention elementwise = {.scores = R"(for h, r, c in T.grid(2, 6, 5):
    with T.block("S"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        S[b, i, j] = W[i, j] + Q[b, i, 0]
)"};
  for (const Attention& attention :
       {Attention(), masked, lowest, given, elementwise}) {
    for (const char* padding :
         {"[1, 4, 1, 4]", "[2, 1, 1, 3]", "[1, 7, 3, 1]", "[1, 1, 4, 1]",
          "[1, 1, 1, 1]", "[1, 3, 2, 5]"}) {
      for (const int depth : {1, 4}) {
        SCOPED_TRACE(absl::StrCat(attention.exponent, " ", padding, depth));
        ExpectSameResults(attention.Text(), PadTrace(padding, depth));
      }
    }
  }
}

TEST(PadSoftmax, RefusesOtherPrograms) {
  ExpectRefused(Attention{.term = "Q[b, i, 0] * V[b, j, d]"}.Text(),
                PadTrace("[1, 4, 1, 4]"), kIllegal,
                {"no factor is made by a block that divides by a sum"});
  ExpectRefused(Attention{.after = R"(for h, r in T.grid(2, 6):
    with T.block("other"):
        b, i = T.axis.remap("SS", [h, r])
        Q[b, i, 0] = M[b, i]
)"}
                    .Text(),
                PadTrace("[1, 4, 1, 4]"), kIllegal,
                {"block other reads the result of M"});
  // What makes the scores has to be a sum of products.
  ExpectRefused(Attention{.scores = absl::StrReplaceAll(
                              kScores, {{"Q[b, i, l] * K[b, j, l]",
                                         "T.exp(Q[b, i, l] * K[b, j, l])"}})}
                    .Text(),
                PadTrace("[1, 4, 1, 4]"), kIllegal, {"block S", "is not zero"});
}

TEST(PadSoftmax, RefusesOtherNumbers) {
  ExpectRefused(Attention().Text(), PadTrace("[1, 4, 1]"), kInvalid,
                {"padding has 3 numbers for 4 variables"});
  ExpectRefused(Attention().Text(), PadTrace("[1, 0, 1, 4]"), kInvalid,
                {"padding 0 is out of range"});
  ExpectRefused(Attention().Text(), PadTrace("[3, 4, 1, 4]"), kInvalid,
                {"padding 3 of b, which counts softmaxes, is no divisor of 2"});
  ExpectRefused(Attention().Text(), PadTrace("[1, 4, 1, 4]", 0), kInvalid,
                {"padding 0 is out of range"});
}

}  // namespace
}  // namespace tilefarm::testing

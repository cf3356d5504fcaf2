#include "compiler/ir/regions.h"

#include <gtest/gtest.h>

#include "compiler/ir/printer.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

// The computed T.reads and T.writes lines of the only block.
std::string Computed(const std::string& body) {
  const std::string text = Print(*ParseOrDie(WithBuffers(body)));
  const size_t from = text.find("T.reads");
  const size_t to = text.find('\n', text.find("T.writes"));
  std::string out;
  for (char c : text.substr(from, to - from)) {
    if (c == '\n') c = ' ';
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out += c;
  }
  return out;
}

TEST(Regions, PointsInOrderOfFirstAccess) {
  EXPECT_EQ(Computed("for i in range(8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(8, i)\n"
                     "        C[v] = B[v] + A[v + 1] * B[v]\n"),
            "T.reads(B[v], A[v + 1]) T.writes(C[v])");
}

TEST(Regions, AnInitHidesTheAccumulator) {
  EXPECT_EQ(Computed("for i, k in T.grid(8, 8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v, vk = T.axis.remap(\"SR\", [i, k])\n"
                     "        with T.init():\n"
                     "            C[v] = 0\n"
                     "        C[v] = C[v] + M[v, vk]\n"),
            "T.reads(M[v, vk]) T.writes(C[v])");
  EXPECT_EQ(Computed("for i, k in T.grid(8, 8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v, vk = T.axis.remap(\"SR\", [i, k])\n"
                     "        C[v] = C[v] + M[v, vk]\n"),
            "T.reads(C[v], M[v, vk]) T.writes(C[v])");
}

TEST(Regions, InnerLoopsWiden) {
  EXPECT_EQ(Computed("for i in range(4):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(4, i)\n"
                     "        for j in range(2):\n"
                     "            C[v * 2 + j] = A[(v * 4 + j * 3) // 2]\n"),
            "T.reads(A[0:16]) T.writes(C[v * 2:v * 2 + 2])");
  EXPECT_EQ(Computed("for i in range(4):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(4, i)\n"
                     "        for j in range(1, 4):\n"
                     "            C[8 - j] = M[v, j % 2] + A[j // 2]\n"),
            "T.reads(M[v, 0:2], A[0:2]) T.writes(C[5:8])");
}

TEST(Regions, HullOfNeighbours) {
  EXPECT_EQ(Computed("for i in range(8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(8, i)\n"
                     "        C[v] = A[v + 1] + A[v] + A[v + 4]\n"),
            "T.reads(A[v:v + 5]) T.writes(C[v])");
}

TEST(Regions, UnknownIsTheWholeDimension) {
  EXPECT_EQ(Computed("for i in range(8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(8, i)\n"
                     "        C[v] = A[v] + A[v * v]\n"),
            "T.reads(A[0:16]) T.writes(C[v])");
}

// A constant region beyond the buffer could not be parsed again.
TEST(Regions, BeyondTheBufferIsTheWholeDimension) {
  const std::string body =
      "for i in range(8):\n"
      "    with T.block(\"b\"):\n"
      "        v = T.axis.spatial(8, i)\n"
      "        for j in range(4):\n"
      "            C[v] = A[j + 1000] + B[j - 2]\n";
  EXPECT_EQ(Computed(body), "T.reads(A[0:16], B[0:16]) T.writes(C[v])");
  const std::string printed = Print(*ParseOrDie(WithBuffers(body)));
  EXPECT_EQ(Print(*ParseOrDie(printed)), printed);
}

TEST(Regions, UpToTheEndOfTheBufferStays) {
  EXPECT_EQ(Computed("for i in range(8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(8, i)\n"
                     "        for j in range(4):\n"
                     "            C[v] = A[j + 12]\n"),
            "T.reads(A[12:16]) T.writes(C[v])");
}

TEST(Regions, IndirectAccessesReadTheIndex) {
  EXPECT_EQ(Computed("for i in range(8):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(8, i)\n"
                     "        C[v] = A[I[v]]\n"),
            "T.reads(A[T.Cast(\"int64\", I[v])], I[v]) T.writes(C[v])");
}

TEST(Regions, NestedBlocksAnswerWithTheirRegions) {
  EXPECT_EQ(Computed("for i in range(4):\n"
                     "    with T.block(\"outer\"):\n"
                     "        v = T.axis.spatial(4, i)\n"
                     "        X = T.alloc_buffer((4,))\n"
                     "        for j in range(4):\n"
                     "            with T.block(\"inner\"):\n"
                     "                w = T.axis.spatial(16, v * 4 + j)\n"
                     "                X[w % 4] = A[w]\n"
                     "                C[w] = X[w % 4]\n"),
            "T.reads(A[v * 4:v * 4 + 4]) T.writes(C[v * 4:v * 4 + 4])");
}

TEST(Regions, LetsAreSeenThrough) {
  EXPECT_EQ(Computed("for i in range(4):\n"
                     "    with T.block(\"b\"):\n"
                     "        v = T.axis.spatial(4, i)\n"
                     "        x = v * 2\n"
                     "        for j in range(2):\n"
                     "            C[x + j] = A[x]\n"),
            "T.reads(A[v * 2]) T.writes(C[v * 2:v * 2 + 2])");
}

}  // namespace
}  // namespace tilefarm::ir

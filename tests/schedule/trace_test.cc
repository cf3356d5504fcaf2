#include "compiler/schedule/trace.h"

#include "tests/schedule/schedule_testing.h"

namespace tilefarm::schedule {
namespace {

std::string Reprinted(const std::string& text) {
  const auto trace = Trace::Parse(text);
  return trace.ok() ? trace->Print() : std::string(trace.status().message());
}

TEST(TraceTest, PrintsWhatItParses) {
  const std::string text =
      "b0 = sch.get_block(\"C\")\n"
      "l1, l2, l3 = sch.get_loops(b0)\n"
      "v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=64, "
      "decision=[16, 8])\n"
      "l6, l7 = sch.split(l1, factors=[v4, v5])\n"
      "l8, l9 = sch.split(l2, factors=[None, 4], preserve_unit_iters=False)\n"
      "sch.reorder(l6, l8, l7, l9)\n"
      "l10 = sch.fuse(l6, l8)\n"
      "sch.parallel(l10)\n"
      "v11 = sch.sample_categorical(candidates=[0, 16], probs=[0.25, 0.75], "
      "decision=1)\n"
      "sch.annotate(b0, ann_key=\"unroll\", ann_val=v11)\n"
      "sch.annotate(l10, ann_key=\"note\", ann_val=\"a \\\"b\\\"\")\n"
      "b12, = sch.get_producers(b0)\n"
      "sch.transform_layout(b0, buffer=[\"read\", 0], "
      "index_map=\"lambda i, j: (j, i)\")\n"
      "sch.enter_postproc()\n";
  EXPECT_EQ(Reprinted(text), text);
}

TEST(TraceTest, ReadsTheOtherSpelling) {
  EXPECT_EQ(Reprinted("# from tvm import s_tir\n"
                      "def apply_trace(sch: s_tir.Schedule) -> None:\n"
                      "  b0 = sch.get_sblock(name=\"C\", func_name=\"main\")\n"
                      "  l1, l2 = sch.get_loops(block=b0)  # both\n"
                      "\n"
                      "  sch.get_consumers(block=b0)\n"
                      "  l3, l4 = sch.split(loop=l1, factors=[\n"
                      "      2, 8], preserve_unit_iters=True,\n"
                      "      disable_predication=False)\n"
                      "  sch.transform_layout(block=b0, buffer=('write', 0), "
                      "index_map=lambda i, j: (i // 4, j), pad_value=None)\n"),
            "b0 = sch.get_block(\"C\")\n"
            "l1, l2 = sch.get_loops(b0)\n"
            "sch.get_consumers(b0)\n"
            "l3, l4 = sch.split(l1, factors=[2, 8])\n"
            "sch.transform_layout(b0, buffer=[\"write\", 0], "
            "index_map=\"lambda i, j: (i // 4, j)\")\n");
}

TEST(TraceTest, ReadsIndexMapCalls) {
  EXPECT_EQ(
      Reprinted("b = sch.get_block('C')\n"
                "sch.transform_layout(block=b, buffer=('read', 2), "
                "index_map=tvm.tirx.IndexMap.from_func(lambda i, j: (j, i,), "
                "inverse_index_map=lambda j, i: (i, j,)), pad_value=None)\n"),
      "b0 = sch.get_block(\"C\")\n"
      "sch.transform_layout(b0, buffer=[\"read\", 2], "
      "index_map=\"lambda i, j: (j, i,)\")\n");
  ExpectInvalid(Trace::Parse("b = sch.get_block(os.name)").status(),
                "unknown name or call");
}

TEST(TraceTest, NamesAreFree) {
  EXPECT_EQ(Reprinted("c = s.get_block('C')\ni, j, k = s.get_loops(c)\n"
                      "s.parallel(i)"),
            "b0 = sch.get_block(\"C\")\nl1, l2, l3 = sch.get_loops(b0)\n"
            "sch.parallel(l1)\n");
}

TEST(TraceTest, KeepsDecisionsApart) {
  auto trace = Trace::Parse(
      "b0 = sch.get_block(\"C\")\n"
      "l1 = sch.sample_compute_location(b0, decision=-2)\n"
      "v2 = sch.sample_categorical(candidates=[1], probs=[1.0])\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->Decisions(),
            (std::vector<ir::Attr>{ir::Attr(-2), ir::Attr()}));
  ASSERT_TRUE(trace->SetDecisions({ir::Attr(0), ir::Attr(0)}).ok());
  EXPECT_EQ(trace->Decisions()[1], ir::Attr(0));
  ExpectInvalid(trace->SetDecisions({ir::Attr(0)}), "2 samples, not 1");
}

TEST(TraceTest, SaysWhereTextIsWrong) {
  const auto error = [](const std::string& text) {
    return Trace::Parse(text).status();
  };
  ExpectInvalid(error("b0 = sch.get_blok(\"C\")"),
                "trace:1:10: error: unknown primitive \"get_blok\"\n"
                "b0 = sch.get_blok(\"C\")\n"
                "         ^");
  ExpectInvalid(error("sch.parallel(l1)"), "unknown name \"l1\"");
  ExpectInvalid(error("x = sch.enter_postproc()"), "has no result");
  ExpectInvalid(error("a, b = sch.get_block('C')"), "has one result");
  ExpectInvalid(error("b0 = sch.get_block()"), "needs argument \"name\"");
  ExpectInvalid(error("b0 = sch.get_block('C', nam='x')"),
                "has no argument \"nam\"");
  ExpectInvalid(error("b0 = sch.get_block('C', name='x')"), "given twice");
  ExpectInvalid(error("b0 = sch.get_block(name='C', 'x')"),
                "positional argument after");
  ExpectInvalid(error("b0 = sch.get_block('C' 'x')"), "expected ')'");
  ExpectInvalid(error("b0 = sch.get_block('C"), "string is never closed");
  ExpectInvalid(error("b0 = sch.get_block('C') + 1"), "end of the line");
  ExpectInvalid(error("b0 = sch.get_block(99999999999999999999)"),
                "not a 64-bit integer");
  ExpectInvalid(error("b0 = sch.get_block(" + std::string(100, '[') +
                      std::string(100, ']') + ")"),
                "nest too deeply");
  ExpectInvalid(error("b0 = sch.get_block(["), "bracket is never closed");
  ExpectInvalid(error("os.system('rm')"), "unknown primitive \"system\"");
}

}  // namespace
}  // namespace tilefarm::schedule

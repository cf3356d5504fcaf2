// Plans of memory, checked against the uses of every value.
#include "compiler/graph/plan_memory.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

ValueId AnyCall(GraphBuilder& builder, const std::vector<ValueId>& inputs,
                int64_t elements) {
  return Must(builder.Compute("any", {}, inputs, [&](const Tensors& in) {
    return te::Compute("T_any", {elements}, [&](const te::Indices&) {
      ir::Expr sum = in[0]({ir::IntConst(0)});
      for (size_t i = 1; i < in.size(); ++i) {
        sum = sum + in[i]({ir::IntConst(0)});
      }
      return sum;
    });
  }));
}

// Every place in the arena belongs to the last value that was written there
// when a call reads it, and no call writes what it reads.
void CheckArena(const Graph& graph, const MemoryPlan& plan) {
  constexpr int64_t kUnit = 64;
  std::vector<ValueId> owner(static_cast<size_t>(plan.arena_bytes / kUnit), -1);
  // The value that a value's storage belongs to: reshapes pass it on.
  std::vector<ValueId> origin(graph.values.size());
  for (size_t i = 0; i < origin.size(); ++i) {
    origin[i] = static_cast<ValueId>(i);
  }
  const auto units = [&](ValueId id) {
    const int64_t first = plan.places[id].at / kUnit;
    const int64_t bytes = graph.values[id].type.num_bytes();
    return std::pair(first, first + (bytes + kUnit - 1) / kUnit);
  };
  const auto in_arena = [&](ValueId id) {
    return plan.places[id].storage == Storage::kArena;
  };
  const auto check_read = [&](ValueId id) {
    ASSERT_NE(plan.places[id].storage, Storage::kNone) << id;
    if (!in_arena(id)) return;
    const auto [first, last] = units(id);
    for (int64_t unit = first; unit < last; ++unit) {
      ASSERT_EQ(owner[unit], origin[id]) << "value " << id;
    }
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Call& call = graph.calls[i];
    if (plan.is_alias[i]) {
      origin[call.outputs[0]] = origin[call.inputs[0]];
      ASSERT_EQ(plan.places[call.outputs[0]].storage,
                plan.places[call.inputs[0]].storage);
      ASSERT_EQ(plan.places[call.outputs[0]].at,
                plan.places[call.inputs[0]].at);
      continue;
    }
    for (ValueId id : call.outputs) {
      if (!in_arena(id)) continue;
      ASSERT_EQ(plan.places[id].at % kUnit, 0);
      const auto [first, last] = units(id);
      ASSERT_LE(last * kUnit, plan.arena_bytes);
      for (int64_t unit = first; unit < last; ++unit) owner[unit] = id;
    }
    // After the results have their places the inputs still have theirs.
    for (ValueId id : call.inputs) check_read(id);
    for (ValueId id : call.outputs) check_read(id);
  }
  for (const OutputCopy& copy : plan.copies) {
    if (copy.from.storage == Storage::kArena) {
      check_read(graph.outputs[copy.output]);
    }
  }
}

TEST(PlanMemory, ChainsNeedTheirTwoLargestNeighbours) {
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    GraphBuilder builder(Interpreted);
    ValueId x = builder.Input("x", F32({4}));
    for (int i = 0; i < 30; ++i) {
      x = AnyCall(builder, {x}, rng.Between(1, 4000));
    }
    const Graph graph = *builder.Finish({x}, {"y"});
    const MemoryPlan plan = PlanMemory(graph);
    CheckArena(graph, plan);
    EXPECT_EQ(plan.arena_bytes, plan.largest_live_bytes);
    // The last value is in the caller's memory.
    EXPECT_EQ(plan.places[x].storage, Storage::kOutput);
    EXPECT_THAT(plan.copies, IsEmpty());
  }
}

TEST(PlanMemory, ValuesThatAreLiveTogetherDoNotOverlap) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    GraphBuilder builder(Interpreted);
    std::vector<ValueId> values = {
        builder.Input("x", F32({8})),
        builder.Constant("c", F32({8}), std::vector<float>(8))};
    const int64_t count = rng.Between(3, 50);
    for (int64_t i = 0; i < count; ++i) {
      const ValueId from = values[rng.Below(values.size())];
      if (rng.Chance(0.2)) {
        const int64_t elements = builder.type(from).num_elements();
        values.push_back(Reshape(builder, from,
                                 builder.type(from).ndim() == 1
                                     ? std::vector<int64_t>{1, elements}
                                     : std::vector<int64_t>{elements}));
        continue;
      }
      std::vector<ValueId> inputs;
      for (int64_t k = rng.Between(1, 3); k > 0; --k) {
        const ValueId input = values[rng.Below(values.size())];
        if (builder.type(input).ndim() == 1) inputs.push_back(input);
      }
      if (inputs.empty()) inputs.push_back(values[0]);
      values.push_back(AnyCall(builder, inputs, rng.Between(1, 300)));
    }
    std::vector<ValueId> outputs = {values.back()};
    for (int64_t k = rng.Between(0, 3); k > 0; --k) {
      outputs.push_back(values[rng.Below(values.size())]);
    }
    std::vector<std::string> names(outputs.size(), "y");
    const Graph graph = *builder.Finish(outputs, names);
    const MemoryPlan plan = PlanMemory(graph);
    CheckArena(graph, plan);
    EXPECT_GE(plan.arena_bytes, plan.largest_live_bytes);
    // Every output is computed in place or copied, once.
    std::vector<int> writes(outputs.size());
    for (const OutputCopy& copy : plan.copies) ++writes[copy.output];
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Place& place = plan.places[outputs[i]];
      if (place.storage == Storage::kOutput &&
          place.at == static_cast<int64_t>(i)) {
        ++writes[i];
      }
    }
    EXPECT_THAT(writes, testing::Each(1));
  }
}

TEST(PlanMemory, AReshapeSharesTheStorageOfItsInput) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 6}));
  const ValueId h = Relu(builder, x);
  const ValueId r = Reshape(builder, h, {24});
  const ValueId y = Relu(builder, r);
  const Graph graph = *builder.Finish({y}, {"y"});
  const MemoryPlan plan = PlanMemory(graph);
  EXPECT_EQ(plan.is_alias, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(plan.places[r].storage, Storage::kArena);
  EXPECT_EQ(plan.places[r].at, plan.places[h].at);
  EXPECT_EQ(plan.arena_bytes, 128);
}

TEST(PlanMemory, AReshapedOutputIsComputedInPlace) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 6}));
  const ValueId h = Relu(builder, x);
  const ValueId y = Reshape(builder, h, {24});
  const Graph graph = *builder.Finish({y}, {"y"});
  const MemoryPlan plan = PlanMemory(graph);
  EXPECT_EQ(plan.places[h].storage, Storage::kOutput);
  EXPECT_THAT(plan.copies, IsEmpty());
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(PlanMemory, OutputsThatAreNotComputedForThemselvesAreCopied) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId c = builder.Constant("c", F32({3}), std::vector<float>(3));
  const ValueId h = Relu(builder, x);
  const ValueId reshaped = Reshape(builder, x, {2, 2});
  const Graph graph = *builder.Finish({x, c, h, h, reshaped},
                                      {"x", "c", "h", "again", "reshaped"});
  const MemoryPlan plan = PlanMemory(graph);
  ASSERT_THAT(plan.copies, SizeIs(4));
  const std::vector<std::pair<Storage, int>> expected = {
      {Storage::kInput, 0},
      {Storage::kConstant, 1},
      {Storage::kOutput, 3},
      {Storage::kInput, 4}};
  const std::vector<int64_t> bytes = {16, 12, 16, 16};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.copies[i].from.storage, expected[i].first) << i;
    EXPECT_EQ(plan.copies[i].output, expected[i].second) << i;
    EXPECT_EQ(plan.copies[i].bytes, bytes[i]) << i;
  }
  // The second h is a copy of the first.
  EXPECT_EQ(plan.copies[2].from.at, 2);
}

TEST(PlanMemory, AResultThatNothingReadsHasAPlace) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const auto both = builder.ComputeAll("both", {}, {x}, [](const Tensors& in) {
    return Tensors{te::Relu(in[0]), te::Add(in[0], in[0])};
  });
  ASSERT_TRUE(both.ok());
  const Graph graph = *builder.Finish({(*both)[0]}, {"y"});
  const MemoryPlan plan = PlanMemory(graph);
  EXPECT_EQ(plan.places[(*both)[1]].storage, Storage::kArena);
  EXPECT_EQ(plan.arena_bytes, 64);
}

TEST(PlanMemory, AGraphWithoutCallsNeedsNoArena) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const Graph graph = *builder.Finish({x}, {"y"});
  const MemoryPlan plan = PlanMemory(graph);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.largest_live_bytes, 0);
  EXPECT_THAT(plan.copies, SizeIs(1));
}

}  // namespace
}  // namespace tilefarm::graph

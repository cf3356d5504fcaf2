#include "cost_model/forest.h"

#include <bit>
#include <cstdio>
#include <limits>

#include "absl/status/status.h"
#include "base/rng.h"
#include "cost_model/xgboost_trainer.h"
#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

// Feature 0 below 2 -> 10, else feature 1 below 5 -> 20, else 30.
std::vector<TreeNode> SmallTree() {
  std::vector<TreeNode> tree(5);
  tree[0] = {0, 2.0f, 1, 2, true};
  tree[1] = {-1, 10.0f, 0, 0, false};
  tree[2] = {1, 5.0f, 3, 4, false};
  tree[3] = {-1, 20.0f, 0, 0, false};
  tree[4] = {-1, 30.0f, 0, 0, false};
  return tree;
}

float PredictOne(const Forest& forest, float a, float b) {
  const float row[] = {a, b};
  return forest.PredictRow(row);
}

TEST(Forest, WalksTrees) {
  const auto forest = Forest::Create({SmallTree(), SmallTree()}, 2);
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_EQ(forest->trees(), 2);
  EXPECT_EQ(PredictOne(*forest, 1, 1), 20);
  EXPECT_EQ(PredictOne(*forest, 2, 4), 40);
  EXPECT_EQ(PredictOne(*forest, 3, 5), 60);
  EXPECT_EQ(PredictOne(*forest, 0, 9), 20);  // missing goes left
  EXPECT_EQ(PredictOne(*forest, 9, 0), 60);  // missing goes right
}

TEST(Forest, SumsTheRowsOfACandidate) {
  const auto forest = Forest::Create({SmallTree()}, 2);
  EXPECT_EQ(forest->Predict({{1, 1, 2, 4, 3, 5}, 3}), 60);
  EXPECT_EQ(forest->Predict({}), 0);
}

// Appends a random tree of at most `levels` levels.
void GrowTree(Rng& rng, int levels, int columns, std::vector<TreeNode>* tree) {
  const size_t at = tree->size();
  tree->emplace_back();
  // Leaves occur at every depth; a tree may be one leaf.
  if (levels == 0 || rng.Chance(0.15)) {
    (*tree)[at].threshold = static_cast<float>(rng.Uniform() - 0.5);
    return;
  }
  TreeNode node;
  node.column = static_cast<int32_t>(rng.Below(columns));
  // Includes values of rows, and 0.
  node.threshold = static_cast<float>(rng.Between(-2, 3));
  node.missing_goes_left = rng.Chance(0.5);
  node.left = static_cast<int32_t>(tree->size());
  GrowTree(rng, levels - 1, columns, tree);
  node.right = static_cast<int32_t>(tree->size());
  GrowTree(rng, levels - 1, columns, tree);
  (*tree)[at] = node;
}

// Many rows at once give the same as row by row, also if one tree is too deep
// for ForestLanes.
TEST(Forest, ManyAtOnceAreEachAlone) {
  const uint64_t seed = 11;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  constexpr float kOdd[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for (int round = 0; round < 200; ++round) {
    const int columns = static_cast<int>(rng.Between(1, 11));
    const int deepest = static_cast<int>(
        rng.Between(0, ForestLanes::kMaxLevels + (round % 4 == 0 ? 2 : 0)));
    std::vector<std::vector<TreeNode>> trees(rng.Below(8));
    for (std::vector<TreeNode>& tree : trees) {
      GrowTree(rng, deepest, columns, &tree);
    }
    const auto forest = Forest::Create(trees, columns);
    ASSERT_TRUE(forest.ok()) << forest.status();
    std::vector<FeatureRows> candidates(rng.Below(40));
    std::vector<const FeatureRows*> pointers;
    for (FeatureRows& candidate : candidates) {
      candidate.rows = static_cast<int>(rng.Below(5));
      for (int i = 0; i < candidate.rows * columns; ++i) {
        candidate.values.push_back(
            rng.Chance(0.3) ? kOdd[rng.Below(std::size(kOdd))]
                            : static_cast<float>(rng.Between(-3, 4)));
      }
      pointers.push_back(&candidate);
    }
    const std::vector<float> sums = forest->PredictAll(pointers);
    ASSERT_EQ(sums.size(), candidates.size());
    for (size_t c = 0; c < candidates.size(); ++c) {
      EXPECT_EQ(std::bit_cast<uint32_t>(sums[c]),
                std::bit_cast<uint32_t>(forest->Predict(candidates[c])))
          << "round " << round << ", candidate " << c;
    }
  }
}

TEST(ForestLanes, LeavesOutWhatIsTooDeep) {
  ForestLanes lanes(1);
  std::vector<TreeNode> tree;  // one leaf per level
  for (int level = 0; level <= ForestLanes::kMaxLevels; ++level) {
    const auto at = static_cast<int32_t>(tree.size());
    tree.push_back({0, static_cast<float>(level), at + 1, at + 2, false});
    tree.push_back({-1, 1.0f, 0, 0, false});
  }
  tree.push_back({-1, 2.0f, 0, 0, false});
  EXPECT_FALSE(lanes.Add(tree));
  const float row[] = {9};
  const float* const rows[] = {row};
  float sum[] = {3};
  lanes.AddSums(rows, sum);
  EXPECT_EQ(sum[0], 3);
  tree.resize(tree.size() - 2);  // the last node becomes a leaf
  tree.back() = {-1, 4.0f, 0, 0, false};
  EXPECT_TRUE(lanes.Add(tree));
  lanes.AddSums(rows, sum);
  EXPECT_EQ(sum[0], 7);
}

TEST(Forest, RefusesTreesThatAreNone) {
  const auto code = [](std::vector<TreeNode> tree) {
    return Forest::Create({std::move(tree)}, 2).status().code();
  };
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  auto tree = SmallTree();
  tree[2].left = 0;  // a cycle
  EXPECT_EQ(code(tree), absl::StatusCode::kInvalidArgument);
  tree = SmallTree();
  tree[2].right = 5;
  EXPECT_EQ(code(tree), absl::StatusCode::kInvalidArgument);
  tree = SmallTree();
  tree[0].column = 2;
  EXPECT_EQ(code(tree), absl::StatusCode::kInvalidArgument);
}

TEST(Forest, BytesRoundTrip) {
  const auto forest = Forest::Create({SmallTree(), SmallTree()}, 2);
  ByteWriter writer;
  forest->Write(writer);
  ByteReader reader(writer.bytes());
  const auto back = Forest::Read(reader, 2);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(reader.Finished());
  EXPECT_EQ(PredictOne(*back, 3, 5), 60);
  ByteReader narrow(writer.bytes());
  EXPECT_EQ(Forest::Read(narrow, 1).status().code(),
            absl::StatusCode::kDataLoss);
  for (size_t cut = 0; cut < writer.bytes().size(); ++cut) {
    ByteReader part(std::string_view(writer.bytes()).substr(0, cut));
    EXPECT_EQ(Forest::Read(part, 2).status().code(),
              absl::StatusCode::kDataLoss)
        << cut;
  }
}

// Forest gives the same sums as the library that grew the trees.
TEST(Train, TheForestReproducesTheLibrary) {
  const uint64_t seed = 5;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  TrainingSet set;
  set.columns = 6;
  std::vector<FeatureRows> candidates;
  for (int c = 0; c < 300; ++c) {
    FeatureRows features;
    features.rows = static_cast<int>(rng.Between(1, 3));
    float sum = 0;
    for (int i = 0; i < features.rows * 6; ++i) {
      const float value =
          rng.Chance(0.3) ? 0.0f : static_cast<float>(rng.Uniform() * 4 - 1);
      features.values.push_back(value);
      sum += value;
    }
    set.values.insert(set.values.end(), features.values.begin(),
                      features.values.end());
    set.rows.push_back(features.rows);
    set.targets.push_back(sum);
    set.weights.push_back(1);
    candidates.push_back(features);
  }
  const auto result = Train(set, {});
  ASSERT_TRUE(result.ok()) << result.status();
  double error = 0, spread = 0;
  for (size_t c = 0; c < candidates.size(); ++c) {
    EXPECT_NEAR(result->forest.Predict(candidates[c]), result->fitted[c], 1e-4);
    error += std::abs(result->fitted[c] - set.targets[c]);
    spread += std::abs(set.targets[c]);
  }
  EXPECT_LT(error, spread / 4);
}

}  // namespace
}  // namespace tilefarm::cost_model

#include "compiler/lower/pipeline.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::PrimFunc;

struct Pass {
  std::string_view name;
  std::function<absl::Status(PrimFunc&)> run;
  std::string_view stage = "";  // that ends with this pass
};

// A pass over the body alone.
template <typename Make>
std::function<absl::Status(PrimFunc&)> OnBody(Make make) {
  return [make](PrimFunc& f) -> absl::Status {
    if constexpr (std::is_same_v<decltype(make(f.body)), ir::Stmt>) {
      f.body = make(f.body);
    } else {
      TF_ASSIGN_OR_RETURN(f.body, make(f.body));
    }
    return absl::OkStatus();
  };
}

template <typename Make>
std::function<absl::Status(PrimFunc&)> ThenSimplify(Make make) {
  return OnBody([make](const ir::Stmt& body) { return Simplify(make(body)); });
}

const auto kSimplify = OnBody([](const ir::Stmt& s) { return Simplify(s); });

// The parts that pipelines share.

// From blocks to plain loops.
std::vector<Pass> PlainPasses() {
  return {
      // While blocks still show which variables are reduced.
      {"LowerInit", OnBody(LowerInit), "init"},
      // After init, which runs for padding, too; while blocks have annotations.
      {"ConvertBlocks", ThenSimplify([](const ir::Stmt& s) {
         return ConvertBlocks(SkipPadding(s));
       }),
       "plain"},
      // After allocation: a buffer inside of an iteration is no conflict.
      // Before flattening: separate dimensions are easier to analyse than
      // offsets.
      {"CheckIterations", OnBody(CheckIterations), "iterations"},
  };
}

std::vector<Pass> FlatPasses() {
  return {
      {"FlattenBuffers",
       [](PrimFunc& f) {
         f = FlattenBuffers(f);
         return absl::OkStatus();
       }},
      {"WidenHalf", ThenSimplify(WidenHalf), "flat"},
  };
}

void Append(std::vector<Pass> more, std::vector<Pass>& passes) {
  std::ranges::move(more, std::back_inserter(passes));
}

std::vector<Pass> CpuPasses(const target::Target& target) {
  std::vector<Pass> passes = {
      // First, while nests still have the form that the schedule left.
      {"LowerLibraryCalls", OnBody(LowerLibraryCalls)},
      {"LegalizeLoops",
       [](PrimFunc& f) -> absl::Status {
         TF_ASSIGN_OR_RETURN(f.body, LegalizeLoops(f));
         return absl::OkStatus();
       }},
  };
  Append(
      {
          // Loops of one iteration hide structure from all later passes.
          {"Simplify", kSimplify, "legalize"},
          // Before indices are rewritten, so that messages show the program's
          // indices.
          {"GuardBounds", OnBody(GuardBounds), "bounds"},
          // While init still shows where a reduction starts.
          {"PlaceAllocations", OnBody(PlaceAllocations), "allocate"},
      },
      passes);
  Append(PlainPasses(), passes);
  // Before unrolling, so that copies have no guards; loop bounds come first,
  // since they need no copies.
  passes.push_back({"PartitionGuards", ThenSimplify([](const ir::Stmt& s) {
                      return PartitionGuards(BoundReductions(s));
                    }),
                    "partition"});
  Append(FlatPasses(), passes);
  Append(
      {
          // Before unrolling, so that each statement is vectorized once.
          {"VectorizeLoops", ThenSimplify([&target](const ir::Stmt& s) {
             return VectorizeLoops(s, target);
           }),
           "vectorize"},
          {"UnrollLoops", ThenSimplify(UnrollLoops)},
          // After unrolling: unrolled loops write the interleaved rows of
          // panels.
          {"InterleaveStores", OnBody(InterleaveStores), "unroll"},
          // After unrolling, which makes the indices of register tiles
          // constant.
          {"PlaceRegisters", OnBody([&target](const ir::Stmt& s) {
             return PlaceRegisters(s, target);
           })},
          {"PromoteAccumulators", OnBody([&target](const ir::Stmt& s) {
             return PromoteAccumulators(s, target);
           }),
           "promote"},
          // Now innermost loops and their remaining loads are final.
          {"PrefetchNext", OnBody(PrefetchNext)},
          {"PrefetchBlocks",
           [&target](PrimFunc& f) {
             f.body = PrefetchBlocks(f, target);
             return absl::OkStatus();
           }},
          // After registers are placed: from here on, the load of a tile's
          // first column represents the whole tile.
          {"TransposeLoads", OnBody([&target](const ir::Stmt& s) {
             return TransposeLoads(s, target);
           })},
      },
      passes);
  return passes;
}

std::vector<Pass> GpuPasses(const target::Target& target) {
  std::vector<Pass> passes = {
      {"LegalizeThreads",
       [](PrimFunc& f) -> absl::Status {
         TF_ASSIGN_OR_RETURN(f.body, LegalizeThreads(f));
         return absl::OkStatus();
       },
       "legalize"},
      {"GuardBounds", OnBody(GuardBounds), "bounds"},
      // Before indices are simplified: those of loops that were fused over
      // several dimensions, as fetches are, then still show that they reach
      // every element.
      {"PlaceAllocations", ThenSimplify([](const ir::Stmt& s) {
         return RemovePrivateGuards(PlaceAllocations(MarkPrivateGuards(s)));
       }),
       "allocate"},
  };
  Append(PlainPasses(), passes);
  Append(
      {
          // While loops of threads are still loops.
          {"LowerThreadReductions", OnBody([&target](const ir::Stmt& s) {
             return LowerThreadReductions(s, *target.gpu);
           })},
          {"MapThreads", OnBody([&target](const ir::Stmt& s) {
             return MapThreads(s, *target.gpu);
           })},
          // While the accesses of registers have one index for each dimension,
          // and before anything depends on the number of threads.
          {"SpreadOverQuads", OnBody([&target](const ir::Stmt& s) {
             return SpreadOverQuads(s, *target.gpu);
           })},
          {"SumInPlace", ThenSimplify(SumInPlace), "threads"},
          // While the accesses of tiles have one index for each dimension.
          {"LowerWarpgroups", OnBody([&target](const ir::Stmt& s) {
             return LowerWarpgroups(s, *target.gpu);
           })},
          {"PipelineLoops", OnBody([&target](const ir::Stmt& s) {
             return PipelineLoops(s, *target.gpu);
           })},
          {"UnrollRegisters", ThenSimplify(UnrollRegisters), "pipeline"},
          // Before flattening, as CheckIterations.
          {"InsertBarriers", OnBody(InsertBarriers), "barriers"},
      },
      passes);
  Append(FlatPasses(), passes);
  Append(
      {
          // After barriers are placed by what each thread accesses; before
          // unrolling, while nests are loops.
          {"LowerWarpMatrices", OnBody([&target](const ir::Stmt& s) {
             return LowerWarpMatrices(s, *target.gpu);
           })},
          {"Simplify", kSimplify, "matrices"},
          {"VectorizeLoops", ThenSimplify([&target](const ir::Stmt& s) {
             return VectorizeLoops(s, target);
           }),
           "vectorize"},
          // After barriers are placed by what iterations do to one another, and
          // lanes have their own; before loops are copied.
          {"HoistShared", OnBody(HoistShared)},
          {"UnrollLoops", ThenSimplify(UnrollLoops), "unroll"},
          {"PlaceRegisters", OnBody([&target](const ir::Stmt& s) {
             return PlaceRegisters(s, target);
           })},
          {"PromoteAccumulators", OnBody([&target](const ir::Stmt& s) {
             return PromoteAccumulators(s, target);
           }),
           "promote"},
          // When the indices of accesses are final.
          {"LowerClusters", OnBody(LowerClusters)},
      },
      passes);
  return passes;
}

}  // namespace

std::vector<Stage> Stages() {
  return {
      {"legalize", "loops are of kinds and in places that code can have",
       "all"},
      {"bounds", "accesses that are not provably in bounds have conditions",
       "all"},
      {"allocate",
       "intermediate buffers are as small as their uses, where they "
       "are used",
       "all"},
      {"init", "reductions have their initial stores before them", "all"},
      {"plain", "blocks are gone: loops, conditions and stores", "all"},
      {"iterations",
       "iterations of parallel loops and lanes of vectors are "
       "independent",
       "all"},
      {"partition", "loops are cut so that their main part has no conditions",
       "processors"},
      {"threads", "loops of threads are the threads of kernels", "GPUs"},
      {"pipeline", "copies to shared memory run ahead of their use", "GPUs"},
      {"barriers", "threads wait where they read what others wrote", "GPUs"},
      {"flat", "buffers have one index, and 16-bit floats compute in float32",
       "all"},
      {"matrices", "products on tensor cores are those instructions", "GPUs"},
      {"vectorize", "vectorized loops are vectors", "all"},
      {"unroll", "unrolled loops are copies of their bodies", "all"},
      {"promote", "sums and tiles stay in registers across loops", "all"},
      {"lowered",
       "prefetches are placed and names are unique: what code "
       "generation takes",
       "all"}};
}

std::vector<std::string> StageNames() {
  std::vector<std::string> names;
  for (const Stage& stage : Stages()) names.emplace_back(stage.name);
  return names;
}

absl::StatusOr<ir::PrimFuncPtr> Lower(const ir::PrimFunc& function,
                                      const target::Target& target,
                                      std::string_view last_stage) {
  std::vector<Pass> passes =
      target.is_gpu() ? GpuPasses(target) : CpuPasses(target);
  // Last, since most passes copy code: afterwards each definition is unique.
  passes.push_back({"RenewScopes", OnBody([](const ir::Stmt& s) {
                      return RenewScopes(Simplify(s));
                    })});
  passes.push_back({"VerifyLowered",
                    [](PrimFunc& f) { return VerifyLowered(f); }, "lowered"});
  if (std::ranges::find(passes, last_stage, &Pass::stage) == passes.end()) {
    std::vector<std::string> stages;
    for (const Pass& pass : passes) {
      if (!pass.stage.empty()) stages.emplace_back(pass.stage);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage \"", std::string(last_stage),
                     "\"; the stages are ", absl::StrJoin(stages, ", ")));
  }
  PrimFunc f = function;
  for (const Pass& pass : passes) {
    TF_RETURN_IF_ERROR(pass.run(f));
    // Tells which pass broke a program.
    if (ir::VerifiesEveryStep()) {
      const absl::Status scopes = ir::VerifyScopes(f);
      if (!scopes.ok()) {
        return absl::InternalError(absl::StrCat(
            "lowering, ", std::string(pass.name), ": ", scopes.message()));
      }
    }
    if (pass.stage == last_stage) break;
  }
  return std::make_shared<const ir::PrimFunc>(std::move(f));
}

}  // namespace tilefarm::lower

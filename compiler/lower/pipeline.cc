#include "compiler/lower/pipeline.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {

std::vector<std::string> StageNames() {
  return {"legalize",  "bounds", "allocate",  "init",   "plain",   "iterations",
          "partition", "flat",   "vectorize", "unroll", "promote", "lowered"};
}

absl::StatusOr<ir::PrimFuncPtr> Lower(const ir::PrimFunc& function,
                                      const target::Target& target,
                                      std::string_view last_stage) {
  const std::vector<std::string> names = StageNames();
  if (std::find(names.begin(), names.end(), last_stage) == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage \"", std::string(last_stage),
                     "\"; the stages are ", absl::StrJoin(names, ", ")));
  }
  ir::PrimFunc f = function;
  const auto done = [&](std::string_view stage) { return stage == last_stage; };
  // Verifying after each pass tells which pass broke a program.
  const auto check = [&](std::string_view pass) -> absl::Status {
    if (!ir::VerifiesEveryStep()) return absl::OkStatus();
    const absl::Status scopes = ir::VerifyScopes(f);
    if (scopes.ok()) return scopes;
    return absl::InternalError(
        absl::StrCat("lowering, ", std::string(pass), ": ", scopes.message()));
  };
  const auto result = [&] {
    return std::make_shared<const ir::PrimFunc>(std::move(f));
  };

  // First, while nests still have the form that the schedule left.
  TF_ASSIGN_OR_RETURN(f.body, LowerLibraryCalls(f.body));
  TF_RETURN_IF_ERROR(check("LowerLibraryCalls"));
  TF_ASSIGN_OR_RETURN(f.body, LegalizeLoops(f));
  TF_RETURN_IF_ERROR(check("LegalizeLoops"));
  // Loops of one iteration hide structure from all later passes.
  f.body = Simplify(f.body);
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("legalize")) return result();
  // Before indices are rewritten, so that messages show the program's indices.
  TF_ASSIGN_OR_RETURN(f.body, GuardBounds(f.body));
  TF_RETURN_IF_ERROR(check("GuardBounds"));
  if (done("bounds")) return result();
  // While init still shows where a reduction starts.
  f.body = PlaceAllocations(f.body);
  TF_RETURN_IF_ERROR(check("PlaceAllocations"));
  if (done("allocate")) return result();
  // While blocks still show which variables are reduced.
  f.body = LowerInit(f.body);
  TF_RETURN_IF_ERROR(check("LowerInit"));
  if (done("init")) return result();
  // After init, which runs for padding, too; while blocks have annotations.
  f.body = Simplify(ConvertBlocks(SkipPadding(f.body)));
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("plain")) return result();
  // After allocation: a buffer inside of an iteration is no conflict. Before
  // flattening: separate dimensions are easier to analyse than offsets.
  TF_ASSIGN_OR_RETURN(f.body, CheckIterations(f.body));
  TF_RETURN_IF_ERROR(check("CheckIterations"));
  if (done("iterations")) return result();
  // Before unrolling, so that copies have no guards; loop bounds come first,
  // since they need no copies.
  f.body = Simplify(PartitionGuards(BoundReductions(f.body)));
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("partition")) return result();
  f = FlattenBuffers(f);
  TF_RETURN_IF_ERROR(check("FlattenBuffers"));
  f.body = Simplify(WidenHalf(f.body));
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("flat")) return result();
  // Before unrolling, so that each statement is vectorized once.
  f.body = Simplify(VectorizeLoops(f.body, target));
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("vectorize")) return result();
  f.body = Simplify(UnrollLoops(f.body));
  TF_RETURN_IF_ERROR(check("Simplify"));
  // After unrolling: unrolled loops write the interleaved rows of panels.
  f.body = InterleaveStores(f.body);
  TF_RETURN_IF_ERROR(check("InterleaveStores"));
  if (done("unroll")) return result();
  // After unrolling, which makes the indices of register tiles constant.
  f.body = PlaceRegisters(f.body, target);
  TF_RETURN_IF_ERROR(check("PlaceRegisters"));
  f.body = PromoteAccumulators(f.body, target);
  TF_RETURN_IF_ERROR(check("PromoteAccumulators"));
  if (done("promote")) return result();
  // Now innermost loops and their remaining loads are final.
  f.body = PrefetchNext(f.body);
  TF_RETURN_IF_ERROR(check("PrefetchNext"));
  f.body = PrefetchBlocks(f, target);
  TF_RETURN_IF_ERROR(check("PrefetchBlocks"));
  // After registers are placed: from here on, the load of a tile's first column
  // represents the whole tile.
  f.body = TransposeLoads(f.body, target);
  TF_RETURN_IF_ERROR(check("TransposeLoads"));
  // Last, since most passes copy code: afterwards each definition is unique.
  f.body = RenewScopes(Simplify(f.body));
  TF_RETURN_IF_ERROR(check("RenewScopes"));
  TF_RETURN_IF_ERROR(VerifyLowered(f));
  return result();
}

}  // namespace tilefarm::lower

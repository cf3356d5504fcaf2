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
  // Which pass broke a program is worth more than that one did.
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

  // While their nests stand as the schedule left them.
  TF_ASSIGN_OR_RETURN(f.body, LowerLibraryCalls(f.body));
  TF_RETURN_IF_ERROR(check("LowerLibraryCalls"));
  TF_ASSIGN_OR_RETURN(f.body, LegalizeLoops(f));
  TF_RETURN_IF_ERROR(check("LegalizeLoops"));
  // Loops of one iteration hide structure from every pass below.
  f.body = Simplify(f.body);
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("legalize")) return result();
  // Before indices are rewritten, so that messages speak of the program's.
  TF_ASSIGN_OR_RETURN(f.body, GuardBounds(f.body));
  TF_RETURN_IF_ERROR(check("GuardBounds"));
  if (done("bounds")) return result();
  // Blocks with init still say where a reduction begins.
  f.body = PlaceAllocations(f.body);
  TF_RETURN_IF_ERROR(check("PlaceAllocations"));
  if (done("allocate")) return result();
  // While blocks still say which variables reduce.
  f.body = LowerInit(f.body);
  TF_RETURN_IF_ERROR(check("LowerInit"));
  if (done("init")) return result();
  // After init, which padding does not spare; while annotations of blocks live.
  f.body = Simplify(ConvertBlocks(SkipPadding(f.body)));
  TF_RETURN_IF_ERROR(check("Simplify"));
  if (done("plain")) return result();
  // After allocation: what belongs to an iteration is no conflict. Before
  // flattening: dimensions tell more than offsets.
  TF_ASSIGN_OR_RETURN(f.body, CheckIterations(f.body));
  TF_RETURN_IF_ERROR(check("CheckIterations"));
  if (done("iterations")) return result();
  // Before loops are replicated, so that what is replicated has no guards; what
  // bounds of loops can say needs no copies.
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
  // Panels whose groups of rows are side by side are written by unrolled loops.
  f.body = InterleaveStores(f.body);
  TF_RETURN_IF_ERROR(check("InterleaveStores"));
  if (done("unroll")) return result();
  // Only now are the indices of register tiles constants.
  f.body = PlaceRegisters(f.body, target);
  TF_RETURN_IF_ERROR(check("PlaceRegisters"));
  f.body = PromoteAccumulators(f.body, target);
  TF_RETURN_IF_ERROR(check("PromoteAccumulators"));
  if (done("promote")) return result();
  // Only now is it known which loops are innermost and what they still read.
  f.body = PrefetchNext(f.body);
  TF_RETURN_IF_ERROR(check("PrefetchNext"));
  // Not before registers have their place: here a tile's first column stands
  // for all.
  f.body = TransposeLoads(f.body, target);
  TF_RETURN_IF_ERROR(check("TransposeLoads"));
  // Last, since most passes copy code: each definition stands once.
  f.body = RenewScopes(Simplify(f.body));
  TF_RETURN_IF_ERROR(check("RenewScopes"));
  TF_RETURN_IF_ERROR(VerifyLowered(f));
  return result();
}

}  // namespace tilefarm::lower

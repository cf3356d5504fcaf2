#include "compiler/space/design_space.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/split_mix.h"
#include "base/status_macros.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/thread_sites.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sample_site.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

constexpr int kDraws = 200;
// Of the mutations, by SwapLevels and by Retile.
constexpr double kSwapsOfLevels = 0.15;
constexpr double kRetilings = 0.15;
// Of the mutations for GPUs, those that draw all tiles of a block again.
constexpr double kRedraws = 0.2;

struct Sketch {
  schedule::Trace trace;  // without decisions
  std::vector<SampleSite> sites;
  // A trace of ours with these instructions first belongs to this sketch.
  std::string fingerprint;
  std::string kind;  // SketchKind of it
  // What stands before its first decision, applied once for all candidates; an
  // error where it cannot be.
  absl::StatusOr<schedule::PartialReplay> start = absl::UnknownError("");
  bool by_hand = false;  // no postprocs: the trace is complete as it stands
  std::optional<ThreadSites> threads;  // of sketches for GPUs
};

// The text of a trace up to enter_postproc, decisions blanked.
std::string TraceFingerprint(schedule::Trace trace) {
  auto& instructions = trace.instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    instructions[i].decision = ir::Attr();
    if (instructions[i].primitive == "enter_postproc") {
      instructions.resize(i);
      break;
    }
  }
  return trace.Print();
}

class DesignSpaceImpl : public DesignSpace {
 public:
  DesignSpaceImpl(ir::PrimFuncPtr program, target::Target target,
                  ir::FloatRule floats)
      : program_(std::move(program)),
        target_(std::move(target)),
        floats_(floats),
        module_{{program_}} {}

  // `share`: of draws, among those of all sketches.
  absl::Status AddSketch(schedule::Trace trace, bool by_hand,
                         double share = 1) {
    Sketch sketch;
    TF_ASSIGN_OR_RETURN(sketch.sites, FindSites(trace, module_));
    if (target_.is_gpu() && !by_hand) {
      TF_ASSIGN_OR_RETURN(sketch.threads,
                          ThreadSites::Find(trace, module_, target_));
    }
    if (by_hand) {
      size_t site = 0;
      for (const schedule::Instruction& instruction : trace.instructions) {
        if (!instruction.is_sample()) continue;
        if (!(instruction.decision == ir::Attr())) {
          sketch.sites[site].fixed = instruction.decision;
        }
        ++site;
      }
    }
    for (schedule::Instruction& instruction : trace.instructions) {
      instruction.decision = ir::Attr();
    }
    sketch.fingerprint = TraceFingerprint(trace);
    sketch.kind = SketchKind(trace);
    sketch.start = StartOf(trace);
    if (!by_hand) TF_RETURN_IF_ERROR(sketch.start.status());
    sketch.by_hand = by_hand;
    traces_.push_back(trace);
    shares_.push_back(share);
    sketch.trace = std::move(trace);
    sketches_.push_back(std::move(sketch));
    return absl::OkStatus();
  }

  const ir::PrimFuncPtr& program() const override { return program_; }
  const std::vector<schedule::Trace>& sketches() const override {
    return traces_;
  }

  absl::StatusOr<Candidate> Sample(Rng& rng) const override {
    return DrawFitting(std::nullopt, rng);
  }
  absl::StatusOr<Candidate> SampleOf(int sketch, Rng& rng) const override {
    return DrawFitting(sketch, rng);
  }

  absl::StatusOr<Candidate> Mutate(const Candidate& parent,
                                   Rng& rng) const override {
    const Sketch& sketch = sketches_[parent.sketch];
    if (sketch.threads && rng.Chance(kRedraws)) {
      Candidate child = parent;
      if (sketch.threads->Redraw(child.decisions, rng) && !(child == parent)) {
        return child;
      }
    }
    if (!target_.is_gpu() && rng.Chance(kSwapsOfLevels)) {
      auto swapped = SwapLevels(sketch.sites, parent.decisions, rng);
      if (swapped) return Candidate{parent.sketch, *std::move(swapped)};
    }
    if (!target_.is_gpu() && rng.Chance(kRetilings)) {
      for (int draw = 0; draw < kDraws; ++draw) {
        auto next = Retile(sketch.sites, parent.decisions, target_, rng);
        if (!next) break;
        if (!FitsRegisters(sketch.sites, *next, target_)) continue;
        return Candidate{parent.sketch, *std::move(next)};
      }
    }
    for (int draw = 0; draw < kDraws && !sketch.sites.empty(); ++draw) {
      const size_t at = rng.Below(sketch.sites.size());
      std::optional<ir::Attr> decision =
          MutateDecision(sketch.sites[at], parent.decisions[at], target_, rng);
      if (!decision) continue;
      Candidate child = parent;
      child.decisions[at] = std::move(*decision);
      if (Fits(sketch, child.decisions)) return child;
    }
    return absl::FailedPreconditionError(
        "the candidate has no neighbour in the design space");
  }

  absl::StatusOr<Candidate> Crossover(const Candidate& a, const Candidate& b,
                                      Rng& rng) const override {
    if (a.sketch != b.sketch) {
      return absl::FailedPreconditionError(
          "candidates of different sketches do not cross");
    }
    const Sketch& sketch = sketches_[a.sketch];
    for (int draw = 0; draw < kDraws; ++draw) {
      Candidate child = a;
      for (size_t i = 0; i < child.decisions.size(); ++i) {
        if (rng.Chance(0.5)) child.decisions[i] = b.decisions[i];
      }
      if (Fits(sketch, child.decisions)) return child;
    }
    return absl::FailedPreconditionError("no crossing fits the registers");
  }

  absl::StatusOr<schedule::Schedule> Apply(
      const Candidate& candidate) const override {
    return Apply(candidate, /*draft=*/false);
  }

  absl::StatusOr<ir::PrimFuncPtr> Draft(
      const Candidate& candidate) const override {
    TF_ASSIGN_OR_RETURN(const schedule::Schedule schedule,
                        Apply(candidate, /*draft=*/true));
    return schedule.module().Find(program_->name);
  }

  const schedule::PartialReplay& Start(int sketch) const override {
    return *sketches_[static_cast<size_t>(sketch)].start;
  }

  absl::StatusOr<schedule::Schedule> Finish(
      schedule::Schedule schedule) const override {
    const std::string& name = program_->name;
    if (target_.is_gpu()) {
      TF_RETURN_IF_ERROR(FinishForGpu(schedule, name, target_));
      return schedule;
    }
    TF_RETURN_IF_ERROR(schedule.EnterPostproc());
    TF_RETURN_IF_ERROR(RewriteTensorizeLayout(schedule, name));
    TF_RETURN_IF_ERROR(RewritePacking(schedule, name));
    TF_RETURN_IF_ERROR(RewriteParallelVectorizeUnroll(schedule, name, target_));
    TF_RETURN_IF_ERROR(RewritePrefetch(schedule, name, target_));
    TF_RETURN_IF_ERROR(RewriteReductions(schedule, name));
    TF_RETURN_IF_ERROR(RewriteStreaming(schedule, name));
    TF_RETURN_IF_ERROR(RewriteTensorize(schedule, name));
    return schedule;
  }

  bool has_postprocs(int sketch) const override {
    return !sketches_[static_cast<size_t>(sketch)].by_hand;
  }

  absl::StatusOr<Candidate> FromRecord(
      const schedule::Trace& trace) const override {
    const std::string fingerprint = TraceFingerprint(trace);
    for (size_t i = 0; i < sketches_.size(); ++i) {
      if (sketches_[i].fingerprint != fingerprint) continue;
      Candidate candidate;
      candidate.sketch = static_cast<int>(i);
      candidate.decisions = trace.Decisions();
      if (candidate.decisions.size() != sketches_[i].sites.size()) continue;
      return candidate;
    }
    return absl::NotFoundError("the trace is not of this design space");
  }

  absl::StatusOr<Candidate> Nearest(
      const schedule::Trace& trace) const override {
    const std::string fingerprint = TraceFingerprint(trace);
    const std::string kind = SketchKind(trace);
    std::vector<ir::Attr> decisions = trace.Decisions();
    absl::Status why_not =
        absl::NotFoundError("no sketch of this space is like the trace");
    // The sketch of the same text first, as some differ in a number alone.
    for (const bool same_text : {true, false}) {
      for (size_t i = 0; i < sketches_.size(); ++i) {
        const Sketch& sketch = sketches_[i];
        const bool same = sketch.fingerprint == fingerprint;
        if (same != same_text || (!same && sketch.kind != kind)) {
          continue;
        }
        auto candidate = NearestOf(sketch, decisions);
        if (candidate.ok()) {
          candidate->sketch = static_cast<int>(i);
          return candidate;
        }
        why_not = candidate.status();
      }
    }
    return why_not;
  }

  int64_t ApproximateSize() const override {
    int64_t total = 0;
    for (const Sketch& sketch : sketches_) {
      int64_t product = 1;
      for (const SampleSite& site : sketch.sites) {
        if (__builtin_mul_overflow(product, site.Count(), &product)) {
          return INT64_MAX;
        }
      }
      if (__builtin_add_overflow(total, product, &total)) return INT64_MAX;
    }
    return total;
  }

 private:
  // Of any sketch, or of this one.
  absl::StatusOr<Candidate> DrawFitting(std::optional<int> sketch,
                                        Rng& rng) const {
    absl::Status why_not;
    for (int draw = 0; draw < kDraws; ++draw) {
      auto candidate = Draw(sketch ? *sketch : DrawSketch(rng), rng);
      if (candidate.ok()) return candidate;
      why_not = candidate.status();
    }
    return absl::NotFoundError(
        absl::StrCat("no point of the design space fits the target",
                     std::string(why_not.message())));
  }

  int DrawSketch(Rng& rng) const {
    return static_cast<int>(target_.is_gpu() ? rng.Weighted(shares_)
                                             : rng.Below(sketches_.size()));
  }

  absl::StatusOr<schedule::Schedule> Apply(const Candidate& candidate,
                                           bool draft) const {
    if (candidate.sketch < 0 ||
        candidate.sketch >= static_cast<int>(sketches_.size())) {
      return absl::InvalidArgumentError("no such sketch");
    }
    const Sketch& sketch = sketches_[candidate.sketch];
    schedule::Trace trace = sketch.trace;
    TF_RETURN_IF_ERROR(trace.SetDecisions(candidate.decisions));
    TF_ASSIGN_OR_RETURN(schedule::PartialReplay replay, sketch.start);
    const size_t end = trace.instructions.size();
    TF_RETURN_IF_ERROR(draft ? replay.AdvanceAtOnce(trace, end)
                             : replay.Advance(trace, end));
    schedule::Schedule schedule = std::move(replay).Take();
    if (sketch.by_hand) return schedule;
    return Finish(std::move(schedule));
  }

  // One draw; FailedPrecondition where it does not pass the bounds.
  absl::StatusOr<Candidate> Draw(int index, Rng& rng) const {
    const Sketch& sketch = sketches_[static_cast<size_t>(index)];
    Candidate candidate;
    candidate.sketch = index;
    if (sketch.threads) {
      auto decisions = sketch.threads->Draw(sketch.sites, target_, rng);
      if (!decisions.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat(": ", decisions.status().message()));
      }
      candidate.decisions = *std::move(decisions);
      return candidate;
    }
    for (const SampleSite& site : sketch.sites) {
      candidate.decisions.push_back(DrawDecision(site, target_, rng));
    }
    if (Fits(sketch, candidate.decisions)) return candidate;
    return absl::FailedPreconditionError("'s registers");
  }

  absl::StatusOr<Candidate> NearestOf(
      const Sketch& sketch, const std::vector<ir::Attr>& decisions) const {
    Candidate candidate;
    if (decisions.size() != sketch.sites.size()) {
      return absl::NotFoundError("the trace has another number of decisions");
    }
    for (size_t i = 0; i < decisions.size(); ++i) {
      std::optional<ir::Attr> nearest =
          NearestDecision(sketch.sites[i], decisions[i]);
      if (!nearest) {
        return absl::NotFoundError(absl::StrCat(
            "decision ", i + 1, " of the trace has no counterpart"));
      }
      candidate.decisions.push_back(*std::move(nearest));
    }
    if (!Fits(sketch, candidate.decisions)) {
      return absl::NotFoundError("the trace's tiles do not fit here");
    }
    return candidate;
  }

  bool Fits(const Sketch& sketch,
            const std::vector<ir::Attr>& decisions) const {
    if (sketch.threads) return sketch.threads->Fits(decisions);
    // Of GPUs, the limits of a sketch by hand are checked when it is applied.
    return target_.is_gpu() || FitsRegisters(sketch.sites, decisions, target_);
  }

  absl::StatusOr<schedule::PartialReplay> StartOf(
      const schedule::Trace& trace) const {
    const auto& instructions = trace.instructions;
    const auto first = std::ranges::find_if(
        instructions,
        [](const schedule::Instruction& one) { return one.is_sample(); });
    schedule::PartialReplay start(module_, /*seed=*/0, floats_);
    TF_RETURN_IF_ERROR(start.Advance(
        trace, static_cast<size_t>(first - instructions.begin())));
    return start;
  }

  ir::PrimFuncPtr program_;
  target::Target target_;
  ir::FloatRule floats_;
  ir::IRModule module_;
  std::vector<Sketch> sketches_;
  std::vector<schedule::Trace> traces_;
  std::vector<double> shares_;  // of draws, for GPUs
};

// Every way to apply the rules: consumers first, so that a block is tiled
// before its producers look for a place under it.
absl::StatusOr<std::vector<schedule::Schedule>> GenerateSketches(
    const RuleContext& context, const ir::PrimFuncPtr& program,
    ir::FloatRule floats) {
  std::vector<schedule::Schedule> states{
      schedule::Schedule(ir::IRModule{{program}}, /*seed=*/0, floats)};
  for (const std::string& name : TopBlockNames(*program)) {
    TF_ASSIGN_OR_RETURN(states, ApplyRule(SplitReductions, context,
                                          std::move(states[0]), name));
  }
  const std::vector<std::string> names =
      TopBlockNames(*states[0].module().Find(context.function));
  const bool many = names.size() > kMaxBlocks;
  // Inlining first and everywhere: it decides what the consumers of a block
  // are.
  for (SketchRule* const rule :
       {AutoInline, SkipZeros, SplitGroups, Winograd, OnlineSoftmax,
        ChainProducts, AddRfactor, MultiLevelTilingWithIntrin, WidenOperands,
        MultiLevelTiling, TileReduction, TileTransposed}) {
    for (const std::string& name : names) {
      TF_RETURN_IF_ERROR(ApplyRule(rule, context, name, many, states));
    }
  }
  for (SketchRule* const rule : {FollowConsumers, ParallelVectorizeUnroll}) {
    TF_RETURN_IF_ERROR(ApplyRule(rule, context, "root", many, states));
  }
  // Partial results of rfactor are new blocks; each state has its own.
  for (schedule::Schedule& state : states) {
    for (const std::string& name :
         AllBlockNames(*state.module().Find(context.function))) {
      TF_ASSIGN_OR_RETURN(
          std::vector<schedule::Schedule> result,
          ApplyRule(RandomComputeLocation, context, std::move(state), name));
      state = std::move(result.front());
    }
  }
  return states;
}

}  // namespace

Alternatives ApplyRule(SketchRule* rule, const RuleContext& context,
                       schedule::Schedule schedule, const std::string& name) {
  RuleSite site{schedule, schedule, {}, nullptr};
  const auto block = site.schedule.GetBlock(name, context.function);
  if (!block.ok()) return std::vector{std::move(schedule)};
  site.block = *block;
  TF_ASSIGN_OR_RETURN(site.node, site.schedule.Get(*block));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::Schedule> alternatives,
                      rule(context, std::move(site)));
  if (alternatives.empty()) alternatives.push_back(std::move(schedule));
  return alternatives;
}

absl::Status ApplyRule(SketchRule* rule, const RuleContext& context,
                       const std::string& name, bool first_only,
                       std::vector<schedule::Schedule>& states) {
  std::vector<schedule::Schedule> next;
  for (schedule::Schedule& state : states) {
    if (next.size() == kMaxSketches) break;
    TF_ASSIGN_OR_RETURN(std::vector<schedule::Schedule> alternatives,
                        ApplyRule(rule, context, state, name));
    if (first_only) alternatives.resize(1, state);
    for (schedule::Schedule& alternative : alternatives) {
      if (next.size() < kMaxSketches) next.push_back(std::move(alternative));
    }
  }
  states = std::move(next);
  return absl::OkStatus();
}

uint64_t Candidate::Fingerprint() const {
  uint64_t hash = static_cast<uint64_t>(sketch);
  const auto mix = [&](uint64_t value) {
    hash = MixBits(hash + value + kSplitMixStep);
  };
  for (const ir::Attr& decision : decisions) {
    if (const ir::AttrList* list = decision.AsList()) {
      mix(list->size() + 1);
      for (const ir::Attr& item : *list) {
        mix(static_cast<uint64_t>(item.AsInt().value_or(INT64_MIN)));
      }
    } else {
      mix(0);
      mix(static_cast<uint64_t>(decision.AsInt().value_or(INT64_MIN)));
    }
  }
  return hash;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::Create(
    ir::PrimFuncPtr program, const target::Target& target,
    ir::FloatRule floats) {
  const RuleContext context{program->name, target};
  auto space = std::make_unique<DesignSpaceImpl>(program, target, floats);
  if (target.is_gpu()) {
    TF_ASSIGN_OR_RETURN(const std::vector<GpuSketch> sketches,
                        GenerateGpuSketches(context, program, floats));
    for (const GpuSketch& sketch : sketches) {
      TF_RETURN_IF_ERROR(space->AddSketch(sketch.schedule.trace(),
                                          /*by_hand=*/false, sketch.share));
    }
    return space;
  }
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::Schedule> sketches,
                      GenerateSketches(context, program, floats));
  for (const schedule::Schedule& sketch : sketches) {
    TF_RETURN_IF_ERROR(space->AddSketch(sketch.trace(), /*by_hand=*/false));
  }
  return space;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::FromTrace(
    ir::PrimFuncPtr program, const target::Target& target,
    schedule::Trace sketch, ir::FloatRule floats) {
  TF_RETURN_IF_ERROR(schedule::CheckCapabilities(sketch, target.capabilities));
  // Sites are read off a replay with decisions, drawn where there are none.
  auto space = std::make_unique<DesignSpaceImpl>(program, target, floats);
  TF_RETURN_IF_ERROR(space->AddSketch(std::move(sketch), /*by_hand=*/true));
  return space;
}

}  // namespace tilefarm::space

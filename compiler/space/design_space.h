// What may be tried for a workload on a target: sketches (traces whose samples
// carry no decisions), how their decisions are drawn and mutated, and the
// postprocs that finish a trace.
//
//   rules (sketch_rules.h)   program -> sketches
//   Sample/Mutate/Crossover  sketch -> decisions
//   Apply                    decisions -> scheduled program, postprocs included
#ifndef TILEFARM_COMPILER_SPACE_DESIGN_SPACE_H_
#define TILEFARM_COMPILER_SPACE_DESIGN_SPACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

// A point of the space.
struct Candidate {
  int sketch = 0;                   // index into DesignSpace::sketches()
  std::vector<ir::Attr> decisions;  // one a sample instruction

  // 64 bits of both, the same on every platform: the key of de-duplication.
  uint64_t Fingerprint() const;
  bool operator==(const Candidate&) const = default;
};

// Immutable after Create; every method is thread-safe.
class DesignSpace {
 public:
  // Applies the rules for the target's kind to the program. A program that no
  // rule improves has one sketch without samples. What `floats` rules out is
  // not in the space.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> Create(
      ir::PrimFuncPtr program, const target::Target& target,
      ir::FloatRule floats = ir::FloatRule::kMayDiffer);
  // One sketch, given by hand (`tune run --space FILE`). Decisions that its
  // text carries are kept; the others are sampled.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> FromTrace(
      ir::PrimFuncPtr program, const target::Target& target,
      schedule::Trace sketch, ir::FloatRule floats = ir::FloatRule::kMayDiffer);
  virtual ~DesignSpace() = default;

  virtual const ir::PrimFuncPtr& program() const = 0;
  virtual const std::vector<schedule::Trace>& sketches() const = 0;
  // A random point that passes the static bounds on tiles; Apply may still
  // find it illegal. NotFound where no draw passes.
  virtual absl::StatusOr<Candidate> Sample(Rng& rng) const = 0;
  // The same, of one sketch.
  virtual absl::StatusOr<Candidate> SampleOf(int sketch, Rng& rng) const = 0;
  // A neighbour by one random mutator (tile sizes, the order of tiles, compute
  // location, unroll depth, parallel extent). FailedPrecondition where the
  // sketch has nothing to mutate or no neighbour passes the bounds.
  virtual absl::StatusOr<Candidate> Mutate(const Candidate& parent,
                                           Rng& rng) const = 0;
  // Decisions from either parent; FailedPrecondition for different sketches.
  virtual absl::StatusOr<Candidate> Crossover(const Candidate& a,
                                              const Candidate& b,
                                              Rng& rng) const = 0;
  // The scheduled program with its complete trace, postprocs included.
  // FailedPrecondition where the candidate is illegal for the program.
  virtual absl::StatusOr<schedule::Schedule> Apply(
      const Candidate& candidate) const = 0;
  // The program alone, for its features, in less time: the sketch's steps are
  // checked together (PartialReplay::AdvanceAtOnce), so that Apply may still
  // find the candidate illegal.
  virtual absl::StatusOr<ir::PrimFuncPtr> Draft(
      const Candidate& candidate) const = 0;
  // The parts of Apply for a sketch that has postprocs: what stands before its
  // first sample, and the postprocs on what the whole sketch has made.
  virtual const schedule::PartialReplay& Start(int sketch) const = 0;
  virtual absl::StatusOr<schedule::Schedule> Finish(
      schedule::Schedule schedule) const = 0;
  // Whether Apply runs the postprocs after this sketch; not where the sketch
  // was given by hand, complete as it stands.
  virtual bool has_postprocs(int sketch) const = 0;
  // The candidate behind a complete trace made by Apply; NotFound otherwise.
  virtual absl::StatusOr<Candidate> FromRecord(
      const schedule::Trace& trace) const = 0;
  // The candidate nearest to a complete trace of another program's space, where
  // the programs differ in numbers (sizes of buffers, extents) and in what is
  // inlined: a sketch that does the same, its tiles adapted to the extents
  // here. NotFound: no sketch is like the trace's, or a decision has no
  // counterpart. Apply may still find it illegal.
  virtual absl::StatusOr<Candidate> Nearest(
      const schedule::Trace& trace) const = 0;
  // The number of points, or INT64_MAX where it does not fit. Counts points
  // that the bounds or Apply reject, too.
  virtual int64_t ApproximateSize() const = 0;
};

// The heuristic schedule used without records: fuse and parallelise outer
// loops, vectorise inner ones, tile reductions. Never fails on a legal program.
absl::StatusOr<schedule::Schedule> DefaultSchedule(const ir::IRModule& module,
                                                   const target::Target& target,
                                                   ir::FloatRule floats);

// The same around calls of what these libraries (base/device_libraries.h) have
// for blocks of the function: one schedule a kernel, none where there is
// nothing for it. For devices that have them, where the user permits it.
std::vector<schedule::Schedule> LibrarySchedules(
    const ir::PrimFuncPtr& function, const target::Target& target,
    const std::vector<std::string>& libraries, ir::FloatRule floats);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_DESIGN_SPACE_H_

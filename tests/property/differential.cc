#include "tests/property/differential.h"

#include <malloc.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/driver/zero_terms.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/winograd_transforms.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"
#include "tests/property/compiled_library.h"
#include "tests/support/close_to.h"

namespace tilefarm::property {
namespace {

// Floats above this may have been rounded during the computation.
constexpr double kExactBelow = 1e6;
constexpr int64_t kMaxSteps = 4'000'000;

// Fills memory that the next call will use as its stack.
[[gnu::noinline]] void FillStack(uint8_t fill) {
  constexpr size_t kBytes = size_t{192} << 10;
  uint8_t below[kBytes];
  std::memset(below, fill, kBytes);
  asm volatile("" : : "r"(below) : "memory");  // prevents its removal
}

// Calls a kernel whose workspace, on the stack and on the heap, starts with
// bytes that depend on `seed`. The stacks of the kernel's threads are not
// filled.
int CallWithFill(void* symbol, std::vector<Bytes>& buffers, uint64_t seed) {
  std::vector<void*> arguments;
  for (Bytes& bytes : buffers) arguments.push_back(bytes.data());
  Rng rng(seed);
  // 0 would turn glibc's filling off.
  const auto fill = static_cast<uint8_t>(rng.Between(1, 255));
  mallopt(M_PERTURB, fill);
  FillStack(static_cast<uint8_t>(~fill));
  const int result = CallFunction(symbol, arguments);
  mallopt(M_PERTURB, 0);
  return result;
}

// Lowering also does what it does for large operands.
absl::StatusOr<driver::Artifact> CompileAsLarge(
    const std::vector<Variant>& variants, target::Target target) {
  target.caches.l1_bytes = 64;
  return CompileAll(variants, target);
}

CaseReport Differ(const Variant& variant, std::string what) {
  return {Verdict::kDiffer, variant.name, std::move(what), variant.trace};
}

// Interprets the scheduled programs. Tiles far beyond the extents make a
// program that runs too long for that: `too_long`.
std::optional<CaseReport> InterpretVariant(const Case& c,
                                           const ir::PrimFunc& program,
                                           const Expected& want,
                                           const Variant& variant,
                                           bool* too_long) {
  *too_long = false;
  if (const absl::Status status = ir::Verify(*variant.program); !status.ok()) {
    return Differ(variant, absl::StrCat("does not verify: ",
                                        std::string(status.message())));
  }
  std::vector<Bytes> got = SmallInputs(program, c.input_seed);
  ir::InterpretOptions options;
  options.reverse_concurrent_loops = true;
  const absl::Status status = Interpret(*variant.program, got, options);
  *too_long = status.code() == absl::StatusCode::kResourceExhausted;
  if (*too_long) return std::nullopt;
  if (!status.ok()) {
    return Differ(variant, absl::StrCat("interpreter: ", status.ToString()));
  }
  const std::string difference =
      DifferenceFromExpected(program, want, got, SpreadOfTrace(variant.trace));
  if (!difference.empty()) {
    return Differ(variant, absl::StrCat("interpreted: ", difference));
  }
  if (!variant.keeps_floats || want.special.empty()) return std::nullopt;
  got = SpecialInputs(program, c.input_seed);
  if (const absl::Status run = Interpret(*variant.program, got); !run.ok()) {
    return Differ(variant, absl::StrCat("interpreter: ", run.ToString()));
  }
  const std::string special =
      Difference(program, want.special, got, /*exact=*/false);
  if (special.empty()) return std::nullopt;
  return Differ(variant,
                absl::StrCat("interpreted, on special values: ", special));
}

// Whether a maximum or minimum of floats is updated in place: which of its
// operands are not numbers decides what it is, so the order does.
bool HasExtremumOfFloats(const ir::PrimFunc& program) {
  bool has = false;
  ir::PreOrder(program.body, [&](const ir::Stmt& stmt) {
    const auto* store = ir::As<ir::StoreNode>(stmt);
    if (store == nullptr || !store->buffer->dtype.is_float()) return true;
    const auto* value = ir::As<ir::BinaryNode>(store->value);
    if (value == nullptr ||
        (value->op != ir::BinaryOp::kMax && value->op != ir::BinaryOp::kMin)) {
      return true;
    }
    for (const ir::Expr& side : {value->a, value->b}) {
      const auto* load = ir::As<ir::LoadNode>(side);
      has |= load != nullptr && load->buffer == store->buffer;
    }
    return true;
  });
  return has;
}

// Applies the trace's schedule; nullopt if it is rejected. A trace must replay
// to the same trace.
std::optional<CaseReport> Replay(const ir::PrimFuncPtr& program,
                                 const std::string& text, size_t number,
                                 std::vector<Variant>& variants) {
  Variant variant{absl::StrCat("trace ", number), nullptr, text};
  const auto trace = schedule::Trace::Parse(text);
  if (!trace.ok()) {
    return Differ(variant, absl::StrCat("the trace does not parse: ",
                                        std::string(trace.status().message())));
  }
  auto replayed = schedule::Replay(*trace, ir::IRModule{{program}});
  if (!replayed.ok()) return std::nullopt;
  variant.program = replayed->module().functions[0];
  variants.push_back(std::move(variant));
  return std::nullopt;
}

// Thread bindings are for GPUs: only the interpreter runs those here.
bool RunsOnThisMachine(const Variant& variant) {
  return !absl::StrContains(variant.trace, "sch.bind(");
}

// Compiles the variants together and runs each. Loads the library anew for
// each, so that no variant gets the workspace that another one filled.
std::optional<CaseReport> RunVariants(const Case& c,
                                      const ir::PrimFunc& program,
                                      const Expected& want,
                                      const std::vector<Variant>& variants,
                                      const target::Target& target) {
  const auto artifact = CompileAsLarge(variants, target);
  if (!artifact.ok()) {
    for (const Variant& variant : variants) {
      const auto alone = CompileAsLarge({variant}, target);
      if (!alone.ok()) {
        return Differ(variant, absl::StrCat("does not compile: ",
                                            alone.status().ToString()));
      }
    }
    return Differ(variants.front(),
                  absl::StrCat("the variants do not compile together: ",
                               artifact.status().ToString()));
  }
  for (size_t i = 0; i < variants.size(); ++i) {
    CompiledLibrary library;
    if (const absl::Status status = library.Load(artifact->shared_object);
        !status.ok()) {
      return Differ(variants.back(), std::string(status.message()));
    }
    void* symbol = library.Find(absl::StrCat("f", i));
    if (symbol == nullptr) return Differ(variants[i], "has no symbol");
    std::vector<Bytes> got = SmallInputs(program, c.input_seed);
    if (CallWithFill(symbol, got, c.input_seed + i) != 0) {
      return Differ(variants[i], "returns an error");
    }
    const std::string difference = DifferenceFromExpected(
        program, want, got, SpreadOfTrace(variants[i].trace));
    if (!difference.empty()) {
      return Differ(variants[i], absl::StrCat("compiled: ", difference));
    }
    if (!variants[i].keeps_floats || want.special.empty()) continue;
    got = SpecialInputs(program, c.input_seed);
    if (CallWithFill(symbol, got, c.input_seed + i) != 0) {
      return Differ(variants[i], "returns an error on special values");
    }
    const std::string special =
        Difference(program, want.special, got, /*exact=*/false);
    if (!special.empty()) {
      return Differ(variants[i],
                    absl::StrCat("compiled, on special values: ", special));
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<driver::Artifact> CompileAll(
    const std::vector<Variant>& variants, const target::Target& target) {
  ir::IRModule module;
  for (size_t i = 0; i < variants.size(); ++i) {
    ir::PrimFunc function = *variants[i].program;
    function.name = absl::StrCat("f", i);
    function.attrs["global_symbol"] = ir::Attr(function.name);
    module.functions.push_back(
        std::make_shared<const ir::PrimFunc>(std::move(function)));
  }
  driver::CompileOptions options;
  options.target = target;
  return driver::Compile(module, options);
}

std::vector<Bytes> SmallInputs(const ir::PrimFunc& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Bytes> buffers;
  for (const ir::Buffer& param : program.params) {
    const int64_t n = param->num_elements();
    Bytes bytes(static_cast<size_t>(n * param->dtype.bytes()));
    for (int64_t i = 0; i < n; ++i) {
      int64_t value = rng.Between(-3, 3);
      if (param->dtype.is_uint()) value = std::abs(value);
      if (param->dtype.is_bool()) value = value > 0 ? 1 : 0;
      if (param->dtype.is_float()) {
        ir::WriteFloat(bytes.data(), i, param->dtype,
                       static_cast<double>(value));
      } else {
        ir::WriteInt(bytes.data(), i, param->dtype, value);
      }
    }
    buffers.push_back(std::move(bytes));
  }
  return buffers;
}

std::vector<Bytes> SpecialInputs(const ir::PrimFunc& program, uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {kInfinity, -kInfinity,
                                 std::numeric_limits<double>::quiet_NaN()};
  std::vector<Bytes> buffers = SmallInputs(program, seed);
  Rng rng(seed ^ 0x5eed);
  for (size_t p = 0; p < buffers.size(); ++p) {
    const ir::Buffer& param = program.params[p];
    for (int64_t i = 0; i < param->num_elements(); ++i) {
      if (!param->dtype.is_float() || !rng.Chance(0.1)) continue;
      ir::WriteFloat(buffers[p].data(), i, param->dtype,
                     kSpecial[rng.Below(std::size(kSpecial))]);
    }
  }
  return buffers;
}

absl::Status Interpret(const ir::PrimFunc& program, std::vector<Bytes>& buffers,
                       ir::InterpretOptions options) {
  std::vector<std::span<std::byte>> spans(buffers.begin(), buffers.end());
  options.max_steps = kMaxSteps;
  return ir::Interpret(program, spans, options);
}

std::string Difference(const ir::PrimFunc& program,
                       const std::vector<Bytes>& want,
                       const std::vector<Bytes>& got, bool exact,
                       const std::vector<std::vector<double>>* bounds) {
  for (size_t p = 0; p < want.size(); ++p) {
    const ir::DataType type = program.params[p]->dtype;
    const int64_t n = program.params[p]->num_elements();
    const size_t size = static_cast<size_t>(type.bytes());
    const double loose = type.bits == 16 ? 2e-2 : 1e-4;
    for (int64_t i = 0; i < n; ++i) {
      const size_t at = static_cast<size_t>(i) * size;
      if (std::memcmp(&want[p][at], &got[p][at], size) == 0) continue;
      const std::string name =
          absl::StrCat(program.params[p]->name, "[", i, "]");
      if (!type.is_float()) {
        return absl::StrCat(name, " is ", ir::ReadInt(got[p].data(), i, type),
                            " instead of ",
                            ir::ReadInt(want[p].data(), i, type));
      }
      const double x = ir::ReadFloat(want[p].data(), i, type);
      const double y = ir::ReadFloat(got[p].data(), i, type);
      const double tolerance = exact && std::abs(x) <= kExactBelow ? 0 : loose;
      if (CloseTo(y, x, tolerance, tolerance)) continue;
      if (!exact && bounds != nullptr && !(*bounds)[p].empty() &&
          std::isfinite((*bounds)[p][static_cast<size_t>(i)]) &&
          CloseTo(y, x, 2 * (*bounds)[p][static_cast<size_t>(i)], 0)) {
        continue;
      }
      return absl::StrCat(name, " is ", y, " instead of ", x);
    }
  }
  return "";
}

// An element is infinite in one and not a number in the other: it overflowed in
// both, and which operation did so first decides. The oracle's accumulators
// have more bits.
bool OverflowsDifferently(const ir::PrimFunc& program,
                          const std::vector<Bytes>& a,
                          const std::vector<Bytes>& b) {
  for (size_t p = 0; p < program.params.size(); ++p) {
    const ir::DataType type = program.params[p]->dtype;
    if (!type.is_float()) continue;
    for (int64_t i = 0; i < program.params[p]->num_elements(); ++i) {
      const double x = ir::ReadFloat(a[p].data(), i, type);
      const double y = ir::ReadFloat(b[p].data(), i, type);
      if (std::isnan(x) ? std::isinf(y) : std::isinf(x) && std::isnan(y)) {
        return true;
      }
    }
  }
  return false;
}

std::string DifferenceFromExpected(const ir::PrimFunc& program,
                                   const Expected& want,
                                   const std::vector<Bytes>& got,
                                   double spread) {
  const std::string difference =
      Difference(program, want.interpreted, got, want.exact && spread == 0,
                 &want.oracle.bounds);
  if (!difference.empty()) return difference;
  const std::string from_oracle =
      testing::DifferenceFromOracle(program, want.oracle, got, spread);
  return from_oracle.empty() ? "" : absl::StrCat("oracle: ", from_oracle);
}

double SpreadOfTrace(const std::string& text) {
  double spread = 0;
  const auto trace = schedule::Trace::Parse(text);
  if (!trace.ok()) return spread;
  for (const schedule::Instruction& instruction : trace->instructions) {
    if (instruction.primitive != "winograd") continue;
    for (const auto& [name, arg] : instruction.args) {
      const auto* tile = std::get_if<ir::Attr>(&arg.value);
      if (name != "tile" || tile == nullptr) continue;
      spread = std::max(spread, schedule::WinogradSpread(static_cast<int>(
                                    tile->AsInt().value_or(0))));
    }
  }
  return spread;
}

std::optional<CaseReport> InterpretExpected(const Case& c,
                                            const ir::PrimFunc& program,
                                            Expected& want) {
  want.interpreted = SmallInputs(program, c.input_seed);
  std::feclearexcept(FE_INEXACT);
  if (const absl::Status status = Interpret(program, want.interpreted);
      !status.ok()) {
    return CaseReport{Verdict::kRefused, "interpreter", status.ToString(), ""};
  }
  want.exact = c.exact && std::fetestexcept(FE_INEXACT) == 0;
  // A program is undefined if it reads what nothing wrote, or if its results
  // depend on the order of iterations that it declares concurrent.
  ir::InterpretOptions strict;
  strict.refuse_unwritten = true;
  strict.reverse_concurrent_loops = true;
  std::vector<Bytes> other = SmallInputs(program, c.input_seed);
  if (!Interpret(program, other, strict).ok() ||
      !Difference(program, want.interpreted, other, want.exact).empty()) {
    return CaseReport{Verdict::kUndefined, "", "", ""};
  }

  if (!HasExtremumOfFloats(program)) {
    want.special = SpecialInputs(program, c.input_seed);
    if (!Interpret(program, want.special).ok()) want.special.clear();
    // Special values may reach what other values do not.
    if (!want.special.empty()) {
      other = SpecialInputs(program, c.input_seed);
      if (!Interpret(program, other, strict).ok() ||
          !Difference(program, want.special, other, want.exact).empty()) {
        return CaseReport{Verdict::kUndefined, "", "", ""};
      }
    }
  }
  return std::nullopt;
}

std::optional<CaseReport> AddOracle(const Case& c,
                                    const ir::PrimFuncPtr& program,
                                    Expected& want) {
  const Variant reference{"oracle", program, ""};
  const auto oracle = testing::HostOracle::Compile(program);
  if (!oracle.ok()) return Differ(reference, oracle.status().ToString());
  auto reference_run = oracle->Run(SmallInputs(*program, c.input_seed));
  if (!reference_run.ok()) {
    return Differ(reference, reference_run.status().ToString());
  }
  want.oracle = *std::move(reference_run);
  if (const std::string difference = testing::DifferenceFromOracle(
          *program, want.oracle, want.interpreted);
      !difference.empty()) {
    if (OverflowsDifferently(*program, want.oracle.buffers, want.interpreted)) {
      return CaseReport{Verdict::kUndefined, "", "", ""};
    }
    return Differ(reference,
                  absl::StrCat("the interpreter differs: ", difference));
  }
  return std::nullopt;
}

CaseReport CheckCase(const Case& c) {
  const Variant as_is_name{"as-is", nullptr, ""};
  const auto parsed = ir::ParseFunction(c.text);
  if (!parsed.ok()) {
    return {Verdict::kRefused, "parser", std::string(parsed.status().message()),
            ""};
  }
  const ir::PrimFuncPtr program = *parsed;
  const std::string printed = ir::Print(*program);
  const auto again = ir::ParseFunction(printed);
  if (!again.ok()) {
    return Differ(as_is_name, absl::StrCat("what is printed does not parse: ",
                                           again.status().ToString()));
  }
  if (ir::Print(**again) != printed) {
    return Differ(as_is_name,
                  absl::StrCat("printing and parsing changes the program:\n",
                               printed, "becomes\n", ir::Print(**again)));
  }

  Expected want;
  if (auto report = InterpretExpected(c, *program, want)) return *report;

  std::vector<Variant> variants{{"as-is", program, "", /*keeps_floats=*/true}};
  const auto target = target::Parse("host,cores=2");
  if (!target.ok()) return Differ(as_is_name, target.status().ToString());
  const auto as_is = CompileAsLarge(variants, *target);
  // The search of the default schedule takes longer than all the rest: every
  // third program has it, the others its start.
  const ir::PrimFuncPtr apart = driver::WithZeroTermsApart(program);
  const auto draft =
      c.input_seed % 3 == 0
          ? driver::DraftSchedule(apart, *target, ir::FloatRule::kAsWritten)
          : space::DefaultSchedule(ir::IRModule{{apart}}, *target,
                                   ir::FloatRule::kAsWritten);
  if (!as_is.ok()) {
    // If the compiler rejects the unscheduled program, it must reject every
    // schedule of it.
    if (as_is.status().code() == absl::StatusCode::kInvalidArgument) {
      if (draft.ok()) {
        const Variant scheduled{"default", draft->module().functions[0], ""};
        if (CompileAsLarge({scheduled}, *target).ok()) {
          return Differ(scheduled,
                        absl::StrCat("compiles, though as-is is refused: ",
                                     std::string(as_is.status().message())));
        }
      }
      return {Verdict::kRefused, "as-is", std::string(as_is.status().message()),
              ""};
    }
    return Differ(variants[0], absl::StrCat("does not compile: ",
                                            as_is.status().ToString()));
  }
  if (!draft.ok()) {
    return Differ({"default", nullptr, ""}, draft.status().ToString());
  }
  if (auto report = AddOracle(c, program, want)) return *report;
  variants.push_back({"default", draft->module().functions[0],
                      draft->trace().Print(),
                      /*keeps_floats=*/true});
  for (size_t i = 0; i < c.traces.size(); ++i) {
    if (auto report = Replay(program, c.traces[i], i, variants)) return *report;
  }
  std::vector<Variant> to_run{variants[0]};
  for (size_t i = 1; i < variants.size(); ++i) {
    bool too_long;
    if (auto report =
            InterpretVariant(c, *program, want, variants[i], &too_long)) {
      return *report;
    }
    if (!too_long && RunsOnThisMachine(variants[i])) {
      to_run.push_back(variants[i]);
    }
  }
  if (auto report = RunVariants(c, *program, want, to_run, *target)) {
    return *report;
  }
  return {};
}

}  // namespace tilefarm::property

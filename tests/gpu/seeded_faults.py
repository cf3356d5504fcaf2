#!/usr/bin/env python3
"""Puts deliberate faults into the path of GPUs and counts how many the tests detect.

    tests/gpu/seeded_faults.py [--build DIR] [--seconds S] [--only NAME ...]

As tests/property/seeded_faults.py, whose code it uses: for each fault,
gpu_kernels_property_test, program_fuzz --gpu, as PTX and in the simulator, and
the tests of products, convolutions and attention run until one of them fails;
program_fuzz starts no new programs after S seconds.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "property"))
import seeded_faults  # noqa: E402

PTX = ["--gpu-target", "cuda:sm_90a"]
FOUND = ["502", "567", "633", "659"]  # as in tests/property/CMakeLists.txt
FOUND_SIMULATED = ["30112068", "30112179", "8100446"]

LOWER = "compiler/lower/"
CODEGEN = "compiler/codegen/"

# Name, source, what stands there once, and what stands there with the fault.
FAULTS = [
    # Barriers.
    ("barrier-none", LOWER + "insert_barriers.cc",
     "    if (!Conflict(pending, after)) return false;",
     "    if (!Conflict(pending, after) || axes_.size() < 9) return false;"),
    ("barrier-write-after-read", LOWER + "insert_barriers.cc",
     "if (a.buffer != b.buffer || (!a.write && !b.write)) return false;",
     "if (a.buffer != b.buffer || !a.write) return false;"),
    ("barrier-loop-carried", LOWER + "insert_barriers.cc",
     "if (!ir::IsConstInt(loop.extent, 1)) {",
     "if (!ir::IsConstInt(loop.extent, 1) && axes_.empty()) {"),
    ("barrier-second-pass", LOWER + "insert_barriers.cc",
     "for (int pass = 0; pass < 2; ++pass) {",
     "for (int pass = 2; pass < 2; ++pass) {"),
    ("barrier-first-only", LOWER + "insert_barriers.cc",
     "if (a.first_only.contains(axis.var) && b.first_only.contains(axis.var)) {",
     "if (a.first_only.contains(axis.var) || b.first_only.contains(axis.var)) {"),
    ("barrier-versions", LOWER + "insert_barriers.cc",
     "*distance % *count != 0) {",
     "*distance % *count != *count) {"),
    ("barrier-in-vectors", LOWER + "vectorize_loops.cc",
     "        return stmt;\n      default:",
     "        return ir::NoOp();\n      default:"),
    ("blocks-left-out", LOWER + "map_threads.cc",
     "launch_.extents[static_cast<size_t>(*axis)] == 1) {",
     "ir::IsConstInt(loop->extent, 1)) {"),
    ("softmax-padding", "compiler/schedule/pad_softmax.cc",
     "ir::LT(index, ir::IntConst(DomainSize(of)))",
     "ir::LE(index, ir::IntConst(DomainSize(of)))"),
    ("shared-is-each-ones", "compiler/schedule/independence.cc",
     "ir::ScopeOf(*buffer) == ir::MemoryScope::kShared) {",
     "ir::ScopeOf(*buffer) == ir::MemoryScope::kWarp) {"),
    ("barrier-in-flight", LOWER + "insert_barriers.cc",
     "std::erase_if(pending, [](const SharedAccess& a) { return !a.in_flight; });",
     "std::erase_if(pending, [](const SharedAccess& a) { return a.buffer != nullptr; });"),
    ("barrier-after-if", LOWER + "insert_barriers.cc",
     "    first_only_ = outer;\n    Append(inside, pending);",
     "    first_only_ = outer;"),
    # What the threads of a block, or one of them, share in all iterations.
    ("shared-of-all-lanes", LOWER + "pipeline.cc",
     """          {"LowerWarpMatrices", OnBody([&target]""",
     """          {"HoistShared", OnBody(HoistShared)},
          {"LowerWarpMatrices", OnBody([&target]"""),
    ("registers-of-gaps", LOWER + "allocation_regions.cc",
     "term.scale > dense) continue;",
     "term.scale > 8 * dense) continue;"),
    ("registers-beyond", LOWER + "allocation_regions.cc",
     "if (most >= dense) return false;",
     "if (most > dense) return false;"),
    # Conditions of sums in registers.
    ("relaxed-bound", LOWER + "relax_guards.cc",
     "*bound >= store.buffer->shape[d] &&",
     "*bound >= 1 &&"),
    ("relaxed-global", LOWER + "relax_guards.cc",
     "scope == ir::MemoryScope::kShared);",
     "scope != ir::MemoryScope::kWarp);"),
    ("relaxed-room", LOWER + "relax_guards.cc",
     "shape[d] = std::max(shape[d], reach.hi + 1);",
     "shape[d] = std::max(shape[d], reach.hi);"),
    ("placed-guarded", LOWER + "place_allocations.cc",
     "      return SameExpr(own, condition);",
     "      return SameExpr(own, condition) || own != nullptr;"),
    # Pipelines.
    ("wait-too-few", LOWER + "pipeline_loops.cc",
     "{ir::IntConst(depth - 1)}", "{ir::IntConst(depth)}"),
    ("version-index", LOWER + "pipeline_loops.cc",
     "const int64_t versions = depth + 1;",
     "const int64_t versions = depth > 1 ? depth : depth + 1;"),
    ("prologue-short", LOWER + "pipeline_loops.cc",
     "for (int64_t t = 0; t < depth; ++t) {",
     "for (int64_t t = 0; t + 1 < depth || t < 1; ++t) {"),
    ("prefetch-past-end", LOWER + "pipeline_loops.cc",
     "ir::MakeIf(ir::LT(later, loop.extent), at(stmts, later));",
     "ir::MakeIf(ir::LE(later, loop.extent), at(stmts, later));"),
    ("async-read-at-once", LOWER + "pipeline_loops.cc",
     "read_at_once_.contains(s.buffer.get()) ||",
     "(read_at_once_.contains(s.buffer.get()) && load == nullptr) ||"),
    ("fetch-numbers", LOWER + "pipeline_loops.cc",
     "numbers_[&store] = number + elements_;",
     "numbers_[&store] = number;"),
    # Threads.
    ("guard-of-smaller-extent", LOWER + "map_threads.cc",
     "if (*ir::AsInt(s.extent) < launch_.extents[i]) {",
     "if (*ir::AsInt(s.extent) + 2 < launch_.extents[i]) {"),
    ("first-thread", LOWER + "map_threads.cc",
     "(!bound_[i] ||\n", "((!bound_[i] && is_block) ||\n"),
    ("shared-first-block", LOWER + "map_threads.cc",
     "!(shared && is_block)", "!(shared && is_block && bound_[i])"),
    ("one-copy-for-owners", LOWER + "map_threads.cc",
     "if (!owners.empty()) return", "if (owners.size() > 1) return"),
    ("local-of-others", LOWER + "map_threads.cc",
     "const bool crosses = CrossesThreads(s) || SomeThreadsStore(s);",
     "const bool crosses = CrossesThreads(s);"),
    ("vthread-dropped", LOWER + "legalize_threads.cc",
     "return uses ? Around(self) : self;",
     "return uses && !s.iters.empty() && s.init == nullptr\n"
     "               ? WithBody(ForNode(loop_.var, loop_.min,\n"
     "                                  ir::IntConst(1), loop_.for_kind,\n"
     "                                  self, {}, loop_.thread_tag),\n"
     "                          ForKind::kUnrolled, self)\n"
     "               : uses ? Around(self) : self;"),
    # Reductions.
    ("partial-not-reset", LOWER + "lower_thread_reductions.cc",
     "stmts.push_back(ir::MakeStore(partial, {zero}, identity));",
     "stmts.push_back(ir::MakeStore(\n"
     "        partial, {zero},\n"
     "        threads_.empty() ? identity : ir::Load(partial, {zero})));"),
    ("shuffle-mask", LOWER + "element_update.cc",
     "for (int64_t mask = group / 2; mask > 0; mask /= 2) {",
     "for (int64_t mask = group / 2; mask > 1; mask /= 2) {"),
    ("exchange-groups", LOWER + "lower_thread_reductions.cc",
     "stmts.push_back(ir::MakeFor(other, ir::IntConst(groups),",
     "stmts.push_back(ir::MakeFor(other, ir::IntConst(groups - 1),"),
    ("exchange-other-axes", LOWER + "lower_thread_reductions.cc",
     "if (outer == &s || outer->thread_tag == s.thread_tag) continue;",
     "if (outer != nullptr) continue;"),
    ("sum-without-guard", LOWER + "lower_thread_reductions.cc",
     "if (!of_term) exists = ir::And(exists, condition);",
     "if (of_term) exists = ir::And(exists, ir::BoolConst(true));"),
    ("sum-by-all", LOWER + "lower_thread_reductions.cc",
     "exists = ir::And(ir::EQ(Expr(s.var), zero), exists);",
     "exists = ir::And(ir::GE(Expr(s.var), zero), exists);"),
    ("sum-of-several-elements", LOWER + "lower_thread_reductions.cc",
     "        inner != nullptr && !IsOneElement(s.body, *store)) {",
     "        inner != nullptr && inner->annotations.size() > 9) {"),
    ("sum-of-another-order", LOWER + "element_update.cc",
     "  if (chain->op != op && !subtracts) return std::nullopt;",
     "  if (chain->op != op || !subtracts) return std::nullopt;"),
    # Rows of quads.
    ("quad-shuffles", LOWER + "spread_over_quads.cc",
     "CombineInGroup(update, partial, ir::kQuadLanes, stmts);",
     "CombineInGroup(update, partial, ir::kQuadLanes / 2, stmts);"),
    ("quad-own-index", LOWER + "row_quad_columns.cc",
     "part.group * (coefficient * loop.pair * loop.lanes / kShare);",
     "part.group * (coefficient * loop.pair * loop.lanes / 8);"),
    ("quad-fetch", LOWER + "spread_over_quads.cc",
     "Expr(loop->var) * ir::kQuadLanes + part;",
     "Expr(loop->var) * ir::kQuadLanes;"),
    ("quad-fetch-of-rows", LOWER + "spread_over_quads.cc",
     "const bool apart = ReadsLocal(stmt);",
     "const bool apart = false;"),
    ("quad-fragment", LOWER + "lower_warp_matrices.cc",
     "const int64_t next = mine_only ? 4 / bytes(true) : chunk_terms;",
     "const int64_t next = mine_only ? 0 : chunk_terms;"),
    ("owners-divided-anywhere", LOWER + "map_threads.cc",
     "                   Accesses(loop->body, alloc.buffer);",
     "                   (Accesses(loop->body, alloc.buffer) || i < 6);"),
    ("in-flight-in-front", LOWER + "insert_barriers.cc",
     "      if (!access.in_flight) continue;",
     "      if (!access.in_flight || access.write) continue;"),
    ("index-of-all-lanes", LOWER + "lane_vectorizer.cc",
     "nonlinear |= Varies(atom) || (mask_ != nullptr && ReadsMemory(atom));",
     "nonlinear |= Varies(atom) || (mask_ != nullptr && failed_);"),
    ("lanes-agree", LOWER + "lane_vectorizer.cc",
     "return most(0) == most(lanes_ - 1);",
     "return most(0) == most(0);"),
    # What only PTX has.
    ("ptx-wait-count", CODEGEN + "nvptx_ops.cc",
     'Assembly(absl::StrCat("cp.async.wait_group ", groups, ";")',
     'Assembly(absl::StrCat("cp.async.wait_group ", groups + 1, ";")'),
    ("ptx-guard-reversed", CODEGEN + "nvptx_ops.cc",
     "          condition, builder.getInt32(static_cast<uint32_t>(bytes)),\n"
     "          builder.getInt32(0)));",
     "          condition, builder.getInt32(0),\n"
     "          builder.getInt32(static_cast<uint32_t>(bytes))));"),
    ("ptx-half-order", CODEGEN + "nvptx_ops.cc",
     "{}, {element(i + 1), element(i)});",
     "{}, {element(i), element(i + 1)});"),
    ("ptx-shuffle-groups", CODEGEN + "nvptx_ops.cc",
     "builder.getInt32((1u << width) - 1),",
     "builder.getInt32((1u << (width - 1)) - 1),"),
    # Indices in 32 bits.
    ("narrow-product", CODEGEN + "emit_narrow.cc",
     "return spanned({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});",
     "(void)spanned;\n      return Range{a.hi * b.hi, a.hi * b.hi};"),
    ("narrow-sum", CODEGEN + "emit_narrow.cc",
     "return Range{a.lo + b.lo, a.hi + b.hi};",
     "return Range{a.hi + b.lo, a.hi + b.hi};"),
    ("narrow-sign", CODEGEN + "emit_narrow.cc",
     "const bool without_sign = Divides(op) && left->lo >= 0;",
     "const bool without_sign = Divides(op) && left->hi >= 0;"),
    # Memory.
    ("shared-fetch-end", LOWER + "allocation_regions.cc",
     "arith::FloorDivInt(-1 - left.lo, scale)",
     "arith::FloorDivInt(-1 - left.lo, 2 * scale)"),
    ("local-gaps", LOWER + "place_allocations.cc",
     "value = ir::FloorMod(value, ir::IntConst(above / digit.scale));",
     "value = ir::FloorMod(value, ir::IntConst(above));"),
    ("shared-parts-of-threads", LOWER + "place_allocations.cc",
     "{.all_threads = true, .within_conditions = true}",
     "{.all_threads = false, .within_conditions = true}"),
    ("shared-last-threads", LOWER + "allocation_regions.cc",
     "return last < reach.lo ? reach.hi : std::min(last, reach.hi);",
     "return last <= reach.lo ? reach.hi : std::min(last - 1, reach.hi);"),
    ("shared-read-ends", LOWER + "allocation_regions.cc",
     "      reach.hi = LastAccessed(math, access, inner, reach);",
     "      reach.hi = std::max(reach.lo, LastAccessed(math, access, inner, reach) - 2);"),
    ("shared-overlap", LOWER + "split_kernels.cc",
     "RoundUp(begin + bytes, ir::kSharedAlignment);",
     "RoundUp(begin + bytes / 2, ir::kSharedAlignment);"),
    ("workspace-number", CODEGEN + "device_module.cc",
     "numbers.emplace(workspace.get(), static_cast<int>(numbers.size()));",
     "numbers.emplace(workspace.get(),\n"
     "                      static_cast<int>(lowered.params.size()));"),
    ("workspace-registers", LOWER + "place_registers.cc",
     "         IsBetweenKernels(body))) {",
     "         (IsBetweenKernels(body) && s.buffer->shape.size() > 9))) {"),
    ("axes-swapped", CODEGEN + "device_module.cc",
     "shape[2 - static_cast<size_t>(axis.axis) % 3] =",
     "shape[static_cast<size_t>(axis.axis) % 3] ="),
    ("alignment-overstated", CODEGEN + "emit_kernel.cc",
     "return llvm::Align(std::gcd(DivisorOf(index) * bytes, kDeviceAlignment));",
     "return llvm::Align(std::gcd(2 * DivisorOf(index) * bytes,\n"
     "                              kDeviceAlignment));"),
    ("async-copy-size", CODEGEN + "emit_kernel.cc",
     "const int bytes = lanes * s.buffer->dtype.bytes();",
     "const int bytes = std::min(8, lanes * s.buffer->dtype.bytes());"),
    ("async-guard-dropped", CODEGEN + "emit_kernel.cc",
     "copied->condition == nullptr ? nullptr : Emit(copied->condition);",
     "nullptr;"),
    ("async-other-than-zero", "compiler/ir/machine_op.cc",
     "condition->dtype.is_vector() || !IsZero(guarded->args[2])) {",
     "condition->dtype.is_vector()) {"),
    # Windows that the copy engine fetches.
    ("windows-offsets", CODEGEN + "emit_warpgroup.cc",
     "Emit(copy.offsets[static_cast<size_t>(ir::kMaxSpatial - 1 - i)]),",
     "Emit(copy.offsets[static_cast<size_t>(ir::kMaxSpatial - copy.map.spatial + i)]),"),
    ("windows-upper", "compiler/ir/tensor_box.cc",
     "out.upper[at] = lower[i] + (counts[i] - 1) * steps[i] + 1 - size;",
     "out.upper[at] = lower[i] + counts[i] * steps[i] + 1 - size;"),
    ("windows-lower", "compiler/arith/window_rows.cc",
     "math.Simplify(digit * parts[d].step + parts[d].lower)",
     "math.Simplify(digit * parts[d].step)"),
    ("windows-steps", "compiler/runtime/cuda.c",
     "i >= 1 && i <= map->spatial ? map->steps[i - 1] : 1;",
     "1;"),
    ("windows-images", "compiler/codegen/device_module.cc",
     "std::swap(described.sizes[last], described.sizes.back());",
     "described.sizes[last] = 7;"),
    ("windows-store-reads", LOWER + "warpgroup_stores.cc",
     "if (!reads || conditions_.empty()) return nullptr;",
     "if (!reads || !conditions_.empty()) return nullptr;"),
    # Guarded loads without branches.
    ("guards-otherwise", CODEGEN + "emit_memory.cc",
     "return builder_.CreateSelect(condition, value, otherwise);",
     "return builder_.CreateSelect(condition, otherwise, value);"),
    # Tensor cores whose instructions have half of the terms.
    ("halves-of-terms", CODEGEN + "nvptx_ops.cc",
     "std::iota(own.begin(), own.end(), half * lanes);",
     "std::iota(own.begin(), own.end(), 0);"),
    # Chains of products by warpgroups.
    ("chain-wait", LOWER + "warpgroup_chain.cc",
     "std::vector<Stmt> stmts = {ring_->WaitForTiles(iteration)};",
     "std::vector<Stmt> stmts;"),
    ("chain-wait-once", LOWER + "warpgroup_chain.cc",
     "consumers = ir::MakeSeq({ring_->WaitForOnce(), std::move(consumers)});",
     "consumers = ir::MakeSeq({std::move(consumers)});"),
    ("chain-release", LOWER + "warpgroup_chain.cc",
     "for (const Stmt& stmt : uses_) stmts.push_back(reader.Mutate(stmt));",
     "for (const Stmt& stmt : uses_) stmts.insert(stmts.begin(), reader.Mutate(stmt));"),
    ("chain-starts", LOWER + "warpgroup_code.cc",
     "    product.adds = !way.starts;",
     "    product.adds = true;"),
    ("chain-starts-again", LOWER + "warpgroup_code.cc",
     "      product.adds = true;",
     "      product.adds = !way.starts;"),
    ("chain-first-row", LOWER + "warpgroup_code.cc",
     "ir::FloorDiv(warp, ir::IntConst(kGroupWarps)) * kGroupWarps;",
     "Expr(warp) + 0;"),
    ("chain-panels", LOWER + "warpgroup_code.cc",
     "if (across) product.b_tile_bytes = panel *",
     "if (across) product.b_tile_bytes = (panel > 0 ? kSwizzledRows * row_ : 0) *"),
    ("in-place-scale", LOWER + "sum_in_place.cc",
     "stmts[makers[0]] = ScaleOnly(stmts[last], *sum);",
     "stmts[makers[0]] = ir::NoOp();"),
    ("online-power", "compiler/schedule/online_product.cc",
     "(x - m) * ir::FloatConst(scale * std::numbers::log2e, x->dtype)",
     "(x - m) * ir::FloatConst(scale * std::numbers::ln2, x->dtype)"),
]


def commands(arguments):
    return [
        ["gpu_kernels_property_test", "--gtest_fail_fast"],
        *(["program_fuzz", "--gpu", *target, "--seed", "1", "--count", "100000",
           "--jobs", str(arguments.jobs), "--seconds", str(arguments.seconds),
           "--traces", "2", "--max-findings", "1", "--no-shrink"]
          for target in (PTX, [])),
        *(["program_fuzz", "--gpu", *PTX, "--seed", seed, "--count", "1",
           "--traces", "2", "--no-shrink"] for seed in FOUND),
        *(["program_fuzz", "--gpu", "--gpu-target", "sim:sm_80", "--seed", seed,
           "--count", "1", "--traces", "3", "--no-shrink"]
          for seed in FOUND_SIMULATED),
        # Products of each unit; convolutions and attention large enough for
        # warpgroups.
        *(["ctest", test, "tune-opt", "tunec", "fake_cuda"]
          for test in ("gpu_mma_test", "gpu_wgmma_conv_test",
                       "gpu_wgmma_attention_test", "gpu_thread_chain_test")),
    ]


if __name__ == "__main__":
    seeded_faults.FAULTS = FAULTS
    seeded_faults.commands = commands
    sys.exit(seeded_faults.main())

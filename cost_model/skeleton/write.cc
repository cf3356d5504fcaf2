// A finished nest as the cost model's LoopNest, without the loops of one
// iteration (about half of them). Forms of indices are added in the order in
// which BuildLoopNest adds them, so that no bit differs.
#include <algorithm>
#include <cmath>

#include "cost_model/affine.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

using cost_model::IndexForm;
using cost_model::NestAccess;
using cost_model::NestStore;

namespace {

// factor * the part of `whole`.
void AddPart(IndexForm& form, IndexForm whole, const LoopPart& part,
             double factor) {
  if (part.upper != 0) whole.Modulo(static_cast<double>(part.upper));
  if (part.lower != 1) whole.FloorDivide(static_cast<double>(part.lower));
  form.Add(whole, factor * static_cast<double>(part.coefficient));
}

}  // namespace

void Nest::ReadBindings(const NestedBlock& block) {
  forms_.clear();
  place_.resize(std::max(place_.size(), loops_.size()));
  listed_.clear();
  for (const int loop : block.loops) {
    const bool moves = loops_[loop].extent != 1;
    place_[static_cast<size_t>(loop)] =
        moves ? static_cast<int>(listed_.size()) : -1;
    if (moves) listed_.push_back(loop);
  }
  depth_ = listed_.size();
  if (variables_.size() < block.bindings.size()) {
    variables_.resize(block.bindings.size());
  }
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    IndexForm& form = variables_[i];
    form.Clear();
    form.constant = static_cast<double>(block.constants[i]);
    for (const LoopPart& part : block.bindings[i]) {
      if (!part.is_digit() && part.upper == 0 && part.lower == 1) {
        const auto last = static_cast<double>(loops_[part.loop].extent - 1);
        const auto step = static_cast<double>(part.coefficient);
        const double width = std::abs(step);
        const int place = place_[static_cast<size_t>(part.loop)];
        if (place >= 0) form.Add({place, step, last * width, width});
        continue;
      }
      IndexForm whole;
      for (const int loop : listed_) {
        if (!Moves(part, loop)) continue;
        const auto step =
            static_cast<double>(part.is_digit() ? StepOf(loop, part.loop) : 1);
        const auto last = static_cast<double>(loops_[loop].extent - 1);
        whole.Add({place_[static_cast<size_t>(loop)], step, last * step, step});
      }
      AddPart(form, std::move(whole), part, 1);
    }
  }
}

// factor * the variable.
void Nest::AddVariable(const NestedBlock& block, size_t variable, double factor,
                       IndexForm& form) const {
  if (variable < block.iters.size()) {
    form.Add(variables_[variable], factor);
    return;
  }
  for (const LoopPart& part :
       block.written_out[variable - block.iters.size()]) {
    IndexForm whole;
    AddVariable(block, static_cast<size_t>(part.loop), 1, whole);
    AddPart(form, std::move(whole), part, factor);
  }
}

void Nest::FormOfIndex(const NestedBlock& block, const IndexExpr& index,
                       IndexForm& form) {
  form.Clear();
  if (!index.linear) {
    // Expressions name the variables.
    if (forms_.empty()) {
      for (size_t i = 0; i < block.bindings.size(); ++i) {
        forms_[block.info->iters[i].var] = variables_[i];
      }
    }
    form = cost_model::FormOf(index.expr, forms_);
    return;
  }
  form.constant = index.constant;
  for (const auto& [variable, factor] : index.terms) {
    AddVariable(block, static_cast<size_t>(variable), factor, form);
  }
}

void Nest::FormOfPart(const NestedBlock& block, const BlockAccess& access,
                      const space::Panels& panels, space::PanelDim dim,
                      IndexForm& form) {
  FormOfIndex(block, access.indices[static_cast<size_t>(dim.dim)], form);
  if (block.group_iter >= 0 && panels.lanes > 0) {
    return FormOfDotPart(panels, dim.part, form);
  }
  const auto [modulus, divisor] = panels.DigitOf(dim.part);
  if (modulus > 0) form.Modulo(static_cast<double>(modulus));
  if (divisor > 1) form.FloorDivide(static_cast<double>(divisor));
}

void Nest::WriteAccess(const NestedBlock& block, const BlockAccess& access,
                       NestStore& out, size_t* used) {
  // The index of each dimension, as the buffer lies in memory.
  const space::Panels& panels = panels_[static_cast<size_t>(access.buffer)];
  const size_t dims =
      panels.empty() ? access.indices.size() : panels.dims.size();
  if (dims_.size() < dims) dims_.resize(dims);
  for (size_t d = 0; d < dims; ++d) {
    if (panels.empty()) {
      FormOfIndex(block, access.indices[d], dims_[d]);
      continue;
    }
    FormOfPart(block, access, panels, panels.dims[d], dims_[d]);
  }

  // One entry a buffer.
  size_t entry = 0;
  while (entry < *used &&
         !(out.accesses[entry].buffer == access.buffer &&
           out.accesses[entry].spans.size() == dims * depth_)) {
    ++entry;
  }
  const bool added = entry == *used;
  const bool for_all = panels.empty() && !access.alike.empty();
  if (added) {
    ++*used;
    if (out.accesses.size() < *used) out.accesses.emplace_back();
    if (lowest_.size() < *used) {
      lowest_.resize(*used);
      highest_.resize(*used);
    }
    NestAccess& made = out.accesses[entry];
    made.buffer = access.buffer;
    made.reads = made.writes = made.irregular = false;
    made.loads = 0;
    made.group = 1;
    made.strides.assign(dims * depth_, 0);
    made.spans.assign(dims * depth_, 0);
    made.offset_spans.assign(dims, 0);
    lowest_[entry].resize(dims);
    highest_[entry].resize(dims);
  }
  NestAccess& into = out.accesses[entry];
  into.reads |= !access.writes;
  into.writes |= access.writes;
  if (!access.writes) {
    into.loads += for_all ? 1 + static_cast<int>(access.alike.size()) : 1;
  }
  for (size_t d = 0; d < dims; ++d) {
    const IndexForm& form = dims_[d];
    into.irregular |= form.irregular;
    for (const cost_model::LoopTerm& term : form.terms) {
      const auto place = static_cast<size_t>(term.loop);
      if (out.loops[place].extent == 1) continue;
      const size_t at = d * depth_ + place;
      if (added || term.span > into.spans[at]) {
        into.spans[at] = term.span;
        into.strides[at] = term.stride;
      }
    }
    double& low = lowest_[entry][d];
    double& high = highest_[entry][d];
    const double lowest = form.constant - (for_all ? access.below[d] : 0);
    const double highest = form.constant + (for_all ? access.above[d] : 0) +
                           GroupSpan(block, access, panels, d);
    low = added ? lowest : std::min(low, lowest);
    high = added ? highest : std::max(high, highest);
    into.offset_spans[d] = high - low;
  }
}

void Nest::WriteBlock(const NestedBlock& block, bool is_start, NestStore& out) {
  ReadBindings(block);
  const BlockInfo& info = *block.info;
  const BlockStore& store = block.is_init || is_start ? *info.init : info.body;
  out.loops.clear();
  out.unroll_max_step = 0;
  for (const int number : block.loops) {
    const NestedLoop& loop = loops_[number];
    if (loop.unroll_steps >= 0) out.unroll_max_step = loop.unroll_steps;
    if (loop.extent == 1) {
      if (!out.loops.empty()) ++out.loops.back().ones;
      continue;
    }
    out.loops.push_back({loop.extent, loop.kind});
    // It runs where the reduction starts: the loops of that count once.
    if (is_start && Reduces(block, number, true)) out.loops.back().extent = 1;
  }
  out.ops = store.ops;
  out.is_init = is_start;
  out.guards = block.guarded || block.reduce_guarded ? 1 : 0;
  out.alloc_depth = 0;
  double domain = 1;
  bool any = false;
  for (const NestedIter& iter : block.iters) {
    if (block.is_init && iter.type != ir::IterType::kSpatial) continue;
    domain *= static_cast<double>(iter.extent);
    any = true;
  }
  if (block.tensorized && info.dot->is_tile())
    domain = static_cast<double>(info.dot->rows * info.dot->lanes *
                                 info.dot->products);
  out.domain_size = any ? domain : 0;
  size_t used = 0;
  for (const BlockAccess& access : store.accesses) {
    WriteAccess(block, access, out, &used);
    if (panels_[static_cast<size_t>(access.buffer)].empty()) continue;
    for (const BlockAccess& other : access.alike) {
      WriteAccess(block, other, out, &used);
    }
  }
  out.accesses.resize(used);
  if (block.group_iter >= 0) {
    const schedule::ProductShape& dot = *info.dot;
    out.domain_size = static_cast<double>(dot.lanes);
    cost_model::CountAsDotProduct(*buffers_, dot.sum.bytes(),
                                  dot.sum.is_float(), out);
  }
}

void Nest::Write(cost_model::LoopNest& out) {
  if (out.buffers.size() != buffers_->size()) out.buffers = *buffers_;
  for (size_t b = 0; b < panels_.size(); ++b) {
    const std::vector<int64_t>& shape = shapes_[b];
    std::vector<int64_t>& laid_out = out.buffers[b].shape;
    const space::Panels& panels = panels_[b];
    if (panels.empty()) {
      laid_out = shape;
      continue;
    }
    laid_out.clear();
    for (const space::PanelDim& dim : panels.dims) {
      laid_out.push_back(
          panels.ExtentOf(dim.part, shape[static_cast<size_t>(dim.dim)]));
    }
  }
  size_t stores = 0;
  const auto next = [&]() -> cost_model::NestStore& {
    if (stores == out.stores.size()) out.stores.emplace_back();
    return out.stores[stores++];
  };
  for (size_t i = 0; i < order_.size(); ++i) {
    const NestedBlock& block = At(i);
    if (block.info->is_prepacked) continue;
    const bool starts = block.info->init && !block.is_init && !block.decomposed;
    if (starts) WriteBlock(block, /*is_start=*/true, next());
    WriteBlock(block, /*is_start=*/false, next());
  }
  out.stores.resize(stores);
}

}  // namespace tilefarm::skeleton

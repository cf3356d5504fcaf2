// A finished nest as the cost model's LoopNest, without the loops of one
// iteration (about half of them). The arithmetic on strides is
// that of cost_model/affine.cc, in the same order, so that no bit differs.
#include <algorithm>
#include <cmath>

#include "cost_model/affine.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

using cost_model::NestAccess;
using cost_model::NestStore;

void Nest::Resize(Form& form) const {
  form.moves.assign(depth_, {});
  form.places.clear();
  form.constant = 0;
  form.irregular = false;
}

void Nest::AddPart(Form& to, size_t place, double stride, double span,
                   double step) const {
  auto& [s, w, whole] = to.moves[place];
  whole = whole == 0 ? step : cost_model::CommonStep(whole, step);
  s += stride;
  w = w * span == 0 ? w + span : std::max({w, span, std::abs(s)});
}

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
    Form& form = variables_[i];
    Resize(form);
    form.constant = static_cast<double>(block.constants[i]);
    for (const LoopPart& part : block.bindings[i]) {
      if (place_[part.loop] < 0) continue;
      double stride = 1, step = 1;
      double span = static_cast<double>(loops_[part.loop].extent - 1);
      if (part.upper != 0) {
        const auto modulus = static_cast<double>(part.upper);
        if (std::fmod(step, modulus) == 0) continue;
        stride = std::fmod(stride, modulus);
        span = std::min(span, modulus - 1);
        step = cost_model::CommonStep(step, modulus);
      }
      if (part.lower != 1) {
        const auto lower = static_cast<double>(part.lower);
        const double factor = 1 / lower;
        stride *= factor;
        span *= std::abs(factor);
        step = cost_model::QuotientStep(step, lower);
      }
      const auto coefficient = static_cast<double>(part.coefficient);
      const auto place = static_cast<size_t>(place_[part.loop]);
      if (std::find(form.places.begin(), form.places.end(), place) ==
          form.places.end()) {
        form.places.push_back(place);
      }
      AddPart(form, place, stride * coefficient, span * std::abs(coefficient),
              step * std::abs(coefficient));
    }
  }
}

// The variables as indices that are not linear need them.
void Nest::ReadForms(const NestedBlock& block) {
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    const Form& known = variables_[i];
    cost_model::IndexForm& made = forms_[block.info->iters[i].var];
    made.constant = known.constant;
    for (size_t l = 0; l < depth_; ++l) {
      if (known.moves[l].stride == 0 && known.moves[l].span == 0) continue;
      made.terms.push_back({static_cast<int>(l), known.moves[l].stride,
                            known.moves[l].span, known.moves[l].step});
    }
  }
}

Nest::Form& Nest::FormOfIndex(const NestedBlock& block, const IndexExpr& index,
                              Form& form) {
  Resize(form);
  if (index.linear) {
    form.constant = index.constant;
    const auto add = [&](int variable, double factor) {
      const Form& part = variables_[static_cast<size_t>(variable)];
      form.constant += factor * part.constant;
      const double width = std::abs(factor);
      for (const size_t l : part.places) {
        if (part.moves[l].stride == 0 && part.moves[l].span == 0) continue;
        AddPart(form, l, part.moves[l].stride * factor,
                part.moves[l].span * width, part.moves[l].step * width);
      }
    };
    for (const auto& [variable, factor] : index.terms) {
      if (static_cast<size_t>(variable) < block.iters.size()) {
        add(variable, factor);
        continue;
      }
      const size_t former = static_cast<size_t>(variable) - block.iters.size();
      for (const auto& [part, coefficient] : block.written_out[former]) {
        add(part, factor * static_cast<double>(coefficient));
      }
    }
    return form;
  }
  if (forms_.empty()) ReadForms(block);
  const cost_model::IndexForm result = cost_model::FormOf(index.expr, forms_);
  form.constant = result.constant;
  form.irregular = result.irregular;
  for (const cost_model::LoopTerm& term : result.terms) {
    form.moves[static_cast<size_t>(term.loop)] = {term.stride, term.span,
                                                  term.step};
  }
  return form;
}

// i // width: what stays within a panel vanishes.
void Nest::DivideForm(Form& form, double width) const {
  double rest = std::fmod(form.constant, width);
  bool negative = rest < 0;
  for (size_t l = 0; l < depth_; ++l) {
    if (std::fmod(form.moves[l].step, width) == 0) continue;
    rest += form.moves[l].span;
    negative |= form.moves[l].stride < 0 && form.moves[l].span > 0;
  }
  if (!negative && rest < width) {
    for (size_t l = 0; l < depth_; ++l) {
      if (std::fmod(form.moves[l].step, width) == 0) continue;
      form.moves[l] = {};
    }
    form.constant -= std::fmod(form.constant, width);
  }
  const double factor = 1 / width;
  for (size_t l = 0; l < depth_; ++l) {
    form.moves[l].stride *= factor;
    form.moves[l].span *= std::abs(factor);
    form.moves[l].step = cost_model::QuotientStep(form.moves[l].step, width);
  }
  form.constant *= factor;
}

// i % width.
void Nest::RemainderForm(Form& form, double width) const {
  for (size_t l = 0; l < depth_; ++l) {
    if (std::fmod(form.moves[l].step, width) == 0) {
      form.moves[l] = {};
    } else {
      form.moves[l].stride = std::fmod(form.moves[l].stride, width);
      form.moves[l].span = std::min(form.moves[l].span, width - 1);
      form.moves[l].step = cost_model::CommonStep(form.moves[l].step, width);
    }
  }
  form.constant = std::fmod(form.constant, width);
}

void Nest::FormOfPart(const NestedBlock& block, const BlockAccess& access,
                      const space::Panels& panels, space::PanelDim dim,
                      Form& form) {
  FormOfIndex(block, access.indices[static_cast<size_t>(dim.dim)], form);
  if (block.group_iter >= 0 && panels.lanes > 0) {
    return FormOfDotPart(panels, dim.part, form);
  }
  const auto width = static_cast<double>(panels.width);
  const auto lanes = static_cast<double>(panels.lanes);
  const auto group = static_cast<double>(panels.group);
  switch (dim.part) {
    case space::PanelDim::kWhole:
      return;
    case space::PanelDim::kPanel:
      return DivideForm(form, width);
    case space::PanelDim::kWithin:
      return RemainderForm(form, width);
    case space::PanelDim::kRegister:
      if (panels.is_cut) RemainderForm(form, width);
      return DivideForm(form, lanes);
    case space::PanelDim::kLane:
      return RemainderForm(form, lanes);
    case space::PanelDim::kGroup:
      return DivideForm(form, group);
    case space::PanelDim::kOfGroup:
      return RemainderForm(form, group);
  }
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
    const Form& form = dims_[d];
    into.irregular |= form.irregular;
    for (size_t l = 0; l < depth_; ++l) {
      if (out.loops[l].extent == 1) continue;
      const size_t at = d * depth_ + l;
      if (added || form.moves[l].span > into.spans[at]) {
        into.spans[at] = form.moves[l].span;
        into.strides[at] = form.moves[l].stride;
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
  if (block.tensorized && info.dot->is_tile()) domain = info.dot->tile_size;
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
  if (block.group_iter >= 0) WriteDot(block, out);
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

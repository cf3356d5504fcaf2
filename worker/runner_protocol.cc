#include "worker/runner_protocol.h"

#include <utility>

namespace tilefarm::worker {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 48;

void Put(ByteWriter& out, const ProgramSpec& value) {
  out.U32(static_cast<uint32_t>(value.buffers.size()));
  for (const BufferSpec& b : value.buffers) {
    out.U8(static_cast<uint8_t>(b.type));
    out.Bool(b.read);
    out.Bool(b.written);
    out.U64(b.elements);
    out.I64(b.low);
    out.I64(b.high);
    out.Bool(b.bounded);
    out.Bool(b.layout_free);
  }
  out.U64(value.oracle_bytes);
  out.Bool(value.cold_constants);
}

bool Get(ByteReader& in, ProgramSpec* value) {
  const uint32_t count = in.ListLength(29);
  if (count > kMaxBuffers) return false;
  value->buffers.assign(count, {});
  for (BufferSpec& b : value->buffers) {
    b.type = static_cast<ElementType>(in.U8());
    b.read = in.Bool();
    b.written = in.Bool();
    b.elements = in.U64();
    b.low = in.I64();
    b.high = in.I64();
    b.bounded = in.Bool();
    b.layout_free = in.Bool();
    if (ElementBytes(b.type) == 0 || b.elements == 0 ||
        b.elements > kMaxElements || b.low > b.high) {
      return false;
    }
  }
  value->oracle_bytes = in.U64();
  value->cold_constants = in.Bool();
  return in.ok();
}

void Put(ByteWriter& out, const ChildLimits& value) {
  out.U32(value.timeout_ms);
  out.U64(value.memory_bytes);
  out.U32(static_cast<uint32_t>(value.cpus.size()));
  for (uint32_t cpu : value.cpus) out.U32(cpu);
}

void Get(ByteReader& in, ChildLimits* value) {
  value->timeout_ms = in.U32();
  value->memory_bytes = in.U64();
  value->cpus.assign(in.ListLength(4), 0);
  for (uint32_t& cpu : value->cpus) cpu = in.U32();
}

}  // namespace

uint64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kUInt8:
    case ElementType::kBool:
      return 1;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
    case ElementType::kUInt16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kUInt64:
      return 8;
  }
  return 0;
}

std::optional<ElementType> ParseElementType(std::string_view name) {
  static constexpr std::pair<std::string_view, ElementType> kNames[] = {
      {"bfloat16", ElementType::kBFloat16}, {"bool", ElementType::kBool},
      {"float16", ElementType::kFloat16},   {"float32", ElementType::kFloat32},
      {"float64", ElementType::kFloat64},   {"int16", ElementType::kInt16},
      {"int32", ElementType::kInt32},       {"int64", ElementType::kInt64},
      {"int8", ElementType::kInt8},         {"uint16", ElementType::kUInt16},
      {"uint32", ElementType::kUInt32},     {"uint64", ElementType::kUInt64},
      {"uint8", ElementType::kUInt8}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

bool IsFloat(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBFloat16 ||
         type == ElementType::kFloat32 || type == ElementType::kFloat64;
}

uint64_t BoundBytes(ElementType type) {
  return type == ElementType::kFloat64 ? 8 : 4;
}

std::string Encode(const ProgramSpec& value) {
  ByteWriter out;
  Put(out, value);
  return out.Take();
}

bool Decode(std::string_view payload, ProgramSpec* value) {
  ByteReader in(payload);
  return Get(in, value) && in.Finished();
}

std::string Encode(const HelloReply& value) {
  ByteWriter out;
  out.Str(value.version);
  out.Str(value.isolation);
  return out.Take();
}

bool Decode(std::string_view payload, HelloReply* value) {
  ByteReader in(payload);
  value->version = in.Str();
  value->isolation = in.Str();
  return in.Finished();
}

std::string Encode(const LoadWorkload& value) {
  ByteWriter out;
  out.U64(value.run_id);
  out.Str(value.key);
  out.Str(value.symbol);
  out.Str(value.artifact);
  out.U64(value.input_seed);
  Put(out, value.program);
  Put(out, value.limits);
  return out.Take();
}

bool Decode(std::string_view payload, LoadWorkload* value) {
  ByteReader in(payload);
  value->run_id = in.U64();
  value->key = in.Str();
  value->symbol = in.Str();
  value->artifact = in.Str();
  value->input_seed = in.U64();
  if (!Get(in, &value->program)) return false;
  Get(in, &value->limits);
  return in.Finished();
}

std::string Encode(const LoadReply& value) {
  ByteWriter out;
  out.Bool(value.ok);
  out.Str(value.error);
  out.F64(value.reference_seconds);
  out.Bool(value.positive_inputs);
  return out.Take();
}

bool Decode(std::string_view payload, LoadReply* value) {
  ByteReader in(payload);
  value->ok = in.Bool();
  value->error = in.Str();
  value->reference_seconds = in.F64();
  value->positive_inputs = in.Bool();
  return in.Finished();
}

std::string Encode(const RunRequest& value) {
  ByteWriter out;
  out.U64(value.run_id);
  out.Str(value.key);
  out.Str(value.symbol);
  out.Str(value.artifact);
  Put(out, value.limits);
  out.Bool(value.flush_cache);
  out.U64(value.last_cache_bytes);
  out.U32(value.min_samples);
  out.U32(value.max_samples);
  out.U32(value.target_ms);
  out.F64(value.best_seconds);
  out.F64(value.spread);
  return out.Take();
}

bool Decode(std::string_view payload, RunRequest* value) {
  ByteReader in(payload);
  value->run_id = in.U64();
  value->key = in.Str();
  value->symbol = in.Str();
  value->artifact = in.Str();
  Get(in, &value->limits);
  value->flush_cache = in.Bool();
  value->last_cache_bytes = in.U64();
  value->min_samples = in.U32();
  value->max_samples = in.U32();
  value->target_ms = in.U32();
  value->best_seconds = in.F64();
  value->spread = in.F64();
  return in.Finished();
}

std::string Encode(const CancelRun& value) {
  ByteWriter out;
  out.U64(value.run_id);
  return out.Take();
}

bool Decode(std::string_view payload, CancelRun* value) {
  ByteReader in(payload);
  value->run_id = in.U64();
  return in.Finished();
}

std::string Encode(const CompareRequest& value) {
  ByteWriter out;
  out.U64(value.run_id);
  out.Str(value.key);
  for (const CompareRequest::Side* side : {&value.baseline, &value.candidate}) {
    out.Str(side->symbol);
    out.Str(side->artifact);
    out.F64(side->spread);
  }
  Put(out, value.limits);
  out.Bool(value.flush_cache);
  out.U64(value.last_cache_bytes);
  out.Bool(value.is_model);
  out.Bool(value.candidate_first);
  out.U32(value.sample_us);
  out.U32(value.cluster_ms);
  out.U32(value.fewest_rounds);
  out.U32(value.most_rounds);
  return out.Take();
}

bool Decode(std::string_view payload, CompareRequest* value) {
  ByteReader in(payload);
  value->run_id = in.U64();
  value->key = in.Str();
  for (CompareRequest::Side* side : {&value->baseline, &value->candidate}) {
    side->symbol = in.Str();
    side->artifact = in.Str();
    side->spread = in.F64();
  }
  Get(in, &value->limits);
  value->flush_cache = in.Bool();
  value->last_cache_bytes = in.U64();
  value->is_model = in.Bool();
  value->candidate_first = in.Bool();
  value->sample_us = in.U32();
  value->cluster_ms = in.U32();
  value->fewest_rounds = in.U32();
  value->most_rounds = in.U32();
  return in.Finished();
}

std::string Encode(const CompareReply& value) {
  ByteWriter out;
  out.U8(static_cast<uint8_t>(value.status));
  out.Str(value.error);
  out.U8(static_cast<uint8_t>(value.failed));
  for (const auto* seconds :
       {&value.baseline_seconds, &value.candidate_seconds}) {
    out.U32(static_cast<uint32_t>(seconds->size()));
    for (double s : *seconds) out.F64(s);
  }
  out.Bool(value.verified);
  out.F64(value.max_abs_error);
  out.F64(value.max_rel_error);
  out.U32(value.retaken);
  out.U32(value.shared);
  out.F64(value.canary_seconds);
  out.F64(value.child_seconds);
  out.Str(value.isolation);
  return out.Take();
}

bool Decode(std::string_view payload, CompareReply* value) {
  ByteReader in(payload);
  const uint8_t status = in.U8();
  if (status > static_cast<uint8_t>(RunStatus::kCancelled)) return false;
  value->status = static_cast<RunStatus>(status);
  value->error = in.Str();
  const uint8_t failed = in.U8();
  if (failed > static_cast<uint8_t>(ComparedSide::kCandidate)) return false;
  value->failed = static_cast<ComparedSide>(failed);
  for (auto* seconds : {&value->baseline_seconds, &value->candidate_seconds}) {
    seconds->assign(in.ListLength(8), 0);
    for (double& s : *seconds) s = in.F64();
  }
  value->verified = in.Bool();
  value->max_abs_error = in.F64();
  value->max_rel_error = in.F64();
  value->retaken = in.U32();
  value->shared = in.U32();
  value->canary_seconds = in.F64();
  value->child_seconds = in.F64();
  value->isolation = in.Str();
  return in.Finished() &&
         value->baseline_seconds.size() == value->candidate_seconds.size();
}

std::string Encode(const RunReply& value) {
  ByteWriter out;
  out.U8(static_cast<uint8_t>(value.status));
  out.Str(value.error);
  out.U32(static_cast<uint32_t>(value.seconds.size()));
  for (double s : value.seconds) out.F64(s);
  out.F64(value.median_seconds);
  out.F64(value.ci_low_seconds);
  out.F64(value.ci_high_seconds);
  out.Bool(value.stopped_early);
  out.Bool(value.verified);
  out.F64(value.max_abs_error);
  out.F64(value.max_rel_error);
  out.U32(value.retaken);
  out.U32(value.shared);
  out.F64(value.canary_seconds);
  out.F64(value.child_seconds);
  out.Str(value.isolation);
  out.Str(value.timing);
  out.F64(value.conditions.clock_mhz);
  out.F64(value.conditions.memory_clock_mhz);
  out.F64(value.conditions.temperature_c);
  out.F64(value.conditions.power_w);
  return out.Take();
}

bool Decode(std::string_view payload, RunReply* value) {
  ByteReader in(payload);
  const uint8_t status = in.U8();
  if (status > static_cast<uint8_t>(RunStatus::kCancelled)) return false;
  value->status = static_cast<RunStatus>(status);
  value->error = in.Str();
  value->seconds.assign(in.ListLength(8), 0);
  for (double& s : value->seconds) s = in.F64();
  value->median_seconds = in.F64();
  value->ci_low_seconds = in.F64();
  value->ci_high_seconds = in.F64();
  value->stopped_early = in.Bool();
  value->verified = in.Bool();
  value->max_abs_error = in.F64();
  value->max_rel_error = in.F64();
  value->retaken = in.U32();
  value->shared = in.U32();
  value->canary_seconds = in.F64();
  value->child_seconds = in.F64();
  value->isolation = in.Str();
  value->timing = in.Str();
  value->conditions.clock_mhz = in.F64();
  value->conditions.memory_clock_mhz = in.F64();
  value->conditions.temperature_c = in.F64();
  value->conditions.power_w = in.F64();
  return in.Finished();
}

}  // namespace tilefarm::worker

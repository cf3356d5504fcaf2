#include "worker/builder_protocol.h"

namespace tilefarm::worker {

std::string Encode(const BuilderHelloReply& value) {
  ByteWriter out;
  out.Str(value.version);
  out.Str(value.fingerprint);
  out.Str(value.confinement);
  out.Str(value.shortfall);
  out.Str(value.directory);
  return out.Take();
}

bool Decode(std::string_view payload, BuilderHelloReply* value) {
  ByteReader in(payload);
  value->version = in.Str();
  value->fingerprint = in.Str();
  value->confinement = in.Str();
  value->shortfall = in.Str();
  value->directory = in.Str();
  return in.Finished();
}

std::string Encode(const BuildRequest& value) {
  ByteWriter out;
  out.Str(value.program);
  out.Str(value.trace);
  out.Str(value.scheduled_hash);
  out.Str(value.target);
  out.Bool(value.reference);
  out.U64(value.memory_bytes);
  return out.Take();
}

bool Decode(std::string_view payload, BuildRequest* value) {
  ByteReader in(payload);
  value->program = in.Str();
  value->trace = in.Str();
  value->scheduled_hash = in.Str();
  value->target = in.Str();
  value->reference = in.Bool();
  value->memory_bytes = in.U64();
  return in.Finished();
}

std::string Encode(const BuildReply& value) {
  ByteWriter out;
  out.U8(static_cast<uint8_t>(value.status));
  out.Str(value.error);
  out.Str(value.artifact);
  out.Str(value.symbol);
  out.Str(value.code_digest);
  out.F64(value.compile_seconds);
  out.U32(value.cores);
  out.Str(Encode(value.program));
  out.F64(value.spread);
  return out.Take();
}

bool Decode(std::string_view payload, BuildReply* value) {
  ByteReader in(payload);
  const uint8_t status = in.U8();
  if (status > static_cast<uint8_t>(BuildStatus::kCompileError)) return false;
  value->status = static_cast<BuildStatus>(status);
  value->error = in.Str();
  value->artifact = in.Str();
  value->symbol = in.Str();
  value->code_digest = in.Str();
  value->compile_seconds = in.F64();
  value->cores = in.U32();
  if (!Decode(in.Str(), &value->program)) return false;
  value->spread = in.F64();
  return in.Finished();
}

}  // namespace tilefarm::worker

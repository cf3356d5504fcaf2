// Parse: KIND[:MODEL][,cores=N][,+feature][,-feature]... or FILE.json.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/target/host.h"
#include "compiler/target/isa.h"
#include "compiler/target/target.h"

namespace tilefarm::target {
namespace {

constexpr int kMaxCores = 4096;
constexpr char kKeys[] = "cores, l1_bytes, l2_bytes, l3_bytes";

// The parsed text, before it is resolved.
struct Request {
  std::string kind;
  std::string model;
  std::vector<std::string> features;
  int cores = 0;                   // 0: all
  int64_t l1 = 0, l2 = 0, l3 = 0;  // 0: the host's or the default
};

absl::Status SetKey(const std::string& key, int64_t value, Request& request) {
  if (value <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: ", key, " must be positive, not ", value));
  }
  if (key == "cores") {
    if (value > kMaxCores) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: cores=", value, " is over ", kMaxCores));
    }
    request.cores = static_cast<int>(value);
  } else if (key == "l1_bytes") {
    request.l1 = value;
  } else if (key == "l2_bytes") {
    request.l2 = value;
  } else if (key == "l3_bytes") {
    request.l3 = value;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("target: unknown key '", key,
                                                   "'; known: ", kKeys,
                                                   ", +FEATURE, -FEATURE"));
  }
  return absl::OkStatus();
}

absl::Status CheckFeature(const std::string& feature) {
  if (feature.size() < 2 || (feature[0] != '+' && feature[0] != '-')) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: feature '", feature, "' must be +NAME or -NAME"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Request> ParseText(std::string_view text) {
  Request request;
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
  const size_t colon = parts[0].find(':');
  request.kind = parts[0].substr(0, colon);
  if (colon != std::string::npos) {
    request.model = parts[0].substr(colon + 1);
    if (request.model.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "target '", parts[0], "': a model must follow the colon"));
    }
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (!part.empty() && (part[0] == '+' || part[0] == '-')) {
      TF_RETURN_IF_ERROR(CheckFeature(part));
      request.features.push_back(part);
      continue;
    }
    const size_t equals = part.find('=');
    int64_t value = 0;
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: '", part, "' is not key=value; known: ", kKeys,
                       ", +FEATURE, -FEATURE"));
    }
    if (!absl::SimpleAtoi(part.substr(equals + 1), &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: '", part, "': the value must be an integer"));
    }
    TF_RETURN_IF_ERROR(SetKey(part.substr(0, equals), value, request));
  }
  return request;
}

absl::StatusOr<Request> ParseFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("target file '", path, "' cannot be read"));
  }
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const auto json = ParseJson(text);
  if (json.is_discarded() || !json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target file '", path, "' is not a JSON object"));
  }
  Request request;
  for (const auto& [key, value] : json.items()) {
    if ((key == "kind" || key == "model") && value.is_string()) {
      (key == "kind" ? request.kind : request.model) = value;
    } else if (key == "features" && value.is_array()) {
      for (const auto& feature : value) {
        if (!feature.is_string()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "target file '", path, "': features must be strings"));
        }
        request.features.push_back(feature);
        TF_RETURN_IF_ERROR(CheckFeature(request.features.back()));
      }
    } else if (value.is_number_integer()) {
      TF_RETURN_IF_ERROR(SetKey(key, value, request));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("target file '", path, "': unknown or ill-typed key '",
                       key, "'; known: kind, model, features, ", kKeys));
    }
  }
  return request;
}

absl::StatusOr<Target> Resolve(Request request) {
  const Kind* kind = FindKind(request.kind);
  const bool host = request.kind == "host";
  Target target;
  CacheSizes& caches = target.caches;
  if (host) {
    if (!request.model.empty()) {
      return absl::InvalidArgumentError(
          "target 'host' takes no model: it is this machine");
    }
    kind = &HostKind();
    request.model = HostCpu();
    std::vector<std::string> features = HostFeatures();
    caches = HostCaches();
    // These belong to the machine, also if the text narrows the target.
    TF_ASSIGN_OR_RETURN(const CpuFeatures all,
                        ResolveCpu(*kind, request.model, features));
    target.device_model =
        DeviceModel(HostBrand(), request.model, all.differences, caches);
    features.insert(features.end(), request.features.begin(),
                    request.features.end());
    request.features = std::move(features);
  }
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("this build generates no code for the target kind '",
                     request.kind, "'; it does for ",
                     absl::StrJoin(KindNames(), ", "), ", or a FILE.json"));
  }
  if (request.model.empty()) request.model = std::string(kind->default_cpu);
  target.kind = std::string(kind->name);
  target.cpu = request.model;
  target.triple = std::string(kind->triple);
  TF_ASSIGN_OR_RETURN(CpuFeatures cpu,
                      ResolveCpu(*kind, target.cpu, request.features));
  target.features = std::move(cpu.differences);
  target.vector_bits = cpu.vector_bits;
  target.vector_registers = cpu.vector_registers;
  target.capabilities = cpu.capabilities;
  if (target.is_opencl()) target.gpu = OpenClLimits(target.cpu);
  if (target.triple.starts_with("nvptx")) {
    target.gpu = CudaLimits(target.cpu);
    if (!target.gpu) {
      return absl::InvalidArgumentError(
          absl::StrCat("target '", target.kind, ":", target.cpu,
                       "': this build has no tables for this architecture; it "
                       "knows sm_70 to sm_90a"));
    }
  }
  if (!kind->has_threads && request.cores > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: ", target.kind, " has one core, not ", request.cores));
  }
  target.cores = request.cores > 0   ? request.cores
                 : kind->has_threads ? HostCores()
                                     : 1;
  if (request.l1 > 0) caches.l1_bytes = request.l1;
  if (request.l2 > 0) caches.l2_bytes = request.l2;
  if (request.l3 > 0) caches.l3_bytes = request.l3;
  target.caches_known =
      host || request.l1 > 0 || request.l2 > 0 || request.l3 > 0;
  return target;
}

}  // namespace

absl::StatusOr<Target> Parse(std::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "empty target; known kinds: ", absl::StrJoin(KindNames(), ", ")));
  }
  Request request;
  if (text.ends_with(".json")) {
    TF_ASSIGN_OR_RETURN(request, ParseFile(std::string(text)));
  } else {
    TF_ASSIGN_OR_RETURN(request, ParseText(text));
  }
  return Resolve(std::move(request));
}

absl::StatusOr<Target> ParseKey(std::string_view text) {
  if (text.ends_with(".json") || text.starts_with("host")) {
    return absl::InvalidArgumentError(
        absl::StrCat("target '", std::string(text),
                     "': only the client's machine can resolve it"));
  }
  return Parse(text);
}

}  // namespace tilefarm::target

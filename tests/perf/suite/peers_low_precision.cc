// Peers for low_precision.py: oneDNN's primitives with narrow operands. oneDNN
// chooses the instruction set; DNNL_MAX_CPU_ISA limits it.
#include <immintrin.h>

#include <cstdint>
#include <dnnl.hpp>
#include <memory>

#include "tests/perf/suite/onednn.h"
#include "tests/perf/suite/peers.h"

namespace tilefarm::perf {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
using Type = memory::data_type;
using Json = nlohmann::json;

Type TypeOf(const std::string& name) {
  if (name == "uint8") return Type::u8;
  if (name == "int8") return Type::s8;
  if (name == "int32") return Type::s32;
  if (name == "bfloat16") return Type::bf16;
  return name == "float16" ? Type::f16 : Type::f32;
}

using Floats = std::shared_ptr<std::vector<float>>;

void Widen(const void* from, std::vector<float>& to) {
  const auto* half = static_cast<const __m128i*>(from);
  for (size_t i = 0; i < to.size(); i += 8) {
    _mm256_storeu_ps(to.data() + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(half + i / 8)));
  }
}

void Narrow(const std::vector<float>& from, void* to) {
  auto* half = static_cast<__m128i*>(to);
  for (size_t i = 0; i < from.size(); i += 8) {
    _mm_storeu_si128(half + i / 8,
                     _mm256_cvtps_ph(_mm256_loadu_ps(from.data() + i),
                                     _MM_FROUND_TO_NEAREST_INT));
  }
}

// If the library has no product of this type: its float32 product between
// conversions, where weights are converted ahead of time or in the call.
void OfferFloat32(Collector& to, int64_t size, const std::vector<float*>& in,
                  float* out) {
  for (const bool ahead : {false, true}) {
    to.Offer(
        ahead ? "sgemm, weights widened ahead" : "sgemm between conversions",
        !ahead, [&] {
          const auto make = [&] {
            return std::make_shared<std::vector<float>>(size * size);
          };
          const Floats a = make(), b = make(), c = make();
          Widen(in[1], *b);
          return [=] {
            Widen(in[0], *a);
            if (!ahead) Widen(in[1], *b);
            dnnl::sgemm('N', 'N', size, size, size, 1.f, a->data(), size,
                        b->data(), size, 0.f, c->data(), size);
            Narrow(*c, out);
          };
        });
  }
}

void LowPrecisionGemm(const Json& s, const std::vector<float*>& in, float* out,
                      Collector& to) {
  const int64_t size = s["size"];
  const Dims dims = {size, size};
  const auto type = [&](int i) { return TypeOf(s["dtypes"][i]); };
  for (const bool blocked : {false, true}) {
    to.Offer(blocked ? "matmul, weights laid out" : "matmul", !blocked, [&] {
      const memory a({dims, type(0), Tag::ab}, Cpu(), in[0]);
      const memory b({dims, type(1), Tag::ab}, Cpu(), in[1]);
      const memory c({dims, type(2), Tag::ab}, Cpu(), out);
      const auto primitive = Describe<dnnl::matmul>(
          dnnl::primitive_attr(), a.get_desc(),
          blocked ? memory::desc(dims, type(1), Tag::any) : b.get_desc(),
          c.get_desc());
      RefuseReference(primitive);
      return Execute(dnnl::matmul(primitive),
                     {{DNNL_ARG_SRC, a},
                      {DNNL_ARG_WEIGHTS, LaidOut(b, primitive.weights_desc())},
                      {DNNL_ARG_DST, c}});
    });
  }
  if (type(0) == Type::u8) {
    to.Offer("gemm_u8s8s32", true, [&] {
      return [=] {
        const int32_t zero = 0;
        dnnl::gemm_u8s8s32('N', 'N', 'F', size, size, size, 1.f,
                           reinterpret_cast<const uint8_t*>(in[0]), size, 0,
                           reinterpret_cast<const int8_t*>(in[1]), size, 0, 0.f,
                           reinterpret_cast<int32_t*>(out), size, &zero);
      };
    });
  }
  if (type(0) == Type::f16) OfferFloat32(to, size, in, out);
}

void LowPrecisionConv(const Json& s, const std::vector<float*>& in, float* out,
                      Collector& to) {
  const int64_t size = s["size"], cin = s["cin"], cout = s["cout"];
  const Dims weight_dims = {cout, cin, 3, 3};
  for (const bool blocked : {false, true}) {
    to.Offer(
        blocked ? "convolution, weights laid out" : "convolution", !blocked,
        [&] {
          const memory data({{1, cin, size, size}, Type::u8, Tag::nhwc}, Cpu(),
                            in[0]);
          const memory weight({weight_dims, Type::s8, Tag::cdba}, Cpu(), in[1]);
          const memory result({{1, cout, size, size}, Type::s32, Tag::nhwc},
                              Cpu(), out);
          const Dims ones = {1, 1};
          const auto primitive = Describe<dnnl::convolution_forward>(
              dnnl::primitive_attr(), dnnl::prop_kind::forward_inference,
              dnnl::algorithm::convolution_auto, data.get_desc(),
              blocked ? memory::desc(weight_dims, Type::s8, Tag::any)
                      : weight.get_desc(),
              result.get_desc(), ones, ones, ones);
          RefuseReference(primitive);
          return Execute(
              dnnl::convolution_forward(primitive),
              {{DNNL_ARG_SRC, data},
               {DNNL_ARG_WEIGHTS, LaidOut(weight, primitive.weights_desc())},
               {DNNL_ARG_DST, result}});
        });
  }
}

}  // namespace

std::vector<Peer> MakeLowPrecisionPeers(const Json& spec,
                                        const std::vector<float*>& in,
                                        float* out) {
  Collector to;
  if (spec["kind"] == "low_gemm") LowPrecisionGemm(spec, in, out, to);
  if (spec["kind"] == "low_conv") LowPrecisionConv(spec, in, out, to);
  return to.Take();
}

}  // namespace tilefarm::perf

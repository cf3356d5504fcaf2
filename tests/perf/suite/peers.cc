#include "tests/perf/suite/peers.h"

#include <dlfcn.h>

#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "tests/perf/suite/onednn.h"

namespace tilefarm::perf {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
using Json = nlohmann::json;
constexpr auto kF32 = memory::data_type::f32;

memory Plain(const Dims& dims, Tag tag, float* data) {
  return memory({dims, kF32, tag}, Cpu(), data);
}

memory::desc Any(const Dims& dims) { return {dims, kF32, Tag::any}; }

class Collector {
 public:
  // `make` returns the function to run; what throws is not offered.
  template <typename Make>
  void Offer(std::string name, bool plain, Make make) {
    try {
      std::function<void()> run = make();
      run();
      peers_.push_back({std::move(name), plain, std::move(run)});
    } catch (const dnnl::error&) {
      // This library has no such implementation.
    }
  }
  std::vector<Peer> Take() { return std::move(peers_); }

 private:
  std::vector<Peer> peers_;
};

using Arguments = std::unordered_map<int, memory>;

std::function<void()> Execute(const dnnl::primitive& primitive,
                              const Arguments& arguments) {
  return [primitive, arguments] {
    primitive.execute(Stream(), arguments);
    Stream().wait();
  };
}

dnnl::primitive_attr Fused(const std::string& activation) {
  dnnl::post_ops ops;
  if (activation == "relu") {
    ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
  } else if (activation == "gelu") {
    ops.append_eltwise(1.f, dnnl::algorithm::eltwise_gelu_erf, 0.f, 0.f);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  return attributes;
}

// For some layouts and chains there is a reference implementation alone: that
// is no peer.
template <typename Descriptor>
void RefuseReference(const Descriptor& primitive) {
  const std::string kind = primitive.impl_info_str();
  if (kind.rfind("ref", 0) == 0) {
    throw dnnl::error(dnnl_unimplemented, "reference");
  }
}

// cblas_sgemm of a library at hand, or null.
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int,
                       const float*, int, float, float*, int);
Sgemm FindSgemm(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  return reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
}

void Gemm(const Json& s, const std::vector<float*>& in, float* out,
          Collector& to) {
  const int64_t m = s["m"], n = s["n"], k = s["k"], batch = s["batch"];
  const bool transposed = s["transposed"];
  const bool bias = s["bias"];
  const std::string activation = s["activation"];
  const Dims a_dims = batch ? Dims{batch, m, k} : Dims{m, k};
  const Dims b_dims = batch ? Dims{batch, k, n} : Dims{k, n};
  const Dims c_dims = batch ? Dims{batch, m, n} : Dims{m, n};
  const Tag tag = batch ? Tag::abc : Tag::ab;
  const Tag b_tag = batch ? (transposed ? Tag::acb : Tag::abc)
                          : (transposed ? Tag::ba : Tag::ab);

  if (!batch && !bias && activation.empty()) {
    to.Offer("onednn sgemm", true, [=] {
      return [=] {
        dnnl::sgemm('N', transposed ? 'T' : 'N', m, n, k, 1.f, in[0], k, in[1],
                    transposed ? k : n, 0.f, out, n);
      };
    });
    for (const auto& [name, file] :
         {std::pair{"openblas sgemm", "libopenblas.so.0"},
          std::pair{"mkl sgemm", "libmkl_rt.so"}}) {
      const Sgemm sgemm = FindSgemm(file);
      if (sgemm == nullptr) continue;
      to.Offer(name, true, [=] {
        return [=] {
          sgemm(101, 111, transposed ? 112 : 111, m, n, k, 1.f, in[0], k, in[1],
                transposed ? k : n, 0.f, out, n);
        };
      });
    }
  }
  for (const bool blocked : {false, true}) {
    if (blocked && batch) continue;  // no operand is constant
    to.Offer(blocked ? "onednn matmul, weights laid out" : "onednn matmul",
             !blocked, [&] {
               const memory b = Plain(b_dims, b_tag, in[1]);
               const memory a = Plain(a_dims, tag, in[0]);
               const memory c = Plain(c_dims, tag, out);
               const Dims bias_dims = {1, n};
               const auto b_desc = blocked ? Any(b_dims) : b.get_desc();
               const auto desc =
                   bias
                       ? dnnl::matmul::desc(a.get_desc(), b_desc,
                                            {bias_dims, kF32, Tag::ab},
                                            c.get_desc())
                       : dnnl::matmul::desc(a.get_desc(), b_desc, c.get_desc());
               const dnnl::matmul::primitive_desc primitive(
                   desc, Fused(activation), Cpu());
               Arguments arguments = {
                   {DNNL_ARG_SRC, a},
                   {DNNL_ARG_WEIGHTS, LaidOut(b, primitive.weights_desc())},
                   {DNNL_ARG_DST, c}};
               if (bias) {
                 arguments[DNNL_ARG_BIAS] = Plain(bias_dims, Tag::ab, in[2]);
               }
               return Execute(dnnl::matmul(primitive), arguments);
             });
  }
}

// oneDNN names dimensions in the order n, c, h, w whatever their layout.
void Conv(const Json& s, const std::vector<float*>& in, float* out,
          Collector& to) {
  const int64_t size = s["size"], kernel = s["kernel"], stride = s["stride"],
                pad = s["pad"], cin = s["cin"], cout = s["cout"],
                rows = s["out"];
  const bool depthwise = s["depthwise"];
  // Activations in blocks of 16 channels, but for an image's three.
  const bool blocked = s.value("blocked", false);
  const Tag layout = blocked ? Tag::nChw16c : Tag::nhwc;
  const bool image = cin % 16 != 0;
  const memory data =
      Plain({1, cin, size, size}, image ? Tag::nhwc : layout, in[0]);
  const Dims weight_dims = depthwise ? Dims{cin, 1, 1, kernel, kernel}
                                     : Dims{cout, cin, kernel, kernel};
  // Ours are height, width, (in,) out, in blocks as blocked.py says.
  Tag weight_layout = depthwise ? Tag::decab : Tag::cdba;
  if (blocked) {
    weight_layout = depthwise ? Tag::Goihw16g
                    : image   ? Tag::Ohwi16o
                              : Tag::OIhw16i16o;
  }
  const memory weight = Plain(weight_dims, weight_layout, in[1]);
  const memory bias = Plain({cout}, Tag::a, in[2]);
  const memory result = Plain({1, cout, rows, rows}, layout, out);
  for (const auto& [name, algorithm] :
       {std::pair{"direct", dnnl::algorithm::convolution_direct},
        std::pair{"winograd", dnnl::algorithm::convolution_winograd},
        std::pair{"auto", dnnl::algorithm::convolution_auto}}) {
    to.Offer(std::string("onednn ") + name + ", weights laid out", false,
             [&, algorithm = algorithm] {
               const dnnl::convolution_forward::desc desc(
                   dnnl::prop_kind::forward_inference, algorithm,
                   data.get_desc(), Any(weight_dims), bias.get_desc(),
                   result.get_desc(), {stride, stride}, {pad, pad}, {pad, pad});
               const dnnl::convolution_forward::primitive_desc primitive(
                   desc, Fused("relu"), Cpu());
               RefuseReference(primitive);
               return Execute(dnnl::convolution_forward(primitive),
                              {{DNNL_ARG_SRC, data},
                               {DNNL_ARG_WEIGHTS,
                                LaidOut(weight, primitive.weights_desc())},
                               {DNNL_ARG_BIAS, bias},
                               {DNNL_ARG_DST, result}});
             });
  }
}

void Softmax(const Json& s, const std::vector<float*>& in, float* out,
             Collector& to) {
  to.Offer("onednn softmax", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ab, out);
    const dnnl::softmax_v2_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
        from.get_desc(), into.get_desc(), 1);
    return Execute(dnnl::softmax_v2_forward({desc, Cpu()}),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void LayerNorm(const Json& s, const std::vector<float*>& in, float* out,
               Collector& to) {
  to.Offer("onednn layer normalization", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const Dims row = {s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ab, out);
    const dnnl::layer_normalization_forward::desc desc(
        dnnl::prop_kind::forward_inference, from.get_desc(), 1e-5f,
        dnnl::normalization_flags::use_scale |
            dnnl::normalization_flags::use_shift);
    return Execute(dnnl::layer_normalization_forward({desc, Cpu()}),
                   {{DNNL_ARG_SRC, from},
                    {DNNL_ARG_SCALE, Plain(row, Tag::a, in[1])},
                    {DNNL_ARG_SHIFT, Plain(row, Tag::a, in[2])},
                    {DNNL_ARG_DST, into}});
  });
}

void Reduction(const memory& from, const memory& into,
               dnnl::algorithm algorithm, Collector& to) {
  to.Offer("onednn reduction", true, [&] {
    const dnnl::reduction::desc desc(algorithm, from.get_desc(),
                                     into.get_desc(), 0.f, 0.f);
    return Execute(dnnl::reduction({desc, Cpu()}),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void Transpose(const Json& s, const std::vector<float*>& in, float* out,
               Collector& to) {
  to.Offer("onednn reorder", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ba, out);
    return Execute(dnnl::reorder(from, into),
                   {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, into}});
  });
}

// One primitive with the other operations after it, and one for each operation
// of one operand.
void Chain(const Json& s, const std::vector<float*>& in, float* out,
           Collector& to) {
  // Rows, since there is a reference alone for one of 16 million.
  constexpr int64_t kColumns = 4096;
  const Dims dims = {s["count"].get<int64_t>() / kColumns, kColumns};
  const memory x = Plain(dims, Tag::ab, in[0]);
  const memory y = Plain(dims, Tag::ab, in[1]);
  const memory z = Plain(dims, Tag::ab, out);
  const auto eltwise = [&](dnnl::algorithm algorithm, float alpha, float beta,
                           const memory& from, const dnnl::post_ops& ops,
                           std::unordered_map<int, memory> arguments) {
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(ops);
    const dnnl::eltwise_forward::primitive_desc primitive(
        {dnnl::prop_kind::forward_inference, algorithm, from.get_desc(), alpha,
         beta},
        attributes, Cpu());
    RefuseReference(primitive);
    arguments.insert({{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, z}});
    return Execute(dnnl::eltwise_forward(primitive), arguments);
  };
  to.Offer("onednn eltwise with post-operations", true, [&] {
    dnnl::post_ops ops;
    ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    ops.append_binary(dnnl::algorithm::binary_mul, y.get_desc());
    ops.append_binary(dnnl::algorithm::binary_sub, x.get_desc());
    return eltwise(dnnl::algorithm::eltwise_linear, 1.5f, 0.25f, x, ops,
                   {{DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, y},
                    {DNNL_ARG_ATTR_MULTIPLE_POST_OP(2) | DNNL_ARG_SRC_1, x}});
  });
  to.Offer("onednn two eltwise and a binary", true, [&] {
    const auto first =
        eltwise(dnnl::algorithm::eltwise_linear, 1.5f, 0.25f, x, {}, {});
    const auto second =
        eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f, z, {}, {});
    dnnl::post_ops ops;
    ops.append_binary(dnnl::algorithm::binary_sub, x.get_desc());
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(ops);
    const dnnl::binary::primitive_desc primitive(
        {dnnl::algorithm::binary_mul, z.get_desc(), y.get_desc(), z.get_desc()},
        attributes, Cpu());
    RefuseReference(primitive);
    const auto third =
        Execute(dnnl::binary(primitive),
                {{DNNL_ARG_SRC_0, z},
                 {DNNL_ARG_SRC_1, y},
                 {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, x},
                 {DNNL_ARG_DST, z}});
    return [=] {
      first();
      second();
      third();
    };
  });
}

void MaxPool(const Json& s, const std::vector<float*>& in, float* out,
             Collector& to) {
  to.Offer("onednn pooling", true, [&] {
    const int64_t c = s["channels"], size = s["size"], rows = s["out"];
    const memory from = Plain({1, c, size, size}, Tag::nhwc, in[0]);
    const memory into = Plain({1, c, rows, rows}, Tag::nhwc, out);
    const dnnl::pooling_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max,
        from.get_desc(), into.get_desc(), {2, 2}, {3, 3}, {1, 1}, {1, 1});
    return Execute(dnnl::pooling_forward({desc, Cpu()}),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void MeanPool(const Json& s, const std::vector<float*>& in, float* out,
              Collector& to) {
  const int64_t c = s["channels"], size = s["size"];
  const memory from = Plain({1, c, size, size}, Tag::nhwc, in[0]);
  const memory into = Plain({1, c, 1, 1}, Tag::nhwc, out);
  to.Offer("onednn pooling", true, [&] {
    const dnnl::pooling_forward::desc desc(
        dnnl::prop_kind::forward_inference,
        dnnl::algorithm::pooling_avg_exclude_padding, from.get_desc(),
        into.get_desc(), {1, 1}, {size, size}, {0, 0}, {0, 0});
    return Execute(dnnl::pooling_forward({desc, Cpu()}),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
  Reduction(from, into, dnnl::algorithm::reduction_mean, to);
}

}  // namespace

std::vector<Peer> MakePeers(const Json& spec, const std::vector<float*>& in,
                            float* out) {
  Collector to;
  const std::string kind = spec["kind"];
  if (kind == "gemm") Gemm(spec, in, out, to);
  if (kind == "conv") Conv(spec, in, out, to);
  if (kind == "softmax") Softmax(spec, in, out, to);
  if (kind == "layer_norm") LayerNorm(spec, in, out, to);
  if (kind == "row_sums") {
    Reduction(Plain({spec["rows"], spec["columns"]}, Tag::ab, in[0]),
              Plain({spec["rows"], 1}, Tag::ab, out),
              dnnl::algorithm::reduction_sum, to);
  }
  if (kind == "transpose") Transpose(spec, in, out, to);
  if (kind == "chain") Chain(spec, in, out, to);
  if (kind == "max_pool") MaxPool(spec, in, out, to);
  if (kind == "mean_pool") MeanPool(spec, in, out, to);
  return to.Take();
}

}  // namespace tilefarm::perf

#include "tests/perf/suite/peers.h"

#include <cstdint>
#include <dnnl.hpp>

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

dnnl::primitive_attr Fused(const std::string& activation) {
  dnnl::post_ops ops;
  if (activation == "relu") {
    AppendEltwise(ops, dnnl::algorithm::eltwise_relu);
  } else if (activation == "gelu") {
    AppendEltwise(ops, dnnl::algorithm::eltwise_gelu_erf);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  return attributes;
}

// A matrix product with constant weights, as in layers of networks.
void InnerProduct(const Json& s, const std::vector<float*>& in, float* out,
                  Collector& to) {
  const int64_t m = s["m"], n = s["n"], k = s["k"];
  const bool bias = s["bias"];
  to.Offer("inner product, weights laid out", false, [&] {
    const memory a = Plain({m, k}, Tag::ab, in[0]);
    const memory b = Plain({n, k}, s["transposed"] ? Tag::ab : Tag::ba, in[1]);
    const memory c = Plain({m, n}, Tag::ab, out);
    const auto attributes = Fused(s["activation"]);
    constexpr auto kKind = dnnl::prop_kind::forward_inference;
    const auto primitive =
        bias ? Describe<dnnl::inner_product_forward>(
                   attributes, kKind, a.get_desc(), Any({n, k}),
                   memory::desc({n}, kF32, Tag::a), c.get_desc())
             : Describe<dnnl::inner_product_forward>(
                   attributes, kKind, a.get_desc(), Any({n, k}), c.get_desc());
    RefuseReference(primitive);
    Arguments arguments = {
        {DNNL_ARG_SRC, a},
        {DNNL_ARG_WEIGHTS, LaidOut(b, primitive.weights_desc())},
        {DNNL_ARG_DST, c}};
    if (bias) arguments[DNNL_ARG_BIAS] = Plain({n}, Tag::a, in[2]);
    return Execute(dnnl::inner_product_forward(primitive), arguments);
  });
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
    to.Offer("sgemm", true, [=] {
      return [=] {
        dnnl::sgemm('N', transposed ? 'T' : 'N', m, n, k, 1.f, in[0], k, in[1],
                    transposed ? k : n, 0.f, out, n);
      };
    });
  }
  for (const bool blocked : {false, true}) {
    if (blocked && batch) continue;  // no operand is constant
    to.Offer(blocked ? "matmul, weights laid out" : "matmul", !blocked, [&] {
      const memory b = Plain(b_dims, b_tag, in[1]);
      const memory a = Plain(a_dims, tag, in[0]);
      const memory c = Plain(c_dims, tag, out);
      const Dims bias_dims = {1, n};
      const auto b_desc = blocked ? Any(b_dims) : b.get_desc();
      const auto primitive =
          bias ? Describe<dnnl::matmul>(Fused(activation), a.get_desc(), b_desc,
                                        memory::desc(bias_dims, kF32, Tag::ab),
                                        c.get_desc())
               : Describe<dnnl::matmul>(Fused(activation), a.get_desc(), b_desc,
                                        c.get_desc());
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
  if (!batch) InnerProduct(s, in, out, to);
}

// Activations in the layout that a primitive needs; if this is not the given
// one, they are reordered in every call.
class Reordered {
 public:
  enum Direction { kInto, kOutOf };
  Reordered(memory stated, const memory::desc& wanted, Direction direction) {
    const bool same = stated.get_desc() == wanted;
    laid_out_ = same ? stated : memory(wanted, Cpu());
    if (same) return;
    memory from = direction == kInto ? stated : laid_out_;
    memory into = direction == kInto ? laid_out_ : stated;
    reorder_ = Execute(dnnl::reorder(from, into),
                       {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, into}});
  }
  const memory& laid_out() const { return laid_out_; }
  void Run() const {
    if (reorder_) reorder_();
  }

 private:
  memory laid_out_;
  std::function<void()> reorder_;
};

// oneDNN orders dimensions as n, c, h, w in any layout.
void Conv(const Json& s, const std::vector<float*>& in, float* out,
          Collector& to) {
  const int64_t size = s["size"], kernel = s["kernel"], stride = s["stride"],
                pad = s["pad"], cin = s["cin"], cout = s["cout"],
                rows = s["out"];
  const bool depthwise = s["depthwise"];
  // Activations in blocks of 16 channels, except an image's three channels.
  const bool blocked = s.value("blocked", false);
  const Tag layout = blocked ? Tag::nChw16c : Tag::nhwc;
  const bool image = cin % 16 != 0;
  const Dims data_dims = {1, cin, size, size};
  const Dims result_dims = {1, cout, rows, rows};
  const memory data = Plain(data_dims, image ? Tag::nhwc : layout, in[0]);
  const Dims weight_dims = depthwise ? Dims{cin, 1, 1, kernel, kernel}
                                     : Dims{cout, cin, kernel, kernel};
  // The program's order is height, width, (in,) out, in blocks as in
  // blocked.py.
  Tag weight_layout = depthwise ? Tag::decab : Tag::cdba;
  if (blocked) {
    weight_layout = depthwise ? Tag::Goihw16g
                    : image   ? Tag::Ohwi16o
                              : Tag::OIhw16i16o;
  }
  // Goes through the plain layout, since not every reorder exists.
  const memory weight =
      LaidOut(Plain(weight_dims, weight_layout, in[1]),
              {weight_dims, kF32, depthwise ? Tag::abcde : Tag::abcd});
  const memory bias = Plain({cout}, Tag::a, in[2]);
  const memory result = Plain(result_dims, layout, out);
  const auto offer = [&](const std::string& name, dnnl::algorithm algorithm,
                         bool reordered) {
    to.Offer(name + ", weights laid out", false, [&] {
      const auto primitive = Describe<dnnl::convolution_forward>(
          Fused("relu"), dnnl::prop_kind::forward_inference, algorithm,
          reordered ? Any(data_dims) : data.get_desc(), Any(weight_dims),
          bias.get_desc(), reordered ? Any(result_dims) : result.get_desc(),
          Dims{stride, stride}, Dims{pad, pad}, Dims{pad, pad});
      RefuseReference(primitive);
      const Reordered from(data, primitive.src_desc(), Reordered::kInto);
      const Reordered into(result, primitive.dst_desc(), Reordered::kOutOf);
      const auto convolution = Execute(
          dnnl::convolution_forward(primitive),
          {{DNNL_ARG_SRC, from.laid_out()},
           {DNNL_ARG_WEIGHTS, LaidOut(weight, primitive.weights_desc())},
           {DNNL_ARG_BIAS, bias},
           {DNNL_ARG_DST, into.laid_out()}});
      return [=] {
        from.Run();
        convolution();
        into.Run();
      };
    });
  };
  for (const auto& [name, algorithm] :
       {std::pair{"direct", dnnl::algorithm::convolution_direct},
        std::pair{"winograd", dnnl::algorithm::convolution_winograd},
        std::pair{"auto", dnnl::algorithm::convolution_auto}}) {
    offer(name, algorithm, false);
    // Some layouts have no other algorithms.
    if (algorithm == dnnl::algorithm::convolution_winograd ||
        (image && blocked)) {
      offer(std::string(name) + " between reorders", algorithm, true);
    }
  }
  if (kernel == 1 && stride == 1 && !blocked) {
    Gemm({{"m", size * size},
          {"n", cout},
          {"k", cin},
          {"batch", 0},
          {"bias", true},
          {"activation", "relu"},
          {"transposed", false}},
         in, out, to);
  }
}

void Softmax(const Json& s, const std::vector<float*>& in, float* out,
             Collector& to) {
  to.Offer("softmax", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ab, out);
    const auto primitive = Describe<SoftmaxPrimitive>(
        dnnl::primitive_attr(), dnnl::prop_kind::forward_inference,
        dnnl::algorithm::softmax_accurate, from.get_desc(), into.get_desc(), 1);
    return Execute(SoftmaxPrimitive(primitive),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void LayerNorm(const Json& s, const std::vector<float*>& in, float* out,
               Collector& to) {
  to.Offer("layer normalization", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const Dims row = {s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ab, out);
    const auto primitive =
        DescribeLayerNormalization(from.get_desc(), into.get_desc(), 1e-5f);
    return Execute(dnnl::layer_normalization_forward(primitive),
                   {{DNNL_ARG_SRC, from},
                    {DNNL_ARG_SCALE, Plain(row, Tag::a, in[1])},
                    {DNNL_ARG_SHIFT, Plain(row, Tag::a, in[2])},
                    {DNNL_ARG_DST, into}});
  });
}

void Reduction(const memory& from, const memory& into,
               dnnl::algorithm algorithm, Collector& to) {
  to.Offer("reduction", true, [&] {
    const auto primitive =
        Describe<dnnl::reduction>(dnnl::primitive_attr(), algorithm,
                                  from.get_desc(), into.get_desc(), 0.f, 0.f);
    return Execute(dnnl::reduction(primitive),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void Transpose(const Json& s, const std::vector<float*>& in, float* out,
               Collector& to) {
  to.Offer("reorder", true, [&] {
    const Dims dims = {s["rows"], s["columns"]};
    const memory from = Plain(dims, Tag::ab, in[0]);
    const memory into = Plain(dims, Tag::ba, out);
    return Execute(dnnl::reorder(from, into),
                   {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, into}});
  });
}

// One primitive with the other operations as post-ops, and one for each
// operation of one operand.
void Chain(const Json& s, const std::vector<float*>& in, float* out,
           Collector& to) {
  // Use rows, since one row of 16 million has only a reference implementation.
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
    const auto primitive = DescribeEltwise(
        attributes, algorithm, from.get_desc(), z.get_desc(), alpha, beta);
    RefuseReference(primitive);
    arguments.insert({{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, z}});
    return Execute(dnnl::eltwise_forward(primitive), arguments);
  };
  to.Offer("eltwise with post-operations", true, [&] {
    dnnl::post_ops ops;
    AppendEltwise(ops, dnnl::algorithm::eltwise_relu);
    ops.append_binary(dnnl::algorithm::binary_mul, y.get_desc());
    ops.append_binary(dnnl::algorithm::binary_sub, x.get_desc());
    return eltwise(dnnl::algorithm::eltwise_linear, 1.5f, 0.25f, x, ops,
                   {{DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, y},
                    {DNNL_ARG_ATTR_MULTIPLE_POST_OP(2) | DNNL_ARG_SRC_1, x}});
  });
  to.Offer("two eltwise and a binary", true, [&] {
    const auto first =
        eltwise(dnnl::algorithm::eltwise_linear, 1.5f, 0.25f, x, {}, {});
    const auto second =
        eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f, z, {}, {});
    dnnl::post_ops ops;
    ops.append_binary(dnnl::algorithm::binary_sub, x.get_desc());
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(ops);
    const auto primitive =
        Describe<dnnl::binary>(attributes, dnnl::algorithm::binary_mul,
                               z.get_desc(), y.get_desc(), z.get_desc());
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
  to.Offer("pooling", true, [&] {
    const int64_t c = s["channels"], size = s["size"], rows = s["out"];
    const memory from = Plain({1, c, size, size}, Tag::nhwc, in[0]);
    const memory into = Plain({1, c, rows, rows}, Tag::nhwc, out);
    const Dims two = {2, 2}, one = {1, 1};
    const auto primitive = Describe<PoolingPrimitive>(
        dnnl::primitive_attr(), dnnl::prop_kind::forward_inference,
        dnnl::algorithm::pooling_max, from.get_desc(), into.get_desc(), two,
        Dims{3, 3}, Dims{0, 0}, one, one);
    return Execute(PoolingPrimitive(primitive),
                   {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, into}});
  });
}

void MeanPool(const Json& s, const std::vector<float*>& in, float* out,
              Collector& to) {
  const int64_t c = s["channels"], size = s["size"];
  const memory from = Plain({1, c, size, size}, Tag::nhwc, in[0]);
  const memory into = Plain({1, c, 1, 1}, Tag::nhwc, out);
  to.Offer("pooling", true, [&] {
    const Dims none = {0, 0};
    const auto primitive = Describe<PoolingPrimitive>(
        dnnl::primitive_attr(), dnnl::prop_kind::forward_inference,
        dnnl::algorithm::pooling_avg_exclude_padding, from.get_desc(),
        into.get_desc(), Dims{1, 1}, Dims{size, size}, none, none, none);
    return Execute(PoolingPrimitive(primitive),
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

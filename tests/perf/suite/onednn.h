// Shared by peers made of oneDNN's primitives, for versions 2 and 3 of its
// interface: the same sources are compiled against either. Version 3 is in a
// plug-in of its own (plug_in.cc), since both have the same symbols.
#ifndef TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_
#define TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_

#include <dnnl.hpp>
#include <functional>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/perf/huge_memory.h"
#include "tests/perf/suite/peers.h"

namespace tilefarm::perf {

inline const dnnl::engine& Cpu() {
  static const auto* const engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

inline dnnl::stream& Stream() {
  static auto* const stream = new dnnl::stream(Cpu());
  return *stream;
}

// For example "onednn-2.6", from the library that is called.
inline std::string OneDnnName() {
  const dnnl_version_t* const version = dnnl_version();
  return "onednn-" + std::to_string(version->major) + "." +
         std::to_string(version->minor);
}

// `plain` in the layout that the primitive needs; a copy if they differ.
inline dnnl::memory LaidOut(dnnl::memory plain,
                            const dnnl::memory::desc& wanted) {
  if (plain.get_desc() == wanted) return plain;
  // Lives as long as the process.
  void* data = AllocateConstants(wanted.get_size());
  if (data == nullptr) throw std::bad_alloc();
  dnnl::memory result(wanted, Cpu(), data);
  dnnl::reorder(plain, result).execute(Stream(), plain, result);
  Stream().wait();
  return result;
}

class Collector {
 public:
  // `name` is that of the primitive; `make` returns the function to run. If it
  // throws, the library has no such implementation and the peer is left out.
  template <typename Make>
  void Offer(const std::string& name, bool plain, Make make) {
    try {
      std::function<void()> run = make();
      run();
      peers_.push_back({OneDnnName() + " " + name, plain, std::move(run)});
    } catch (const dnnl::error&) {
    }
  }
  std::vector<Peer> Take() { return std::move(peers_); }

 private:
  std::vector<Peer> peers_;
};

// Some types, layouts and chains have only a reference implementation, which is
// not a useful peer.
template <typename Descriptor>
void RefuseReference(const Descriptor& primitive) {
  const std::string kind = primitive.impl_info_str();
  if (kind.rfind("ref", 0) == 0) {
    throw dnnl::error(dnnl_unimplemented, "reference");
  }
}

using Arguments = std::unordered_map<int, dnnl::memory>;

inline std::function<void()> Execute(const dnnl::primitive& primitive,
                                     const Arguments& arguments) {
  return [primitive, arguments] {
    primitive.execute(Stream(), arguments);
    Stream().wait();
  };
}

// The descriptor of a primitive of `arguments`, whose order is the same in both
// interfaces except for the functions below.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc Describe(
    const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {Cpu(), arguments..., attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, Cpu()};
#endif
}

#if DNNL_VERSION_MAJOR >= 3
using SoftmaxPrimitive = dnnl::softmax_forward;
using PoolingPrimitive = dnnl::pooling_forward;  // with dilation
#else
using SoftmaxPrimitive = dnnl::softmax_v2_forward;
using PoolingPrimitive = dnnl::pooling_v2_forward;
#endif

inline dnnl::eltwise_forward::primitive_desc DescribeEltwise(
    const dnnl::primitive_attr& attributes, dnnl::algorithm algorithm,
    const dnnl::memory::desc& from,
    [[maybe_unused]] const dnnl::memory::desc& into, float alpha, float beta) {
  return Describe<dnnl::eltwise_forward>(
      attributes, dnnl::prop_kind::forward_inference, algorithm, from,
#if DNNL_VERSION_MAJOR >= 3
      into,
#endif
      alpha, beta);
}

// With a scale and a shift.
inline dnnl::layer_normalization_forward::primitive_desc
DescribeLayerNormalization(const dnnl::memory::desc& from,
                           [[maybe_unused]] const dnnl::memory::desc& into,
                           float epsilon) {
  return Describe<dnnl::layer_normalization_forward>(
      dnnl::primitive_attr(), dnnl::prop_kind::forward_inference, from,
#if DNNL_VERSION_MAJOR >= 3
      into,
#endif
      epsilon,
      dnnl::normalization_flags::use_scale |
          dnnl::normalization_flags::use_shift);
}

inline void AppendEltwise(dnnl::post_ops& ops, dnnl::algorithm algorithm) {
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(algorithm, 0.f, 0.f);
#else
  ops.append_eltwise(1.f, algorithm, 0.f, 0.f);
#endif
}

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_

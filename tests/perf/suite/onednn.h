// What peers made of oneDNN's primitives share.
#ifndef TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_
#define TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_

#include <dnnl.hpp>

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

// `plain` in the layout that the primitive wants, copied where they differ.
inline dnnl::memory LaidOut(dnnl::memory plain,
                            const dnnl::memory::desc& wanted) {
  if (plain.get_desc() == wanted) return plain;
  dnnl::memory result(wanted, Cpu());
  dnnl::reorder(plain, result).execute(Stream(), plain, result);
  Stream().wait();
  return result;
}

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_ONEDNN_H_

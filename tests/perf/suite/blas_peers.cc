// Declares the used parts of CBLAS and of the extensions of OpenBLAS and MKL,
// so that neither library is needed for building.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "tests/perf/suite/peers.h"

namespace tilefarm::perf {
namespace {

using Json = nlohmann::json;

// CBLAS's enumerations.
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112, kPacked = 151,
              kOperandB = 162;
// MKL's vector functions, at most 4 units in the last place off.
constexpr int64_t kLowAccuracy = 1;

using Sgemm = void(int layout, int transpose_a, int transpose_b, int m, int n,
                   int k, float alpha, const float* a, int lda, const float* b,
                   int ldb, float beta, float* c, int ldc);
using Sgemv = void(int layout, int transpose, int rows, int columns,
                   float alpha, const float* a, int lda, const float* x,
                   int step_x, float beta, float* y, int step_y);
using SgemmBatch = void(int layout, int transpose_a, int transpose_b, int m,
                        int n, int k, float alpha, const float* a, int lda,
                        int stride_a, const float* b, int ldb, int stride_b,
                        float beta, float* c, int ldc, int stride_c, int count);
using PackSize = size_t(int operand, int m, int n, int k);
using Pack = void(int layout, int operand, int transpose, int m, int n, int k,
                  float alpha, const float* from, int ld, float* to);
using Compute = void(int layout, int transpose_a, int transpose_b, int m, int n,
                     int k, const float* a, int lda, const float* b, int ldb,
                     float beta, float* c, int ldc);
using JitSgemm = void(void* jitter, float* a, float* b, float* c);
using JitCreate = int(void** jitter, int layout, int transpose_a,
                      int transpose_b, int m, int n, int k, float alpha,
                      int lda, int ldb, float beta, int ldc);
using JitGet = JitSgemm*(const void* jitter);
using MklCopy = void(char layout, char transpose, size_t rows, size_t columns,
                     float alpha, const float* a, size_t lda, float* b,
                     size_t ldb);
using OpenBlasCopy = void(int layout, int transpose, int rows, int columns,
                          float alpha, const float* a, int lda, float* b,
                          int ldb);
using VectorCdf = void(int n, const float* x, float* y, int64_t mode);
using VectorMul = void(int n, const float* x, const float* y, float* z,
                       int64_t mode);

class Library {
 public:
  Library(std::string name, void* handle)
      : name_(std::move(name)), handle_(handle) {}

  template <typename Function>
  Function* Find(const char* symbol) const {
    return reinterpret_cast<Function*>(dlsym(handle_, symbol));
  }
  void Offer(const std::string& what, bool plain, std::function<void()> run) {
    peers_.push_back({name_ + " " + what, plain, std::move(run)});
  }
  std::vector<Peer> Take() { return std::move(peers_); }

 private:
  std::string name_;
  void* handle_;  // as long as the process
  std::vector<Peer> peers_;
};

// What other libraries fuse: the bias is written first and added to, and the
// activation is a separate pass.
struct Epilogue {
  int64_t m, n;
  const float* bias;  // or null
  std::string activation;
  VectorCdf* cdf;  // only for "gelu"
  VectorMul* mul;
  std::shared_ptr<std::vector<float>> scratch;

  float beta() const { return bias == nullptr ? 0.f : 1.f; }
  void Before(float* out) const {
    if (bias == nullptr) return;
    for (int64_t i = 0; i < m; ++i) std::copy_n(bias, n, out + i * n);
  }
  void After(float* out) const {
    const int count = static_cast<int>(m * n);
    if (activation == "relu") {
      for (int i = 0; i < count; ++i) out[i] = std::max(out[i], 0.f);
    } else if (activation == "gelu") {
      cdf(count, out, scratch->data(), kLowAccuracy);
      mul(count, out, scratch->data(), out, kLowAccuracy);
    }
  }
};

void OfferBatch(const Json& s, const std::vector<float*>& in, float* out,
                Library& to) {
  const int m = s["m"], n = s["n"], k = s["k"], batch = s["batch"];
  const int transpose = s["transposed"] ? kTransposed : kPlain;
  const int ldb = s["transposed"] ? k : n;
  if (auto* sgemm = to.Find<Sgemm>("cblas_sgemm")) {
    to.Offer("sgemm one by one", true, [=] {
      for (int64_t i = 0; i < batch; ++i) {
        sgemm(kRowMajor, kPlain, transpose, m, n, k, 1.f, in[0] + i * m * k, k,
              in[1] + i * k * n, ldb, 0.f, out + i * m * n, n);
      }
    });
  }
  if (auto* sgemm = to.Find<SgemmBatch>("cblas_sgemm_batch_strided")) {
    to.Offer("sgemm_batch_strided", true, [=] {
      sgemm(kRowMajor, kPlain, transpose, m, n, k, 1.f, in[0], k, m * k, in[1],
            ldb, k * n, 0.f, out, n, m * n, batch);
    });
  }
}

void OfferProduct(const Json& s, const std::vector<float*>& in, float* out,
                  Library& to) {
  const int m = s["m"], n = s["n"], k = s["k"];
  const bool transposed = s["transposed"];
  const int transpose = transposed ? kTransposed : kPlain;
  const int ldb = transposed ? k : n;
  Epilogue epilogue = {m,
                       n,
                       s["bias"] ? in[2] : nullptr,
                       s["activation"],
                       to.Find<VectorCdf>("vmsCdfNorm"),
                       to.Find<VectorMul>("vmsMul"),
                       nullptr};
  if (epilogue.activation == "gelu") {
    if (epilogue.cdf == nullptr || epilogue.mul == nullptr) return;
    epilogue.scratch =
        std::make_shared<std::vector<float>>(static_cast<size_t>(m) * n);
  }
  const auto offer = [&](const std::string& name, bool plain,
                         const auto& product) {
    to.Offer(name, plain, [=] {
      epilogue.Before(out);
      product(epilogue.beta());
      epilogue.After(out);
    });
  };
  if (auto* sgemm = to.Find<Sgemm>("cblas_sgemm")) {
    offer("sgemm", true, [=](float beta) {
      sgemm(kRowMajor, kPlain, transpose, m, n, k, 1.f, in[0], k, in[1], ldb,
            beta, out, n);
    });
  }
  auto* sgemv = to.Find<Sgemv>("cblas_sgemv");
  if (m == 1 && sgemv != nullptr) {
    offer("sgemv", true, [=](float beta) {
      sgemv(kRowMajor, transposed ? kPlain : kTransposed, transposed ? n : k,
            transposed ? k : n, 1.f, in[1], ldb, in[0], 1, beta, out, 1);
    });
  }
  auto* size = to.Find<PackSize>("cblas_sgemm_pack_get_size");
  auto* pack = to.Find<Pack>("cblas_sgemm_pack");
  auto* compute = to.Find<Compute>("cblas_sgemm_compute");
  if (size != nullptr && pack != nullptr && compute != nullptr) {
    const std::shared_ptr<void> packed(
        ::operator new(size(kOperandB, m, n, k), std::align_val_t(64)),
        [](void* p) { ::operator delete(p, std::align_val_t(64)); });
    pack(kRowMajor, kOperandB, transpose, m, n, k, 1.f, in[1], ldb,
         static_cast<float*>(packed.get()));
    offer("sgemm_compute, weights laid out", false, [=](float beta) {
      compute(kRowMajor, kPlain, kPacked, m, n, k, in[0], k,
              static_cast<const float*>(packed.get()), ldb, beta, out, n);
    });
  }
  auto* create = to.Find<JitCreate>("mkl_cblas_jit_create_sgemm");
  auto* get = to.Find<JitGet>("mkl_jit_get_sgemm_ptr");
  void* jitter = nullptr;
  // Zero: the library generated code for these sizes, which must be small.
  if (create != nullptr && get != nullptr &&
      create(&jitter, kRowMajor, kPlain, transpose, m, n, k, 1.f, k, ldb,
             epilogue.beta(), n) == 0) {
    offer("jit_sgemm", true, [=, kernel = get(jitter)](float) {
      kernel(jitter, in[0], in[1], out);
    });
  }
}

// Sums over the columns of a matrix, times `scale`, or over its rows.
void OfferSums(int rows, int columns, bool over_columns, float scale,
               const float* in, float* out, Library& to) {
  auto* sgemv = to.Find<Sgemv>("cblas_sgemv");
  if (sgemv == nullptr) return;
  const auto ones =
      std::make_shared<std::vector<float>>(over_columns ? columns : rows, 1.f);
  to.Offer("sgemv of ones", true, [=] {
    sgemv(kRowMajor, over_columns ? kPlain : kTransposed, rows, columns, scale,
          in, columns, ones->data(), 1, 0.f, out, 1);
  });
}

void OfferTranspose(int rows, int columns, const float* in, float* out,
                    Library& to) {
  if (auto* copy = to.Find<MklCopy>("MKL_Somatcopy")) {
    to.Offer("somatcopy", true, [=] {
      copy('R', 'T', rows, columns, 1.f, in, columns, out, rows);
    });
  } else if (auto* copy = to.Find<OpenBlasCopy>("cblas_somatcopy")) {
    to.Offer("somatcopy", true, [=] {
      copy(kRowMajor, kTransposed, rows, columns, 1.f, in, columns, out, rows);
    });
  }
}

}  // namespace

std::vector<Peer> MakeBlasPeers(const std::string& library, void* handle,
                                const Json& spec, const std::vector<float*>& in,
                                float* out) {
  Library to(library, handle);
  const std::string kind = spec["kind"];
  if (kind == "gemm" && spec["batch"] != 0) OfferBatch(spec, in, out, to);
  if (kind == "gemm" && spec["batch"] == 0) OfferProduct(spec, in, out, to);
  if (kind == "row_sums") {
    OfferSums(spec["rows"], spec["columns"], true, 1.f, in[0], out, to);
  }
  if (kind == "mean_pool") {
    const int size = spec["size"], pixels = size * size;
    OfferSums(pixels, spec["channels"], false, 1.f / pixels, in[0], out, to);
  }
  if (kind == "transpose") {
    OfferTranspose(spec["rows"], spec["columns"], in[0], out, to);
  }
  return to.Take();
}

}  // namespace tilefarm::perf

// Vector loads whose lanes are apart: every lane has its element, and nothing
// outside of the first and last lane that exist is touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

// Two pages with one after and one before them that nobody may touch.
class Pages {
 public:
  Pages() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    begin_ = static_cast<char*>(mmap(nullptr, 4 * page_, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(begin_ + page_, 2 * page_, PROT_READ | PROT_WRITE), 0);
  }
  ~Pages() { munmap(begin_, 4 * page_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const { return begin_ + page_; }
  size_t size() const { return 2 * page_; }

 private:
  const size_t page_;
  char* begin_;
};

// Lanes of one load; `active`: those that exist.
struct Shape {
  int lanes;
  int active;
};
constexpr Shape kShapes[] = {{2, 2},   {3, 3},   {4, 4},   {4, 1},   {5, 5},
                             {8, 8},   {8, 7},   {14, 14}, {16, 16}, {16, 14},
                             {16, 1},  {17, 17}, {28, 28}, {32, 32}, {32, 28},
                             {32, 10}, {48, 48}, {64, 51}};

struct Load {
  Shape shape;
  int64_t first = 0;   // element of lane 0
  bool known = false;  // which lanes exist, while compiling
};

class StridedLoad
    : public testing::TestWithParam<std::tuple<std::string, int>> {};

// A kernel of many loads, some at the start of the pages and some at their end.
template <typename T>
void Check(const std::string& target, int stride, DataType dtype) {
  const Pages pages;
  const auto elements = static_cast<int64_t>(pages.size() / sizeof(T));
  std::vector<Load> loads;
  int64_t total = 0;
  for (const Shape& shape : kShapes) {
    const int64_t reach = int64_t{stride} * (shape.active - 1);
    // The first element is that of lane 0 or, of a negative stride, the last's.
    const int64_t lowest = reach < 0 ? -reach : 0;
    const int64_t highest = elements - 1 - (reach > 0 ? reach : 0);
    for (const int64_t first : {lowest, highest}) {
      for (const bool known : {true, false}) {
        loads.push_back({shape, first, known});
        total += shape.lanes;
      }
    }
  }
  const auto in = ir::MakeBuffer("in", dtype, {elements});
  const auto out = ir::MakeBuffer("out", dtype, {total});
  const auto actives = ir::MakeBuffer("actives", DataType::Int(64),
                                      {static_cast<int64_t>(loads.size())});
  std::vector<int64_t> counts;
  std::vector<ir::Stmt> stmts;
  int64_t at = 0;
  for (const auto& [shape, first, known] : loads) {
    Expr exists;
    if (!known || shape.active < shape.lanes) {
      exists = ir::MakeBinary(
          ir::BinaryOp::kLT,
          ir::MakeRamp(IntConst(0), IntConst(1), shape.lanes),
          ir::MakeBroadcast(
              known ? IntConst(shape.active)
                    : ir::Load(actives,
                               {IntConst(static_cast<int64_t>(counts.size()))}),
              shape.lanes));
    }
    counts.push_back(shape.active);
    const Expr value = std::make_shared<const ir::LoadNode>(
        in,
        std::vector<Expr>{
            ir::MakeRamp(IntConst(first), IntConst(stride), shape.lanes)},
        dtype.with_lanes(shape.lanes), exists);
    stmts.push_back(ir::MakeStore(
        out, {ir::MakeRamp(IntConst(at), IntConst(1), shape.lanes)}, value));
    at += shape.lanes;
  }
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {in, actives, out};
  function->body = ir::MakeSeq(std::move(stmts));
  Options options;
  options.target = *target::Parse(target);
  const auto kernel = Kernel::Build(function, options);
  ASSERT_TRUE(kernel.ok()) << kernel.status();

  auto* data = reinterpret_cast<T*>(pages.data());
  for (int64_t i = 0; i < elements; ++i) data[i] = static_cast<T>(i * 7 + 1);
  std::vector<T> got(static_cast<size_t>(total), T{99});
  ASSERT_EQ(kernel->Call("kernel", pages.data(), counts.data(), got.data()), 0);
  at = 0;
  for (const auto& [shape, first, known] : loads) {
    for (int lane = 0; lane < shape.lanes; ++lane, ++at) {
      const T want = lane < shape.active ? data[first + stride * lane] : T{0};
      ASSERT_EQ(got[static_cast<size_t>(at)], want)
          << shape.lanes << " lanes, " << shape.active
          << " of which exist, from " << first << ": lane " << lane
          << (known ? "" : ", mask not known while compiling");
    }
  }
}

TEST_P(StridedLoad, ReadsItsLanesAndNothingElse) {
  const auto& [target, stride] = GetParam();
  Check<float>(target, stride, DataType::Float(32));
  Check<double>(target, stride, DataType::Float(64));
  Check<int8_t>(target, stride, DataType::Int(8));
  Check<int16_t>(target, stride, DataType::Int(16));
}

std::vector<std::string> Targets() {
  std::vector<std::string> targets = {"host,cores=1"};
#ifdef __x86_64__
  // Every machine that builds this has the first.
  targets.push_back("x86-64:x86-64-v2,cores=1");
  if (__builtin_cpu_supports("x86-64-v3")) {
    targets.push_back("x86-64:x86-64-v3,cores=1");
  }
#endif
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Strides, StridedLoad,
                         testing::Combine(testing::ValuesIn(Targets()),
                                          testing::Values(2, 3, 4, 5, -2)));

}  // namespace
}  // namespace tilefarm::codegen

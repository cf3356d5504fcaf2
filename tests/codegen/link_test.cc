// The artifact as a file: its exports and needed libraries, and that its bytes
// are deterministic.
#include "compiler/codegen/link.h"

#include <cstdlib>
#include <thread>

#include "compiler/codegen/c_header.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/target/isa.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {
namespace {

using ir::IntConst;

constexpr ir::DataType kF32 = ir::DataType::Float(32);

Options TestOptions(const char* target = "x86-64:skylake,cores=4") {
  Options options;
  options.target = *target::Parse(target);
  return options;
}

// out[i] = op(in[i]), parallel.
ir::PrimFuncPtr Elementwise(ir::Intrinsic op,
                            ir::ForKind kind = ir::ForKind::kParallel) {
  const auto in = ir::MakeBuffer("in", kF32, {64});
  const auto out = ir::MakeBuffer("out", kF32, {64});
  const auto i = ir::MakeVar("i");
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {in, out};
  function->body = ir::MakeFor(
      i, IntConst(64),
      ir::MakeStore(out, {i}, ir::MakeCall(op, {ir::Load(in, {i})})), kind);
  return function;
}

absl::StatusOr<std::string> Build(const ir::PrimFuncPtr& function,
                                  const std::string& symbol = "kernel",
                                  const Options& options = TestOptions()) {
  const std::vector<LoweredFunction> functions = {{function, symbol}};
  TF_ASSIGN_OR_RETURN(const std::string object, EmitObject(functions, options));
  return LinkSharedObject({&object, 1}, options.target);
}

struct Dynamic {
  std::vector<std::string> exported, needed;
};
Dynamic Inspect(const std::string& bytes) {
  Dynamic result;
  auto file = llvm::object::ELFObjectFile<llvm::object::ELF64LE>::create(
      llvm::MemoryBufferRef(bytes, "artifact"));
  if (!file) {
    ADD_FAILURE() << llvm::toString(file.takeError());
    return result;
  }
  for (const auto& symbol : file->getDynamicSymbolIterators()) {
    const auto flags = llvm::cantFail(symbol.getFlags());
    if (flags & llvm::object::BasicSymbolRef::SF_Undefined) continue;
    result.exported.push_back(llvm::cantFail(symbol.getName()).str());
  }
  std::vector<uint64_t> offsets;
  std::string strings;
  for (const auto& section : file->sections()) {
    const std::string name = llvm::cantFail(section.getName()).str();
    if (name == ".dynstr") strings = llvm::cantFail(section.getContents());
    if (name != ".dynamic") continue;
    const llvm::StringRef data = llvm::cantFail(section.getContents());
    const auto* entry = reinterpret_cast<const uint64_t*>(data.data());
    for (size_t i = 0; i + 1 < data.size() / 8; i += 2) {
      if (entry[i] == 1) offsets.push_back(entry[i + 1]);  // DT_NEEDED
    }
  }
  for (uint64_t offset : offsets) {
    result.needed.emplace_back(strings.c_str() + offset);
  }
  return result;
}

TEST(Link, ExportsOnlyTheKernelsNames) {
  const auto bytes = Build(Elementwise(ir::Intrinsic::kTan), "my_kernel");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const Dynamic dynamic = Inspect(*bytes);
  EXPECT_THAT(dynamic.exported, testing::ElementsAre("my_kernel"));
  EXPECT_THAT(dynamic.needed,
              testing::UnorderedElementsAre("libc.so.6", "libm.so.6"));
}

TEST(Link, NeedsOnlyWhatItUses) {
  const auto bytes =
      Build(Elementwise(ir::Intrinsic::kExp, ir::ForKind::kSerial), "kernel");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(Inspect(*bytes).needed, testing::IsEmpty());
}

TEST(Link, SameInputSameBytes) {
  const auto first = Build(Elementwise(ir::Intrinsic::kTan));
  const auto second = Build(Elementwise(ir::Intrinsic::kTan));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first, *second);
  const auto digest = CodeDigest(*first);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->size(), 64);
  const auto other = Build(Elementwise(ir::Intrinsic::kSinh));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*CodeDigest(*other), *digest);
}

TEST(Link, CodeDigestOfGarbageIsAnError) {
  EXPECT_EQ(CodeDigest("garbage").status().code(), absl::StatusCode::kInternal);
}

TEST(Link, GarbageObjectIsAnErrorAndTheLinkerGoesOn) {
  const std::string garbage = "garbage";
  EXPECT_EQ(
      LinkSharedObject({&garbage, 1}, TestOptions().target).status().code(),
      absl::StatusCode::kInternal);
  EXPECT_TRUE(Build(Elementwise(ir::Intrinsic::kExp)).ok());
}

// LLD sets LLVM's options back; target machines belong to their thread.
TEST(Link, SharedAddressesOfGpusHave32BitsAfterLinkingToo) {
  ASSERT_TRUE(Build(Elementwise(ir::Intrinsic::kExp)).ok());
  std::thread([] {
    const auto machine = GetTargetMachine(*target::Parse("cuda:sm_90a"));
    ASSERT_TRUE(machine.ok()) << machine.status();
    const llvm::DataLayout layout = (*machine)->createDataLayout();
    for (const unsigned space : {3u, 5u}) {
      EXPECT_EQ(layout.getPointerSizeInBits(space), 32u) << space;
    }
    EXPECT_EQ(layout.getPointerSizeInBits(1), 64u);
  }).join();
}

TEST(Link, SymbolOfACalledLibraryFunctionIsRefused) {
  const auto bytes = Build(Elementwise(ir::Intrinsic::kTan), "tanf");
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Build(Elementwise(ir::Intrinsic::kTan), "tan").ok());
}

TEST(Link, EveryKindOfTargetThatIsListedHasCodeGeneration) {
  for (const std::string& kind : target::KindNames()) {
    // Its code is that of kernels: tests/gpu.
    if (target::Parse(kind)->is_gpu()) continue;
    const auto bytes = Build(Elementwise(ir::Intrinsic::kExp), "kernel",
                             TestOptions(kind.c_str()));
    EXPECT_TRUE(bytes.ok()) << kind << ": " << bytes.status();
  }
  EXPECT_THAT(
      std::string(target::Parse("mips:r6").status().message()),
      testing::HasSubstr("generates no code for the target kind 'mips'; it "
                         "does for host, x86-64, aarch64, armv7, riscv64, "
                         "wasm32, cuda, opencl, sim"));
}

TEST(Header, DocumentsBuffersAndThreads) {
  const LoweredFunction function = {
      Elementwise(ir::Intrinsic::kExp, ir::ForKind::kSerial), "my_exp"};
  const target::Target target = TestOptions().target;
  std::vector<Signature> functions = {SignatureOf(function, function, target)};
  const std::string header = CHeader(functions, target);
  EXPECT_THAT(header,
              testing::HasSubstr("int my_exp(const void* in_0, void* out_1);"));
  EXPECT_THAT(header, testing::HasSubstr(
                          "0: in, float32 [64], row-major, 256 bytes\n"));
  EXPECT_THAT(header,
              testing::HasSubstr(
                  "1: out, float32 [64], row-major, 256 bytes, written\n"));
  EXPECT_THAT(header, testing::HasSubstr("my_exp: runs in the calling thread"));
  EXPECT_THAT(header,
              testing::HasSubstr("const tf_function_info* my_exp_info(void);"));
  const LoweredFunction parallel = {Elementwise(ir::Intrinsic::kExp), "my_exp"};
  functions = {SignatureOf(parallel, parallel, target)};
  EXPECT_THAT(CHeader(functions, target),
              testing::HasSubstr("my_exp: up to 4 threads"));
}

TEST(Signature, HasStridesAndTheBytesThatTheyReach) {
  auto buffer = std::make_shared<ir::BufferNode>(
      *ir::MakeBuffer("x", ir::DataType::Float(16), {4, 8}));
  buffer->strides = {20, 2};
  buffer->elem_offset = 3;
  auto program = std::make_shared<ir::PrimFunc>();
  program->params = {buffer, ir::MakeBuffer("y", ir::DataType::Int(8), {})};
  program->body = ir::NoOp();
  const LoweredFunction function = {program, "f"};
  const Signature signature =
      SignatureOf(function, function, TestOptions().target);
  ASSERT_EQ(signature.parameters.size(), 2u);
  const ParameterSignature& x = signature.parameters[0];
  EXPECT_FALSE(x.is_dense);
  EXPECT_EQ(x.bytes, 2 * (3 + 3 * 20 + 7 * 2 + 1));
  EXPECT_EQ(OnnxNumber(x.dtype), 10);
  EXPECT_TRUE(signature.parameters[1].is_dense);
  EXPECT_EQ(signature.parameters[1].bytes, 1);
  const std::string header = CHeader({{signature}}, TestOptions().target);
  EXPECT_THAT(header,
              testing::HasSubstr("0: x, float16 [4, 8], strides [20, 2], 3 "
                                 "elements after the pointer, 156 bytes\n"));
}

}  // namespace
}  // namespace tilefarm::codegen

#include "compiler/codegen/link.h"

#include <filesystem>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_library.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/codegen/temporary_folder.h"
#include "compiler/runtime/embedded.h"
#include "lld/Common/Driver.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

namespace tilefarm::codegen {
namespace {

namespace fs = std::filesystem;

// Prefixes of functions that the runtime defines, in the caller's symbol table.
constexpr std::string_view kRuntimePrefixes[] = {"tf_rt_", "__aeabi_"};
constexpr std::string_view kGpuPrefixes[] = {"tf_rt_cuda_", "tf_rt_gpu_",
                                             "tf_rt_opencl_", "tf_rt_sim_"};

// How LLD is called; the name tells it what to link.
constexpr char kLinkElf[] = "ld.lld";
constexpr char kLinkWasm[] = "wasm-ld";
constexpr char kFolderPrefix[] = "tilefarm-link";
constexpr std::string_view kWasmMagic("\0asm", 4);
// Emitter::kStackBytesInAll and what the calls around kernels need.
constexpr int kWasmStackBytes = 1 << 20;

Mutex lld_mutex;
// LLD reported that it cannot run again.
bool lld_broken ABSL_GUARDED_BY(lld_mutex) = false;

absl::Status RunLld(const char* flavour,
                    const std::vector<std::string>& arguments)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(lld_mutex) {
  if (lld_broken) {
    return absl::InternalError("the linker crashed earlier in this process");
  }
  std::vector<const char*> argv = {flavour};
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  MutexLock lock(llvm_options_mutex);
  const lld::Result result = lld::lldMain(
      argv, stream, stream,
      {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}});
  if (!result.canRunAgain) lld_broken = true;
  if (result.retCode != 0) {
    return absl::InternalError(absl::StrCat("linking failed: ", messages));
  }
  return absl::OkStatus();
}

std::vector<std::string> CommonArguments(const fs::path& output) {
  return {"-shared",         "--threads=1", "--hash-style=gnu",
          "--build-id=none", "-o",          output.string()};
}

// Writes the objects into the folder for the linker, and the archives of the
// runtime: only called functions become part of the artifact.
absl::Status AddObjects(const TemporaryFolder& folder,
                        std::span<const std::string> objects,
                        std::span<const std::string_view> runtime,
                        std::vector<std::string>* arguments) {
  const auto add = [&](const std::string& name, std::string_view bytes) {
    const fs::path file = folder / name;
    arguments->push_back(file.string());
    return WriteFile(file, bytes);
  };
  for (size_t i = 0; i < objects.size(); ++i) {
    TF_RETURN_IF_ERROR(add(absl::StrCat("kernel", i, ".o"), objects[i]));
  }
  for (size_t i = 0; i < runtime.size(); ++i) {
    TF_RETURN_IF_ERROR(add(absl::StrCat("runtime", i, ".a"), runtime[i]));
  }
  return absl::OkStatus();
}

// A module whose memory its host may fill (runtime/wasm.c), and which imports
// functions of libm from it.
absl::StatusOr<std::string> LinkModule(std::span<const std::string> objects,
                                       const target::Target& target) {
  MutexLock lock(lld_mutex);
  TF_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                      TemporaryFolder::Create(kFolderPrefix));
  std::string imports;
  for (const std::string& name : MathLibrary().functions) {
    absl::StrAppend(&imports, name, "\n");
  }
  const fs::path import_file = folder / "imports";
  const fs::path output = folder / "kernel.wasm";
  TF_RETURN_IF_ERROR(WriteFile(import_file, imports));
  // A stack that overflows leaves the memory, which traps.
  std::vector<std::string> arguments = {
      "--no-entry",
      "--export-dynamic",
      "--export=tilefarm_alloc",
      "--export=tilefarm_free",
      "--stack-first",
      "-z",
      absl::StrCat("stack-size=", kWasmStackBytes),
      "--allow-undefined-file=" + import_file.string(),
      "--threads=1",
      "-o",
      output.string()};
  const std::string_view runtime[] = {runtime::Archive(target.triple)};
  TF_RETURN_IF_ERROR(AddObjects(folder, objects, runtime, &arguments));
  TF_RETURN_IF_ERROR(RunLld(kLinkWasm, arguments));
  return ReadFile(output);
}

// Empty functions with the library's names, which is all the linker needs.
absl::StatusOr<std::string> StubObject(const SystemLibrary& library,
                                       const target::Target& target) {
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, GetTargetMachine(target));
  llvm::LLVMContext context;
  llvm::Module module("stub", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  llvm::IRBuilder<> builder(context);
  llvm::FunctionType* type =
      llvm::FunctionType::get(builder.getVoidTy(), false);
  for (const std::string& name : library.functions) {
    llvm::Function* function = llvm::Function::Create(
        type, llvm::GlobalValue::ExternalLinkage, name, module);
    builder.SetInsertPoint(
        llvm::BasicBlock::Create(context, "entry", function));
    builder.CreateRetVoid();
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM cannot emit object files");
  }
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

// Stubs of the system's libraries, made once per triple. The real libraries
// would add the symbol versions of the build machine.
absl::StatusOr<const std::vector<std::string>*> StubLibraries(
    const target::Target& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lld_mutex) {
  static auto* made = new std::map<std::string, std::vector<std::string>>;
  const auto it = made->find(target.triple);
  if (it != made->end()) return &it->second;
  TF_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                      TemporaryFolder::Create(kFolderPrefix));
  std::vector<std::string> stubs;
  for (const SystemLibrary& library : SystemLibraries()) {
    TF_ASSIGN_OR_RETURN(const std::string object, StubObject(library, target));
    TF_RETURN_IF_ERROR(WriteFile(folder / "stub.o", object));
    std::vector<std::string> arguments = CommonArguments(folder / "stub.so");
    arguments.push_back("-soname=" + library.soname);
    arguments.push_back((folder / "stub.o").string());
    TF_RETURN_IF_ERROR(RunLld(kLinkElf, arguments));
    TF_ASSIGN_OR_RETURN(std::string bytes, ReadFile(folder / "stub.so"));
    stubs.push_back(std::move(bytes));
  }
  return &made->emplace(target.triple, std::move(stubs)).first->second;
}

// Whether an object has a symbol with one of these prefixes.
bool Mention(std::span<const std::string> objects,
             std::span<const std::string_view> prefixes) {
  for (const std::string& object : objects) {
    for (const std::string_view prefix : prefixes) {
      if (object.find(prefix) != std::string::npos) return true;
    }
  }
  return false;
}

// The runtime if an object calls it; otherwise nothing.
std::vector<std::string_view> RuntimeFor(std::span<const std::string> objects,
                                         const target::Target& target) {
  if (!Mention(objects, kRuntimePrefixes)) return {};
  std::vector<std::string_view> runtime = {runtime::Archive(target.triple)};
  if (Mention(objects, kGpuPrefixes)) {
    runtime.push_back(runtime::GpuArchive(target.triple));
  }
  return runtime;
}

// Makes hidden symbols local.
absl::StatusOr<std::string> Localized(const std::string& object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(object, "kernel.o"));
  if (!file) return absl::InternalError(llvm::toString(file.takeError()));
  llvm::objcopy::ConfigManager config;
  config.ELF.LocalizeHidden = true;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error =
          llvm::objcopy::executeObjcopyOnBinary(config, **file, stream)) {
    return absl::InternalError(llvm::toString(std::move(error)));
  }
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(
    std::span<const std::string> objects, const target::Target& target) {
  if (target.is_webassembly()) return LinkModule(objects, target);
  MutexLock lock(lld_mutex);
  TF_ASSIGN_OR_RETURN(const std::vector<std::string>* stubs,
                      StubLibraries(target));
  TF_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                      TemporaryFolder::Create(kFolderPrefix));
  std::vector<std::string> arguments = CommonArguments(folder / "kernel.so");
  arguments.insert(arguments.end(),
                   {"-z", "defs", "--as-needed", "-Bsymbolic"});
  TF_RETURN_IF_ERROR(
      AddObjects(folder, objects, RuntimeFor(objects, target), &arguments));
  for (size_t i = 0; i < stubs->size(); ++i) {
    const fs::path stub = folder / absl::StrCat("stub", i, ".so");
    TF_RETURN_IF_ERROR(WriteFile(stub, (*stubs)[i]));
    arguments.push_back(stub.string());
  }
  TF_RETURN_IF_ERROR(RunLld(kLinkElf, arguments));
  return ReadFile(folder / "kernel.so");
}

absl::StatusOr<std::string> LinkArchive(std::span<const std::string> objects,
                                        const target::Target& target) {
  if (target.is_webassembly()) {
    return absl::InvalidArgumentError("wasm32 has modules, no archives");
  }
  std::string linked;
  {
    MutexLock lock(lld_mutex);
    TF_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                        TemporaryFolder::Create(kFolderPrefix));
    const fs::path output = folder / "kernel.o";
    std::vector<std::string> arguments = {"--relocatable", "--threads=1", "-o",
                                          output.string()};
    TF_RETURN_IF_ERROR(
        AddObjects(folder, objects, RuntimeFor(objects, target), &arguments));
    TF_RETURN_IF_ERROR(RunLld(kLinkElf, arguments));
    TF_ASSIGN_OR_RETURN(linked, ReadFile(output));
  }
  TF_ASSIGN_OR_RETURN(linked, Localized(linked));
  const llvm::NewArchiveMember member(
      llvm::MemoryBufferRef(linked, "kernel.o"));
  auto archive = llvm::writeArchiveToBuffer(
      member, llvm::SymtabWritingMode::NormalSymtab,
      llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) return absl::InternalError(llvm::toString(archive.takeError()));
  return (*archive)->getBuffer().str();
}

absl::StatusOr<std::string> CodeDigest(std::string_view shared_object) {
  // A module has code, constants and names only.
  if (shared_object.starts_with(kWasmMagic)) return Sha256Hex(shared_object);
  auto file =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(
          llvm::StringRef(shared_object.data(), shared_object.size()),
          "artifact"));
  if (!file) {
    return absl::InternalError(
        absl::StrCat("not an ELF file: ", llvm::toString(file.takeError())));
  }
  // Hash code, its constants (launches of kernels among them, which have
  // addresses), and the names of the functions it calls.
  std::string content;
  bool has_text = false;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) return absl::InternalError(llvm::toString(name.takeError()));
    has_text |= *name == ".text";
    if (*name != ".text" && *name != ".dynstr" && *name != ".data.rel.ro" &&
        !name->starts_with(".rodata")) {
      continue;
    }
    llvm::Expected<llvm::StringRef> bytes = section.getContents();
    if (!bytes) return absl::InternalError(llvm::toString(bytes.takeError()));
    absl::StrAppend(&content, name->str(), " ", bytes->size(), "\n",
                    bytes->str());
  }
  if (!has_text) return absl::InternalError("the artifact has no code");
  return Sha256Hex(content);
}

}  // namespace tilefarm::codegen

// Shared objects of ours pass; what would run at loading, or is damaged, is
// refused with its reason.
#include "compiler/codegen/artifact_check.h"

#include <elf.h>

#include <cstdio>
#include <cstring>
#include <functional>

#include "base/rng.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/link.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;

constexpr char kX86[] = "x86-64:skylake,cores=4";
constexpr char kArm[] = "aarch64:cortex-a72,cores=4";

// out[i] = sin(in[i]), in parallel: needs libc, and a thread pool that is
// joined at the end.
std::string Build(const char* target) {
  const auto in = ir::MakeBuffer("in", ir::DataType::Float(32), {64});
  const auto out = ir::MakeBuffer("out", ir::DataType::Float(32), {64});
  const auto i = ir::MakeVar("i");
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {in, out};
  function->body = ir::MakeFor(
      i, ir::IntConst(64),
      ir::MakeStore(out, {i},
                    ir::MakeCall(ir::Intrinsic::kSin, {ir::Load(in, {i})})),
      ir::ForKind::kParallel);
  Options options;
  options.target = *target::Parse(target);
  const std::vector<LoweredFunction> functions = {{function, "kernel"}};
  const auto object = EmitObject(functions, options);
  EXPECT_TRUE(object.ok()) << object.status();
  if (!object.ok()) return "";
  const std::string bytes = *object;
  const auto linked = LinkSharedObject({&bytes, 1}, options.target);
  EXPECT_TRUE(linked.ok()) << linked.status();
  return linked.value_or("");
}

absl::Status Check(std::string_view bytes, const char* target = kX86,
                   std::vector<std::string> symbols = {"kernel"}) {
  return CheckArtifact(bytes, *target::Parse(target), symbols);
}

void ExpectRefused(const std::string& bytes, const char* why) {
  const absl::Status status = Check(bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

// Changes every dynamic entry with this tag.
std::string ChangeDynamic(std::string bytes, int64_t tag,
                          const std::function<void(Elf64_Dyn&)>& change) {
  Elf64_Ehdr header;
  memcpy(&header, bytes.data(), sizeof(header));
  bool found = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment),
           sizeof(segment));
    if (segment.p_type != PT_DYNAMIC) continue;
    for (size_t at = segment.p_offset;
         at + sizeof(Elf64_Dyn) <= segment.p_offset + segment.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      memcpy(&entry, bytes.data() + at, sizeof(entry));
      if (entry.d_tag != tag) continue;
      change(entry);
      memcpy(bytes.data() + at, &entry, sizeof(entry));
      found = true;
    }
  }
  EXPECT_TRUE(found) << "no dynamic entry " << tag;
  return bytes;
}

std::string Replace(std::string bytes, const std::string& from,
                    const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) bytes.replace(at, from.size(), to);
  return bytes;
}

TEST(ArtifactCheckTest, ArtifactsOfTheCompilerPass) {
  EXPECT_TRUE(Check(Build(kX86)).ok()) << Check(Build(kX86));
  EXPECT_TRUE(Check(Build(kArm), kArm).ok()) << Check(Build(kArm), kArm);
}

TEST(ArtifactCheckTest, AMissingFunctionIsNamed) {
  const std::string good = Build(kX86);
  EXPECT_THAT(std::string(Check(good, kX86, {"kernel", "other"}).message()),
              HasSubstr("does not export the function other"));
  // A function of libc that it needs is not its own.
  EXPECT_FALSE(Check(good, kX86, {"mmap"}).ok());
}

TEST(ArtifactCheckTest, AnotherMachineIsRefused) {
  const absl::Status status = Check(Build(kArm));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("for another machine than x86-64"));
}

TEST(ArtifactCheckTest, TextsAndProgramsAreRefused) {
  ExpectRefused("", "is no ELF file");
  ExpectRefused("#!/bin/sh\nrm -rf /\n", "is no ELF file");
  std::string program = Build(kX86);
  program[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
  ExpectRefused(program, "is no shared object");
  std::string narrow = Build(kX86);
  narrow[EI_CLASS] = ELFCLASS32;
  ExpectRefused(narrow, "64 bits");
}

TEST(ArtifactCheckTest, WhatRunsAtLoadingIsRefused) {
  const std::string good = Build(kX86);
  const auto as = [](int64_t tag) {
    return [tag](Elf64_Dyn& entry) { entry.d_tag = tag; };
  };
  for (const auto& [tag, why] : std::vector<std::pair<int64_t, const char*>>{
           {DT_INIT, "(INIT)"},
           {DT_INIT_ARRAY, "(INIT_ARRAY)"},
           {DT_PREINIT_ARRAY, "(PREINIT_ARRAY)"},
           {DT_RUNPATH, "(RUNPATH)"},
           {DT_RPATH, "(RPATH)"},
           {DT_AUDIT, "(AUDIT)"},
           {DT_DEPAUDIT, "(DEPAUDIT)"},
           {DT_FILTER, "(FILTER)"},
           {DT_AUXILIARY, "(AUXILIARY)"},
           {DT_TEXTREL, "(TEXTREL)"}}) {
    ExpectRefused(ChangeDynamic(good, DT_FINI_ARRAY, as(tag)), why);
  }
  ExpectRefused(
      ChangeDynamic(good, DT_FLAGS,
                    [](Elf64_Dyn& entry) { entry.d_un.d_val |= DF_TEXTREL; }),
      "(TEXTREL)");
}

TEST(ArtifactCheckTest, RelocationsAndSymbolsThatRunCodeAreRefused) {
  std::string bytes = Build(kX86);
  uint64_t at = 0;  // in the first segment, whose offsets are addresses
  ChangeDynamic(bytes, DT_RELA,
                [&](Elf64_Dyn& entry) { at = entry.d_un.d_val; });
  Elf64_Rela rela = {};
  ASSERT_LT(at + sizeof(rela), bytes.size());
  memcpy(&rela, bytes.data() + at, sizeof(rela));
  ASSERT_EQ(rela.r_info, ELF64_R_INFO(0, R_X86_64_RELATIVE));
  rela.r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE);
  memcpy(bytes.data() + at, &rela, sizeof(rela));
  ExpectRefused(bytes, "(IRELATIVE)");
}

TEST(ArtifactCheckTest, OtherLibrariesAreRefused) {
  ExpectRefused(Replace(Build(kX86), "libc.so.6", "libz.so.1"),
                "needs the library libz.so.1");
}

TEST(ArtifactCheckTest, WritableCodeIsRefused) {
  std::string bytes = Build(kX86);
  Elf64_Ehdr header;
  memcpy(&header, bytes.data(), sizeof(header));
  for (int i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    memcpy(&segment, bytes.data() + at, sizeof(segment));
    if (segment.p_type == PT_LOAD) segment.p_flags |= PF_W;
    memcpy(bytes.data() + at, &segment, sizeof(segment));
  }
  ExpectRefused(bytes, "writable and executable");
}

// Whatever stands there, the check answers and reads nothing outside of the
// file (run with a sanitizer).
TEST(ArtifactCheckTest, DamagedFilesAreAnswered) {
  constexpr uint64_t kSeed = 71;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  const std::string good = Build(kX86);
  for (size_t size = 0; size < good.size(); size += 1 + size / 16) {
    // On the heap with its exact size.
    const std::vector<char> cut(good.begin(),
                                good.begin() + static_cast<ptrdiff_t>(size));
    Check({cut.data(), cut.size()}).IgnoreError();
  }
  Rng rng(kSeed);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<char> bytes(good.begin(), good.end());
    const int edits = static_cast<int>(rng.Between(1, 4));
    for (int i = 0; i < edits; ++i) {
      // Mostly in the headers and tables, which are at the front.
      const size_t at = rng.Below(rng.Chance(0.8) ? 0x1000 : bytes.size());
      bytes[at] = static_cast<char>(rng.Chance(0.3) ? 0xff : rng.Below(256));
    }
    refused += Check({bytes.data(), bytes.size()}).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tilefarm::codegen

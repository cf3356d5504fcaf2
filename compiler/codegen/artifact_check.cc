#include "compiler/codegen/artifact_check.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_library.h"

namespace tilefarm::codegen {
namespace {

// A file of ours has fewer than ten.
constexpr size_t kMostSegments = 64;
constexpr size_t kMostDynamicEntries = 1024;
constexpr uint64_t kPage = 4096;

absl::Status Bad(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("the artifact ", why));
}
absl::Status Damaged(const char* part) {
  return Bad(absl::StrCat("is damaged: its ", part,
                          " is outside of the file, or has an odd size"));
}

struct Machine {
  const char* triple;  // how LLVM's triples for it begin
  uint16_t elf;
  uint32_t irelative;  // the relocation that runs code of the file
  const char* name;
};
constexpr Machine kMachines[] = {
    {"x86_64", EM_X86_64, R_X86_64_IRELATIVE, "x86-64"},
    {"aarch64", EM_AARCH64, R_AARCH64_IRELATIVE, "aarch64"},
    {"riscv64", EM_RISCV, R_RISCV_IRELATIVE, "riscv64"},
};

// The file as the dynamic loader sees it.
class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  absl::Status Read(const Machine& machine) {
    TF_RETURN_IF_ERROR(ReadHeader(machine));
    TF_RETURN_IF_ERROR(ReadSegments());
    return ReadDynamic();
  }
  absl::Status CheckLoading(const Machine& machine) const;
  absl::Status CheckSymbols(std::span<const std::string> wanted) const;

 private:
  // A copy of what stands at the offset; nullopt: the file is too short.
  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
      return std::nullopt;
    }
    T value;
    memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  // The file's bytes that are mapped to [address, address + size); nullopt: not
  // all of them are.
  std::optional<std::string_view> Mapped(uint64_t address,
                                         uint64_t size) const {
    for (const Elf64_Phdr& load : loads_) {
      if (address < load.p_vaddr) continue;
      const uint64_t offset = address - load.p_vaddr;
      if (offset > load.p_filesz || size > load.p_filesz - offset) continue;
      return bytes_.substr(load.p_offset + offset, size);
    }
    return std::nullopt;
  }
  // Of DT_STRTAB; nullopt: not within it.
  std::optional<std::string> Name(uint64_t offset) const {
    if (offset >= strings_.size()) return std::nullopt;
    const size_t end = strings_.find('\0', offset);
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(strings_.substr(offset, end - offset));
  }
  uint64_t Value(int64_t tag) const {
    const auto found = dynamic_.find(tag);
    return found == dynamic_.end() ? 0 : found->second;
  }
  bool Has(int64_t tag) const { return dynamic_.contains(tag); }

  absl::Status ReadHeader(const Machine& machine);
  absl::Status ReadSegments();
  absl::Status ReadDynamic();
  absl::Status CheckLibraries() const;
  absl::Status CheckRelocations(const Machine& machine) const;
  // The number of dynamic symbols, by the hash table that the loader uses.
  absl::StatusOr<uint64_t> CountSymbols() const;

  const std::string_view bytes_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Phdr> loads_;
  std::optional<Elf64_Phdr> dynamic_segment_;
  std::map<int64_t, uint64_t> dynamic_;  // by tag, without DT_NEEDED
  std::vector<uint64_t> needed_;
  std::string_view strings_;
};

absl::Status Image::ReadHeader(const Machine& machine) {
  const auto header = At<Elf64_Ehdr>(0);
  if (!header.has_value() || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return Bad("is no ELF file");
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_ident[EI_VERSION] != EV_CURRENT) {
    return Bad("is no ELF file of 64 bits and little-endian order");
  }
  if (header->e_type != ET_DYN) return Bad("is no shared object");
  if (header->e_machine != machine.elf) {
    return Bad(absl::StrCat("is for another machine than ", machine.name,
                            " (ELF machine ", header->e_machine, ")"));
  }
  header_ = *header;
  return absl::OkStatus();
}

absl::Status Image::ReadSegments() {
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 ||
      header_.e_phnum > kMostSegments) {
    return Damaged("table of segments");
  }
  for (size_t i = 0; i < header_.e_phnum; ++i) {
    if (header_.e_phoff > bytes_.size()) return Damaged("table of segments");
    const auto segment =
        At<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment.has_value()) return Damaged("table of segments");
    const bool is_load = segment->p_type == PT_LOAD;
    if (segment->p_type == PT_INTERP) return Bad("is a program");
    if (!is_load && segment->p_type != PT_DYNAMIC) continue;
    if (segment->p_offset > bytes_.size() ||
        segment->p_filesz > bytes_.size() - segment->p_offset ||
        segment->p_filesz > segment->p_memsz ||
        segment->p_vaddr + segment->p_memsz < segment->p_vaddr) {
      return Damaged("segment");
    }
    if (!is_load) {
      if (dynamic_segment_.has_value()) return Bad("has two dynamic sections");
      dynamic_segment_ = *segment;
      continue;
    }
    if ((segment->p_flags & PF_W) != 0 && (segment->p_flags & PF_X) != 0) {
      return Bad("has memory that is writable and executable");
    }
    // Otherwise a later segment would replace parts of an earlier one.
    if (!loads_.empty() &&
        segment->p_vaddr / kPage <=
            (loads_.back().p_vaddr + loads_.back().p_memsz - 1) / kPage) {
      return Bad("has segments that overlap, or are not in order");
    }
    if (segment->p_memsz > 0) loads_.push_back(*segment);
  }
  if (loads_.empty()) return Bad("has nothing to load");
  if (!dynamic_segment_.has_value()) return Bad("has no dynamic section");
  return absl::OkStatus();
}

absl::Status Image::ReadDynamic() {
  // The loader reads it where it is mapped.
  const auto section =
      Mapped(dynamic_segment_->p_vaddr, dynamic_segment_->p_filesz);
  if (!section.has_value()) return Damaged("dynamic section");
  const size_t count =
      std::min(section->size() / sizeof(Elf64_Dyn), kMostDynamicEntries);
  bool ended = false;
  for (size_t i = 0; i < count && !ended; ++i) {
    Elf64_Dyn entry;
    memcpy(&entry, section->data() + i * sizeof(entry), sizeof(entry));
    ended = entry.d_tag == DT_NULL;
    if (entry.d_tag == DT_NEEDED) {
      needed_.push_back(entry.d_un.d_val);
    } else if (!ended &&
               !dynamic_.emplace(entry.d_tag, entry.d_un.d_val).second) {
      return Bad("has a dynamic entry twice");
    }
  }
  if (!ended) return Damaged("dynamic section");
  const auto strings = Mapped(Value(DT_STRTAB), Value(DT_STRSZ));
  if (!Has(DT_STRTAB) || !strings.has_value()) return Damaged("string table");
  strings_ = *strings;
  return absl::OkStatus();
}

absl::Status Image::CheckLibraries() const {
  for (const uint64_t offset : needed_) {
    const auto name = Name(offset);
    if (!name.has_value()) return Damaged("list of libraries");
    if (*name == SystemLibraries()[0].soname ||  // libc
        *name == MathLibrary().soname) {
      continue;
    }
    return Bad(absl::StrCat("needs the library ", *name,
                            "; it may need libc and libm alone"));
  }
  return absl::OkStatus();
}

absl::Status Image::CheckRelocations(const Machine& machine) const {
  if (Has(DT_REL)) return Bad("has relocations of an old form");
  struct Table {
    int64_t at, size;
  };
  for (const Table& table :
       {Table{DT_RELA, DT_RELASZ}, Table{DT_JMPREL, DT_PLTRELSZ}}) {
    if (!Has(table.at)) continue;
    const auto bytes = Mapped(Value(table.at), Value(table.size));
    if (!bytes.has_value() || bytes->size() % sizeof(Elf64_Rela) != 0) {
      return Damaged("table of relocations");
    }
    for (size_t i = 0; i < bytes->size(); i += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      memcpy(&rela, bytes->data() + i, sizeof(rela));
      if (ELF64_R_TYPE(rela.r_info) == machine.irelative) {
        return Bad("runs code of its own when it is loaded (IRELATIVE)");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Image::CheckLoading(const Machine& machine) const {
  struct Entry {
    int64_t tag;
    const char* what;
  };
  for (const Entry& entry :
       {Entry{DT_INIT, "has a constructor (INIT)"},
        Entry{DT_INIT_ARRAY, "has constructors (INIT_ARRAY)"},
        Entry{DT_PREINIT_ARRAY, "has constructors (PREINIT_ARRAY)"},
        Entry{DT_RPATH, "chooses where libraries are searched (RPATH)"},
        Entry{DT_RUNPATH, "chooses where libraries are searched (RUNPATH)"},
        Entry{DT_AUDIT, "has an auditing object (AUDIT)"},
        Entry{DT_DEPAUDIT, "has an auditing object (DEPAUDIT)"},
        Entry{DT_FILTER, "filters another object (FILTER)"},
        Entry{DT_AUXILIARY, "filters another object (AUXILIARY)"},
        Entry{DT_TEXTREL,
              "changes its own code when it is loaded (TEXTREL)"}}) {
    if (Has(entry.tag)) return Bad(entry.what);
  }
  if ((Value(DT_FLAGS) & DF_TEXTREL) != 0) {
    return Bad("changes its own code when it is loaded (TEXTREL)");
  }
  TF_RETURN_IF_ERROR(CheckLibraries());
  return CheckRelocations(machine);
}

absl::StatusOr<uint64_t> Image::CountSymbols() const {
  const auto word = [](std::string_view bytes, uint64_t index) {
    uint32_t value;
    memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return uint64_t{value};
  };
  if (!Has(DT_GNU_HASH)) {
    const auto head = Mapped(Value(DT_HASH), 2 * sizeof(uint32_t));
    if (!Has(DT_HASH) || !head.has_value()) return Damaged("hash table");
    return word(*head, 1);
  }
  // Four words: buckets, first symbol, words of the filter, shift. Then the
  // filter of 64-bit words, the buckets, and a chain entry for each symbol,
  // whose lowest bit ends a chain.
  const uint64_t table = Value(DT_GNU_HASH);
  const auto head = Mapped(table, 4 * sizeof(uint32_t));
  if (!head.has_value()) return Damaged("hash table");
  const uint64_t buckets = word(*head, 0), first = word(*head, 1);
  const uint64_t filter_bytes = word(*head, 2) * sizeof(uint64_t);
  const uint64_t buckets_at = table + 4 * sizeof(uint32_t) + filter_bytes;
  const auto bucket_bytes = Mapped(buckets_at, buckets * sizeof(uint32_t));
  if (!bucket_bytes.has_value()) return Damaged("hash table");
  uint64_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i) {
    last = std::max(last, word(*bucket_bytes, i));
  }
  if (last < first) return first;  // nothing is exported
  const uint64_t chain_at = buckets_at + buckets * sizeof(uint32_t);
  for (uint64_t i = last;; ++i) {
    const auto link =
        Mapped(chain_at + (i - first) * sizeof(uint32_t), sizeof(uint32_t));
    if (!link.has_value()) return Damaged("hash table");
    if ((word(*link, 0) & 1) != 0) return i + 1;
  }
}

absl::Status Image::CheckSymbols(std::span<const std::string> wanted) const {
  TF_ASSIGN_OR_RETURN(const uint64_t count, CountSymbols());
  if (Value(DT_SYMENT) != sizeof(Elf64_Sym) ||
      count > bytes_.size() / sizeof(Elf64_Sym)) {
    return Damaged("table of symbols");
  }
  const auto table = Mapped(Value(DT_SYMTAB), count * sizeof(Elf64_Sym));
  if (!table.has_value()) return Damaged("table of symbols");
  std::set<std::string> missing(wanted.begin(), wanted.end());
  for (uint64_t i = 1; i < count; ++i) {
    Elf64_Sym symbol;
    memcpy(&symbol, table->data() + i * sizeof(symbol), sizeof(symbol));
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) {
      return Bad("has a symbol that its own code resolves (IFUNC)");
    }
    if (symbol.st_shndx == SHN_UNDEF ||
        ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) {
      continue;
    }
    const auto name = Name(symbol.st_name);
    if (!name.has_value()) return Damaged("table of symbols");
    const bool in_code =
        std::any_of(loads_.begin(), loads_.end(), [&](const Elf64_Phdr& load) {
          return (load.p_flags & PF_X) != 0 &&
                 symbol.st_value >= load.p_vaddr &&
                 symbol.st_value - load.p_vaddr < load.p_filesz;
        });
    if (in_code) missing.erase(*name);
  }
  if (missing.empty()) return absl::OkStatus();
  return Bad(absl::StrCat("does not export the function ", *missing.begin()));
}

}  // namespace

absl::Status CheckArtifact(std::string_view bytes, const target::Target& target,
                           std::span<const std::string> symbols) {
  const std::string triple =
      target.is_gpu() ? target.HostPart().triple : target.triple;
  const Machine* machine = nullptr;
  for (const Machine& one : kMachines) {
    if (absl::StartsWith(triple, one.triple)) machine = &one;
  }
  if (machine == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("artifacts for ", target.Key(), " cannot be compared"));
  }
  Image image(bytes);
  TF_RETURN_IF_ERROR(image.Read(*machine));
  TF_RETURN_IF_ERROR(image.CheckLoading(*machine));
  return image.CheckSymbols(symbols);
}

}  // namespace tilefarm::codegen

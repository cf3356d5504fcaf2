#include "tests/gpu/ptx/ptx_counters.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tilefarm::ptx {
namespace {

constexpr uint64_t kWord = 4, kBanks = 32, kSector = 32;

// What the lanes of a warp access: [address, address + bytes) each.
struct Accesses {
  std::array<uint64_t, kWarpLanes> addresses = {};
  int lanes = 0;
  uint64_t bytes = 0;  // of each

  void Add(uint64_t address) {
    addresses[static_cast<size_t>(lanes++)] = address;
  }
};

// The different units of this size that the lanes [begin, end) touch, sorted.
std::vector<uint64_t> Units(const Accesses& all, int begin, int end,
                            uint64_t unit) {
  std::vector<uint64_t> units;
  for (int l = begin; l < end; ++l) {
    const uint64_t first = all.addresses[static_cast<size_t>(l)];
    for (uint64_t u = first / unit; u * unit < first + all.bytes; ++u) {
      units.push_back(u);
    }
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

int64_t Quotient(uint64_t bytes, uint64_t unit) {
  return static_cast<int64_t>((bytes + unit - 1) / unit);
}

// The most different words of one bank.
int64_t Deepest(const std::vector<uint64_t>& words) {
  std::array<int64_t, kBanks> in_bank = {};
  for (const uint64_t word : words) ++in_bank[word % kBanks];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

// Lanes with 8 and 16 bytes are served by halves and quarters of a warp, of
// which several go together where their banks agree.
void CountShared(const Accesses& all, Counts& counts) {
  if (all.lanes == 0) return;
  const int part =
      static_cast<int>(kWarpLanes / std::max<uint64_t>(1, all.bytes / kWord));
  int begin = 0;
  int64_t depth = 0;
  for (int end = std::min(part, all.lanes);;) {
    const int64_t joined = Deepest(Units(all, begin, end, kWord));
    if (end - begin > part && joined > 1) {
      counts.wavefronts += depth;
      begin = end - (end % part == 0 ? part : end % part);
      depth = Deepest(Units(all, begin, end, kWord));
    } else {
      depth = joined;
    }
    if (end == all.lanes) break;
    end = std::min(end + part, all.lanes);
  }
  counts.wavefronts += depth;
  counts.least_wavefronts +=
      Quotient(Units(all, 0, all.lanes, kWord).size() * kWord, kBanks * kWord);
}

void CountGlobal(const Accesses& all, Counts& counts) {
  if (all.lanes == 0) return;
  counts.sectors +=
      static_cast<int64_t>(Units(all, 0, all.lanes, kSector).size());
  counts.least_sectors += Quotient(Units(all, 0, all.lanes, 1).size(), kSector);
}

bool Starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// Loads and stores of registers: as Load and Store of
// ptx_memory_operations.cc have their operands.
void CountAccess(Warp& warp, const Instruction& i, uint32_t mask,
                 std::string_view opcode, Counts& counts) {
  const bool global = Contains(opcode, ".global");
  const bool has_words = i.more[4] == 4;
  if (has_words && !Contains(opcode, ".shared")) return;
  Accesses all;
  all.bytes = static_cast<uint64_t>(i.more[1]) * (i.args.size() - 1);
  ForLanes(mask, [&](int l) {
    const uint64_t base = has_words ? warp.At<uint32_t>(i.args[0])[l]
                                    : warp.At<uint64_t>(i.args[0])[l];
    const uint64_t address = base + static_cast<uint64_t>(i.more[0]);
    // Generic addresses: those of shared memory, whichever block's.
    if (has_words || global || address >= kSharedWindow) all.Add(address);
  });
  global ? CountGlobal(all, counts) : CountShared(all, counts);
}

// Each matrix is eight rows of 16 bytes.
void CountMatrices(Warp& warp, const Instruction& i, Counts& counts) {
  for (size_t m = 0; m + 1 < i.args.size(); ++m) {
    Accesses all;
    all.bytes = 16;
    for (size_t row = 0; row < 8; ++row) {
      all.Add(warp.At<uint32_t>(i.args.back())[8 * m + row] +
              static_cast<uint64_t>(i.more[0]));
    }
    CountShared(all, counts);
  }
}

void CountCopy(Warp& warp, const Instruction& i, uint32_t mask,
               Counts& counts) {
  Accesses to, from;
  to.bytes = from.bytes = static_cast<uint64_t>(i.more[2]);
  ForLanes(mask, [&](int l) {
    to.Add(warp.At<uint32_t>(i.args[0])[l] + static_cast<uint64_t>(i.more[0]));
    if (warp.At<uint32_t>(i.args[2])[l] == 0) return;
    from.Add(warp.At<uint64_t>(i.args[1])[l] +
             static_cast<uint64_t>(i.more[1]));
  });
  CountShared(to, counts);
  CountGlobal(from, counts);
}

// The copy engine moves whole boxes.
void CountBox(Warp& warp, const Instruction& i, uint32_t mask, Counts& counts) {
  ForLanes(mask, [&](int l) {
    const auto* map =
        reinterpret_cast<const TensorMap*>(warp.At<uint64_t>(i.args[1])[l]);
    if (map->magic != TensorMap::kMagic) return;
    const auto bytes = static_cast<uint64_t>(BoxBytes(*map));
    counts.wavefronts += Quotient(bytes, kBanks * kWord);
    counts.least_wavefronts += Quotient(bytes, kBanks * kWord);
    counts.sectors += Quotient(bytes, kSector);
    counts.least_sectors += Quotient(bytes, kSector);
  });
}

}  // namespace

void Counters::Count(Warp& warp, const Instruction& i, uint32_t mask) {
  Counts& counts = counts_[static_cast<size_t>(&i - kernel_.code.data())];
  ++counts.warps;
  counts.lanes += __builtin_popcount(mask);
  std::string_view opcode = i.text;
  if (Starts(opcode, "@")) opcode.remove_prefix(opcode.find(' ') + 1);
  opcode = opcode.substr(0, opcode.find_first_of(" \t"));
  if (Starts(opcode, "ld.") || Starts(opcode, "st.")) {
    CountAccess(warp, i, mask, opcode, counts);
  } else if (Starts(opcode, "ldmatrix.")) {
    CountMatrices(warp, i, counts);
  } else if (Starts(opcode, "cp.async.bulk.tensor.")) {
    CountBox(warp, i, mask, counts);
  } else if (Starts(opcode, "cp.async.c")) {
    // "ca" and "cg", not "commit_group".
    if (!Starts(opcode, "cp.async.co")) CountCopy(warp, i, mask, counts);
  }
}

std::string Counters::Json() const {
  std::string text;
  for (size_t k = 0; k < counts_.size(); ++k) {
    const Counts& counts = counts_[k];
    if (counts.warps == 0) continue;
    std::string escaped;
    for (const char c : kernel_.code[k].text) {
      escaped += c == '"' || c == '\\' ? '\'' : c < ' ' ? ' ' : c;
    }
    text += text.empty() ? "[" : ",\n ";
    text += "{\"text\": \"" + escaped + "\"";
    const auto add = [&](const char* name, int64_t value) {
      text += std::string(", \"") + name + "\": " + std::to_string(value);
    };
    add("warps", counts.warps);
    add("lanes", counts.lanes);
    if (counts.wavefronts > 0) {
      add("wavefronts", counts.wavefronts);
      add("least_wavefronts", counts.least_wavefronts);
    }
    if (counts.sectors > 0) {
      add("sectors", counts.sectors);
      add("least_sectors", counts.least_sectors);
    }
    text += "}";
  }
  return text.empty() ? "[]" : text + "]";
}

}  // namespace tilefarm::ptx

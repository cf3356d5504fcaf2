#include "database/record_line.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace tilefarm::database {
namespace {

// True for characters that a string may hold as they are: no control
// characters, quotes, backslashes, nor parts of UTF-8 sequences.
constexpr std::array<bool, 256> PlainCharacters() {
  std::array<bool, 256> plain = {};
  for (size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = PlainCharacters();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Walks along the text. Every function returns false where the text is not what
// it reads; the line is then given up.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }
  // Takes the character, if it is the next one.
  bool Take(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  char Peek() {
    SkipSpace();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool Text(std::string& out) {
    if (!Take('"')) return false;
    out.clear();
    while (true) {
      size_t run = 0;
      while (run < rest_.size() &&
             kPlain[static_cast<unsigned char>(rest_[run])]) {
        ++run;
      }
      out.append(rest_, 0, run);
      if (run + 1 >= rest_.size()) return false;
      const char end = rest_[run], next = rest_[run + 1];
      if (end == '"') {
        rest_.remove_prefix(run + 1);
        return true;
      }
      if (end != '\\') return false;
      switch (next) {
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case '"':
        case '\\':
        case '/':
          out += next;
          break;
        default:
          return false;
      }
      rest_.remove_prefix(run + 2);
    }
  }
  bool Bool(bool& out) {
    SkipSpace();
    if (TakeWord("true")) {
      out = true;
      return true;
    }
    out = false;
    return TakeWord("false");
  }
  bool Number(double& out) {
    if (Peek() == '"') return NamedNumber(out);
    const std::string_view number = NumberText();
    // The general reader takes -0 for the integer 0.
    if (number.empty() || number == "-0") return false;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), out);
    return error == std::errc() && end == number.data() + number.size();
  }
  template <typename Int>
  bool Integer(Int& out) {
    SkipSpace();
    const std::string_view number = NumberText();
    if (number.empty()) return false;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), out);
    return error == std::errc() && end == number.data() + number.size();
  }
  bool Numbers(std::vector<double>& out) {
    if (!Take('[')) return false;
    out.clear();
    if (Take(']')) return true;
    do {
      if (!Number(out.emplace_back())) return false;
    } while (Take(','));
    return Take(']');
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }
  bool TakeWord(std::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool NamedNumber(double& out) {
    if (TakeWord("\"nan\"")) {
      out = std::numeric_limits<double>::quiet_NaN();
    } else if (TakeWord("\"inf\"")) {
      out = std::numeric_limits<double>::infinity();
    } else if (TakeWord("\"-inf\"")) {
      out = -std::numeric_limits<double>::infinity();
    } else {
      return false;
    }
    return true;
  }
  // Takes a number in JSON's grammar; empty: there is none.
  std::string_view NumberText() {
    const auto at = [&](size_t i) { return i < rest_.size() ? rest_[i] : ' '; };
    size_t end = at(0) == '-' ? 1 : 0;
    const auto digits = [&] {
      const size_t begin = end;
      while (IsDigit(at(end))) ++end;
      return end > begin;
    };
    const size_t first = end;
    if (!digits() || (at(first) == '0' && end > first + 1)) return {};
    if (at(end) == '.') {
      ++end;
      if (!digits()) return {};
    }
    if (at(end) == 'e' || at(end) == 'E') {
      ++end;
      if (at(end) == '+' || at(end) == '-') ++end;
      if (!digits()) return {};
    }
    const std::string_view number = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return number;
  }

  std::string_view rest_;
};

constexpr uint32_t kProtocolKeys = 3;

bool ReadProtocol(Scanner& in, Protocol& protocol) {
  if (!in.Take('{')) return false;
  uint32_t seen = 0;
  std::string key;
  do {
    if (!in.Text(key) || !in.Take(':')) return false;
    uint32_t bit = 0;
    bool good = false;
    if (key == "cold_cache") {
      bit = 1;
      good = in.Bool(protocol.cold_cache);
    } else if (key == "cores") {
      bit = 2;
      good = in.Integer(protocol.cores);
    } else if (key == "layout") {
      bit = 4;
      good = in.Text(protocol.layout);
    }
    if (!good || (seen & bit) != 0) return false;
    seen |= bit;
  } while (in.Take(','));
  return in.Take('}') && seen == (1u << kProtocolKeys) - 1;
}

bool ReadStatus(Scanner& in, Status& status) {
  std::string name;
  if (!in.Text(name)) return false;
  const std::optional<Status> parsed = ParseStatus(name);
  if (parsed) status = *parsed;
  return parsed.has_value();
}

// A key of a line: what reads its value, and whether every line has it.
struct Key {
  std::string_view name;
  bool required;
  bool (*read)(Scanner&, Record&);
};

template <auto Member>
bool ReadMember(Scanner& in, Record& r) {
  auto& out = r.*Member;
  using Value = std::remove_reference_t<decltype(out)>;
  if constexpr (std::is_same_v<Value, std::string>) {
    return in.Text(out);
  } else if constexpr (std::is_same_v<Value, bool>) {
    return in.Bool(out);
  } else if constexpr (std::is_same_v<Value, double>) {
    return in.Number(out);
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    return in.Integer(out);
  } else {
    return in.Numbers(out);
  }
}

// In the order in which RecordToJson writes them, so that the next key is
// mostly the next one here.
constexpr Key kKeys[] = {
    {"workload", true, ReadMember<&Record::workload_hash>},
    {"program", true, ReadMember<&Record::program>},
    {"target", true, ReadMember<&Record::target>},
    {"trace", true, ReadMember<&Record::trace>},
    {"device", true, ReadMember<&Record::device>},
    {"status", true,
     [](Scanner& in, Record& r) { return ReadStatus(in, r.status); }},
    {"seconds", true, ReadMember<&Record::seconds>},
    {"median_seconds", true, ReadMember<&Record::median_seconds>},
    {"ci_low_seconds", false, ReadMember<&Record::ci_low_seconds>},
    {"ci_high_seconds", false, ReadMember<&Record::ci_high_seconds>},
    {"verified", true, ReadMember<&Record::verified>},
    {"max_abs_error", false, ReadMember<&Record::max_abs_error>},
    {"max_rel_error", false, ReadMember<&Record::max_rel_error>},
    {"stopped_early", true, ReadMember<&Record::stopped_early>},
    {"emulated", true, ReadMember<&Record::emulated>},
    {"protocol", true,
     [](Scanner& in, Record& r) { return ReadProtocol(in, r.protocol); }},
    {"error", false, ReadMember<&Record::error>},
    {"compile_seconds", false, ReadMember<&Record::compile_seconds>},
    {"device_state", false, ReadMember<&Record::device_state>},
    {"isolation", false, ReadMember<&Record::isolation>},
    {"fingerprint", true, ReadMember<&Record::fingerprint>},
    {"code_digest", false, ReadMember<&Record::code_digest>},
    {"job_id", false, ReadMember<&Record::job_id>},
    {"recorded_at", false, ReadMember<&Record::recorded_at>},
    {"device_model", false, ReadMember<&Record::device_model>},
    {"candidate_id", true, ReadMember<&Record::candidate_id>},
    {"model_score", false, ReadMember<&Record::model_score>},
    // It follows from the trace.
    {"library", false,
     [](Scanner& in, Record&) {
       std::string ignored;
       return in.Text(ignored);
     }},
    {"sequence", false, ReadMember<&Record::sequence>},
};
constexpr size_t kKeyCount = std::size(kKeys);

// The place of the key in kKeys, searched from `from` on; kKeyCount: unknown.
size_t PlaceOf(std::string_view name, size_t from) {
  for (size_t i = 0; i < kKeyCount; ++i) {
    const size_t place = (from + i) % kKeyCount;
    if (kKeys[place].name == name) return place;
  }
  return kKeyCount;
}

}  // namespace

std::optional<Record> ReadUsualLine(std::string_view line) {
  Scanner in(line);
  if (!in.Take('{')) return std::nullopt;
  Record record;
  std::array<bool, kKeyCount> seen = {};
  std::string name;
  size_t next = 0;
  do {
    if (!in.Text(name) || !in.Take(':')) return std::nullopt;
    const size_t place = PlaceOf(name, next);
    if (place == kKeyCount || seen[place] || !kKeys[place].read(in, record)) {
      return std::nullopt;
    }
    seen[place] = true;
    next = place + 1;
  } while (in.Take(','));
  if (!in.Take('}') || !in.AtEnd()) return std::nullopt;
  for (size_t i = 0; i < kKeyCount; ++i) {
    if (kKeys[i].required && !seen[i]) return std::nullopt;
  }
  return record;
}

}  // namespace tilefarm::database

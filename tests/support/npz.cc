#include "tests/support/npz.h"

#include <zlib.h>

#include <cctype>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/eval.h"

namespace tilefarm::testing {
namespace {

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("damaged npz: ", what));
}

uint64_t LittleEndian(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

absl::StatusOr<std::string> Inflate(std::string_view packed, size_t size) {
  std::string out(size, '\0');
  z_stream stream = {};
  // A raw deflate stream, as in zip files.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Damaged("zlib");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || stream.avail_out != 0) {
    return Damaged("deflate stream");
  }
  return out;
}

// The text after "'key':" of an .npy header, which is a Python dict.
std::string_view HeaderValue(std::string_view header, std::string_view key) {
  const size_t at = header.find(absl::StrCat("'", std::string(key), "':"));
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 3);
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

absl::StatusOr<std::string> DTypeName(std::string_view descr) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"<f2", "float16"}, {"<f4", "float32"}, {"<f8", "float64"},
      {"|i1", "int8"},    {"<i2", "int16"},   {"<i4", "int32"},
      {"<i8", "int64"},   {"|u1", "uint8"},   {"<u2", "uint16"},
      {"<u4", "uint32"},  {"<u8", "uint64"},  {"|b1", "bool"}};
  for (const auto& [code, name] : kNames) {
    if (descr == code) return std::string(name);
  }
  return Damaged(absl::StrCat("dtype ", std::string(descr)));
}

}  // namespace

int64_t NpyArray::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<double> NpyArray::AsDoubles() const {
  const ir::DataType type = ir::DataType::Parse(dtype).value();
  std::vector<double> out(static_cast<size_t>(num_elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = type.is_float()
                 ? ir::ReadFloat(data.data(), at, type)
                 : static_cast<double>(ir::ReadInt(data.data(), at, type));
  }
  return out;
}

absl::StatusOr<NpyArray> ParseNpy(std::string_view bytes) {
  if (bytes.size() < 12 || bytes.substr(0, 6) != "\x93NUMPY") {
    return Damaged("npy magic");
  }
  const size_t width = bytes[6] == 1 ? 2 : 4;
  const size_t length = LittleEndian(bytes, 8, width);
  const size_t start = 8 + width + length;
  if (start > bytes.size()) return Damaged("npy header");
  const std::string_view header = bytes.substr(8 + width, length);
  NpyArray out;
  std::string_view descr = HeaderValue(header, "descr");
  if (descr.size() < 5) return Damaged("npy descr");
  TF_ASSIGN_OR_RETURN(out.dtype, DTypeName(descr.substr(1, 3)));
  if (!HeaderValue(header, "fortran_order").starts_with("False")) {
    return Damaged("npy in Fortran order");
  }
  const std::string_view shape = HeaderValue(header, "shape");
  if (!shape.starts_with('(')) return Damaged("npy shape");
  for (size_t i = 1; i < shape.size() && shape[i] != ')';) {
    if (std::isdigit(static_cast<unsigned char>(shape[i])) == 0) {
      ++i;
      continue;
    }
    int64_t extent = 0;
    for (; i < shape.size() &&
           std::isdigit(static_cast<unsigned char>(shape[i])) != 0;
         ++i) {
      extent = extent * 10 + (shape[i] - '0');
    }
    out.shape.push_back(extent);
  }
  const ir::DataType type = ir::DataType::Parse(out.dtype).value();
  const auto size = static_cast<size_t>(out.num_elements() * type.bytes());
  if (bytes.size() - start < size) return Damaged("npy data");
  out.data.resize(size);
  std::memcpy(out.data.data(), bytes.data() + start, size);
  return out;
}

absl::StatusOr<std::map<std::string, NpyArray>> ReadNpz(
    const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(path);
  std::stringstream content;
  content << file.rdbuf();
  const std::string zip = std::move(content).str();
  const std::string_view bytes = zip;
  // First the end record, then the central directory, then each entry's header.
  const size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string_view::npos || end + 22 > bytes.size()) {
    return Damaged("no end record");
  }
  const size_t count = LittleEndian(bytes, end + 10, 2);
  size_t at = LittleEndian(bytes, end + 16, 4);
  std::map<std::string, NpyArray> out;
  for (size_t i = 0; i < count; ++i) {
    if (at + 46 > bytes.size() || bytes.substr(at, 4) != "PK\x01\x02") {
      return Damaged("directory");
    }
    const size_t method = LittleEndian(bytes, at + 10, 2);
    const size_t packed = LittleEndian(bytes, at + 20, 4);
    const size_t size = LittleEndian(bytes, at + 24, 4);
    const size_t name_length = LittleEndian(bytes, at + 28, 2);
    const size_t local = LittleEndian(bytes, at + 42, 4);
    std::string name(bytes.substr(at + 46, name_length));
    at += 46 + name_length + LittleEndian(bytes, at + 30, 2) +
          LittleEndian(bytes, at + 32, 2);
    if (local + 30 > bytes.size()) return Damaged("entry");
    const size_t start = local + 30 + LittleEndian(bytes, local + 26, 2) +
                         LittleEndian(bytes, local + 28, 2);
    if (start > bytes.size() || packed > bytes.size() - start) {
      return Damaged("entry");
    }
    const std::string_view raw = bytes.substr(start, packed);
    std::string data;
    if (method == 0) {
      data = std::string(raw);
    } else if (method == 8) {
      TF_ASSIGN_OR_RETURN(data, Inflate(raw, size));
    } else {
      return Damaged(absl::StrCat("compression method ", method));
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    TF_ASSIGN_OR_RETURN(out[name], ParseNpy(data));
  }
  return out;
}

}  // namespace tilefarm::testing

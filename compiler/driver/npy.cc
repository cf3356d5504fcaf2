#include "compiler/driver/npy.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <regex>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"

namespace tilefarm::driver {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderAlignment = 64;

// "<f4" and the like; '|' for single bytes.
std::string Code(ir::DataType dtype) {
  if (dtype.is_bool()) return "|b1";
  if (dtype == ir::DataType::BFloat16()) return "<u2";
  const char kind = dtype.is_float() ? 'f' : dtype.is_int() ? 'i' : 'u';
  return absl::StrCat(dtype.bytes() == 1 ? "|" : "<", std::string(1, kind),
                      dtype.bytes());
}

std::optional<ir::DataType> DtypeOfCode(const std::string& code) {
  using ir::DataType;
  for (const DataType dtype :
       {DataType::Bool(), DataType::Int(8), DataType::Int(16),
        DataType::Int(32), DataType::Int(64), DataType::UInt(8),
        DataType::UInt(16), DataType::UInt(32), DataType::UInt(64),
        DataType::Float(16), DataType::Float(32), DataType::Float(64)}) {
    if (Code(dtype) == code) return dtype;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(const std::string& bytes) {
  const auto fail = [](auto... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a usable .npy file: ", parts...));
  };
  if (bytes.size() < 12 || bytes.compare(0, kMagic.size(), kMagic) != 0) {
    return fail("it does not begin with \\x93NUMPY");
  }
  const bool long_header = bytes[6] > 1;
  const size_t start = long_header ? 12 : 10;
  size_t length = 0;
  for (size_t i = start; i-- > 8;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  if (length > bytes.size() - start) return fail("it is truncated");
  const std::string header = bytes.substr(start, length);
  std::smatch descr, order, shape;
  if (!std::regex_search(header, descr, std::regex("'descr': *'([^']*)'")) ||
      !std::regex_search(header, order,
                         std::regex("'fortran_order': *(True|False)")) ||
      !std::regex_search(header, shape,
                         std::regex("'shape': *\\(([0-9, ]*)\\)"))) {
    return fail("its header is '", header, "'");
  }
  const std::optional<ir::DataType> dtype = DtypeOfCode(descr[1]);
  if (!dtype.has_value()) {
    return fail("element type '", descr[1].str(), "' is not supported");
  }
  NpyArray array{{*dtype, {}}, {}};
  const ir::Limits limits;
  int64_t size = dtype->bytes();
  for (const auto part : absl::StrSplit(shape[1].str(), ',')) {
    const std::string text(absl::StripAsciiWhitespace(part));
    if (text.empty()) continue;
    int64_t extent = 0;
    if (!absl::SimpleAtoi(text, &extent) ||
        (extent > 0 && size > limits.max_buffer_bytes / extent)) {
      return fail("its shape is (", shape[1].str(), ")");
    }
    size *= extent;
    array.type.shape.push_back(extent);
  }
  if (order[1] == "True" && array.type.ndim() > 1) {
    return fail(
        "the elements are in Fortran order; save "
        "numpy.ascontiguousarray of it");
  }
  if (static_cast<int64_t>(bytes.size() - start - length) != size) {
    return fail("it has ", bytes.size() - start - length,
                " bytes of elements; its shape needs ", size);
  }
  std::vector<std::byte> elements(static_cast<size_t>(size));
  if (size > 0) {
    std::memcpy(elements.data(), bytes.data() + start + length,
                elements.size());
  }
  if (dtype->is_bool()) {
    for (std::byte& element : elements) {
      element = std::byte{element != std::byte{0}};
    }
  }
  array.data = graph::TensorData(std::move(elements));
  return array;
}

std::string PrintNpy(const graph::TensorType& type,
                     const graph::TensorData& data) {
  std::string header = absl::StrCat(
      "{'descr': '", Code(type.dtype), "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(type.shape, ", "), type.ndim() == 1 ? ",), }" : "), }");
  // The elements are aligned; the header ends in a line feed.
  constexpr size_t kPrefix = 10;
  while ((kPrefix + header.size() + 1) % kHeaderAlignment != 0) header += ' ';
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(data.bytes().data()),
               data.bytes().size());
  return bytes;
}

}  // namespace tilefarm::driver

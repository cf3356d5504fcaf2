#include "compiler/onnx/tensor_proto.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/onnx/small_types.h"

namespace tilefarm::onnx {
namespace {

struct TypeEntry {
  int onnx_type;
  std::string_view name;
  std::optional<ir::DataType> dtype;
};

// TensorProto.DataType of onnx 1.22; Debian's schema ends at BFLOAT16.
const std::vector<TypeEntry>& Types() {
  using ir::DataType;
  static const auto* const types = new std::vector<TypeEntry>{
      {0, "UNDEFINED", std::nullopt},
      {1, "FLOAT", DataType::Float(32)},
      {2, "UINT8", DataType::UInt(8)},
      {3, "INT8", DataType::Int(8)},
      {4, "UINT16", DataType::UInt(16)},
      {5, "INT16", DataType::Int(16)},
      {6, "INT32", DataType::Int(32)},
      {7, "INT64", DataType::Int(64)},
      {8, "STRING", std::nullopt},
      {9, "BOOL", DataType::Bool()},
      {10, "FLOAT16", DataType::Float(16)},
      {11, "DOUBLE", DataType::Float(64)},
      {12, "UINT32", DataType::UInt(32)},
      {13, "UINT64", DataType::UInt(64)},
      {14, "COMPLEX64", std::nullopt},
      {15, "COMPLEX128", std::nullopt},
      {16, "BFLOAT16", DataType::BFloat16()},
      {17, "FLOAT8E4M3FN", std::nullopt},
      {18, "FLOAT8E4M3FNUZ", std::nullopt},
      {19, "FLOAT8E5M2", std::nullopt},
      {20, "FLOAT8E5M2FNUZ", std::nullopt},
      {21, "UINT4", std::nullopt},
      {22, "INT4", std::nullopt},
      {23, "FLOAT4E2M1", std::nullopt},
      {24, "FLOAT8E8M0", std::nullopt},
      {25, "UINT2", std::nullopt},
      {26, "INT2", std::nullopt},
  };
  return *types;
}

// The elements of a field whose entries are wider than the element type (int32
// holds 8 and 16 bit types, and the bits of 16-bit floats).
template <typename To, typename Field>
std::vector<std::byte> Narrowed(const Field& field) {
  std::vector<std::byte> bytes(field.size() * sizeof(To));
  for (int i = 0; i < field.size(); ++i) {
    const To value = static_cast<To>(field[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

std::vector<std::byte> TypedElements(const pb::TensorProto& proto,
                                     ir::DataType dtype) {
  if (dtype == ir::DataType::Float(32)) {
    return Narrowed<float>(proto.float_data());
  }
  if (dtype == ir::DataType::Float(64)) {
    return Narrowed<double>(proto.double_data());
  }
  if (dtype == ir::DataType::Int(64)) {
    return Narrowed<int64_t>(proto.int64_data());
  }
  if (dtype == ir::DataType::UInt(64)) {
    return Narrowed<uint64_t>(proto.uint64_data());
  }
  if (dtype == ir::DataType::UInt(32)) {
    return Narrowed<uint32_t>(proto.uint64_data());
  }
  switch (dtype.bytes()) {
    case 1:
      return Narrowed<uint8_t>(proto.int32_data());
    case 2:
      return Narrowed<uint16_t>(proto.int32_data());
    default:
      return Narrowed<int32_t>(proto.int32_data());
  }
}

absl::StatusOr<graph::TensorData> ReadExternal(const pb::TensorProto& proto,
                                               int64_t bytes,
                                               ExternalData& external) {
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t& number = entry.key() == "offset" ? offset : length;
      if (!absl::SimpleAtoi(entry.value(), &number) || number < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("external data: ", entry.key(), " is '", entry.value(),
                         "', not a number of bytes"));
      }
    }
  }
  if (length != bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "external data: ", length, " bytes for a tensor of ", bytes));
  }
  return external.Read(location, offset, length);
}

}  // namespace

std::optional<ir::DataType> DtypeOf(int onnx_type) {
  for (const TypeEntry& entry : Types()) {
    if (entry.onnx_type == onnx_type) return entry.dtype;
  }
  return std::nullopt;
}

std::optional<ir::DataType> StorageDtypeOf(int onnx_type) {
  const SmallType* small = FindSmallType(onnx_type);
  return small != nullptr ? small->storage : DtypeOf(onnx_type);
}

int OnnxTypeOf(ir::DataType dtype) {
  for (const TypeEntry& entry : Types()) {
    if (entry.dtype == dtype) return entry.onnx_type;
  }
  return 0;
}

std::string OnnxTypeName(int onnx_type) {
  for (const TypeEntry& entry : Types()) {
    if (entry.onnx_type == onnx_type) return std::string(entry.name);
  }
  return absl::StrCat("type ", onnx_type);
}

struct ExternalData::File {
  void* address = MAP_FAILED;
  size_t size = 0;

  ~File() {
    if (address != MAP_FAILED) munmap(address, size);
  }
};

absl::StatusOr<graph::TensorData> ExternalData::Read(
    const std::string& location, int64_t offset, int64_t length) {
  namespace fs = std::filesystem;
  const auto fail = [&](auto... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data in '", location, "': ", parts...));
  };
  if (directory_.empty()) return fail("this model may not have any");
  const fs::path relative(location);
  if (location.empty() || relative.is_absolute()) {
    return fail("the location must be a path relative to the model");
  }
  std::shared_ptr<const File>& known = files_[location];
  if (known == nullptr) {
    std::error_code error;
    const fs::path base = fs::canonical(directory_, error);
    const fs::path path = fs::canonical(base / relative, error);
    if (error) {
      files_.erase(location);
      return absl::NotFoundError(absl::StrCat(
          "external data: cannot open ",
          (fs::path(directory_) / relative).string(), ": ", error.message()));
    }
    const fs::path inside = path.lexically_relative(base);
    if (inside.empty() || *inside.begin() == "..") {
      files_.erase(location);
      return fail("the path leaves the model's directory");
    }
    auto file = std::make_shared<File>();
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (descriptor < 0 || fstat(descriptor, &info) != 0 ||
        !S_ISREG(info.st_mode)) {
      if (descriptor >= 0) close(descriptor);
      files_.erase(location);
      return fail("not a readable file");
    }
    file->size = static_cast<size_t>(info.st_size);
    if (file->size > 0) {
      file->address =
          mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    close(descriptor);
    if (file->size > 0 && file->address == MAP_FAILED) {
      files_.erase(location);
      return absl::UnavailableError(absl::StrCat("cannot map ", path.string(),
                                                 ": ", std::strerror(errno)));
    }
    known = std::move(file);
  }
  const auto size = static_cast<int64_t>(known->size);
  if (offset < 0 || length < 0 || offset > size || length > size - offset) {
    return fail("bytes ", offset, " to ", offset, " + ", length,
                ", but the file has ", size);
  }
  if (length == 0) return graph::TensorData();
  return graph::TensorData(
      known, {static_cast<const std::byte*>(known->address) + offset,
              static_cast<size_t>(length)});
}

absl::StatusOr<TensorContents> ReadTensor(const pb::TensorProto& proto,
                                          ExternalData& external,
                                          SmallTypes small_types) {
  const auto fail = [&](auto... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", proto.name(), "': ", parts...));
  };
  const SmallType* small = small_types == SmallTypes::kUnpack
                               ? FindSmallType(proto.data_type())
                               : nullptr;
  const std::optional<ir::DataType> dtype =
      small != nullptr ? small->storage : DtypeOf(proto.data_type());
  if (!dtype.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("tensor '", proto.name(), "': element type ",
                     OnnxTypeName(proto.data_type())));
  }
  const ir::Limits limits;
  TensorContents contents{{*dtype, {}}, {}};
  int64_t bytes = dtype->bytes();
  for (const int64_t extent : proto.dims()) {
    if (extent < 0) return fail("negative dimension ", extent);
    if (extent > 0 && bytes > limits.max_buffer_bytes / extent) {
      return fail("has more than ", limits.max_buffer_bytes, " bytes");
    }
    bytes *= extent;
    contents.type.shape.push_back(extent);
  }
  if (static_cast<int>(contents.type.shape.size()) > limits.max_dims) {
    return fail(contents.type.shape.size(), " dimensions; at most ",
                limits.max_dims, " are supported");
  }
  const int64_t num_elements = bytes / dtype->bytes();
  if (small != nullptr) bytes = PackedBytes(*small, num_elements);
  if (proto.data_location() == pb::TensorProto::EXTERNAL) {
    absl::StatusOr<graph::TensorData> data =
        ReadExternal(proto, bytes, external);
    if (!data.ok()) {
      return absl::Status(data.status().code(),
                          absl::StrCat("tensor '", proto.name(),
                                       "': ", data.status().message()));
    }
    contents.data = *std::move(data);
    if (small != nullptr) {
      contents.small_type = small->onnx_type;
      contents.data = graph::TensorData(
          Unpacked(*small, contents.data.bytes(), num_elements));
    }
    return contents;
  }
  std::vector<std::byte> elements;
  if (proto.has_raw_data()) {
    const std::span raw = std::as_bytes(std::span(proto.raw_data()));
    elements.assign(raw.begin(), raw.end());
  } else {
    // Entries of a packed type hold one byte each, as for the other types.
    elements = TypedElements(proto, *dtype);
  }
  if (static_cast<int64_t>(elements.size()) != bytes) {
    return fail(elements.size(), " bytes of data; its shape needs ", bytes);
  }
  if (small != nullptr) {
    contents.small_type = small->onnx_type;
    elements = Unpacked(*small, elements, num_elements);
  }
  if (dtype->is_bool()) {
    // Generated code takes 0 and 1 only.
    for (std::byte& value : elements) {
      value = std::byte{value != std::byte{0}};
    }
  }
  contents.data = graph::TensorData(std::move(elements));
  return contents;
}

}  // namespace tilefarm::onnx

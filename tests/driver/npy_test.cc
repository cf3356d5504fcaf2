#include "compiler/driver/npy.h"

#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

using graph::TensorData;
using graph::TensorType;
using testing::HasSubstr;

// A file with this header and these elements.
std::string File(const std::string& header, size_t element_bytes) {
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + std::string(element_bytes, '\1');
}

std::string Rejection(const std::string& bytes) {
  const auto array = ParseNpy(bytes);
  EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(array.status().message());
}

TEST(Npy, ReadsWhatItWrites) {
  using ir::DataType;
  for (const DataType dtype :
       {DataType::Bool(), DataType::Int(8), DataType::Int(16),
        DataType::Int(32), DataType::Int(64), DataType::UInt(8),
        DataType::UInt(16), DataType::UInt(32), DataType::UInt(64),
        DataType::Float(16), DataType::Float(32), DataType::Float(64)}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {0, 4}, {1}}) {
      const TensorType type{dtype, shape};
      SCOPED_TRACE(type.ToString());
      std::vector<std::byte> elements(static_cast<size_t>(type.num_bytes()));
      for (size_t i = 0; i < elements.size(); ++i) {
        elements[i] = std::byte(dtype.is_bool() ? i % 2 : i * 7 + 1);
      }
      const std::string bytes = PrintNpy(type, TensorData(elements));
      // The elements begin at a multiple of 64 bytes.
      EXPECT_EQ((bytes.size() - elements.size()) % 64, 0u);
      const auto array = ParseNpy(bytes);
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_EQ(array->type, type);
      EXPECT_EQ(graph::Elements<std::byte>(array->data), elements);
    }
  }
}

TEST(Npy, WritesBFloat16AsItsBits) {
  const TensorType type{ir::DataType::BFloat16(), {2}};
  const auto array =
      ParseNpy(PrintNpy(type, graph::DataOf(std::vector<uint16_t>{1, 2})));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->type.dtype, ir::DataType::UInt(16));
}

TEST(Npy, ReadsBoolsAsZeroAndOne) {
  std::string bytes =
      File("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", 3);
  bytes[bytes.size() - 1] = '\0';
  bytes[bytes.size() - 2] = '\5';
  const auto array = ParseNpy(bytes);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(graph::Elements<uint8_t>(array->data),
              testing::ElementsAre(1, 1, 0));
}

TEST(Npy, ReadsLongHeaders) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  std::string bytes("\x93NUMPY\x02\0", 8);
  bytes += static_cast<char>(header.size());
  bytes += std::string("\0\0\0", 3) + header + std::string(8, '\0');
  const auto array = ParseNpy(bytes);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->type, graph::F32({2}));
}

TEST(Npy, RejectsWhatItCannotUse) {
  const auto file = [](const std::string& descr, const std::string& order,
                       const std::string& shape, size_t bytes) {
    return File("{'descr': '" + descr + "', 'fortran_order': " + order +
                    ", 'shape': " + shape + ", }\n",
                bytes);
  };
  EXPECT_THAT(Rejection(""), HasSubstr("does not begin with"));
  EXPECT_THAT(Rejection("PK\3\4 a zip archive"),
              HasSubstr("does not begin with"));
  EXPECT_THAT(Rejection(file("<f4", "True", "(2, 3)", 24)),
              HasSubstr("Fortran order"));
  EXPECT_THAT(Rejection(file(">f4", "False", "(2,)", 8)),
              HasSubstr("element type '>f4'"));
  EXPECT_THAT(Rejection(file("<c8", "False", "(1,)", 8)),
              HasSubstr("element type '<c8'"));
  EXPECT_THAT(Rejection(file("<f4", "False", "(2,)", 7)),
              HasSubstr("has 7 bytes of elements; its shape needs 8"));
  EXPECT_THAT(Rejection(file("<f4", "False", "(2,)", 9)),
              HasSubstr("has 9 bytes"));
  EXPECT_THAT(Rejection(file("<f4", "False", "(4294967296, 4294967296)", 0)),
              HasSubstr("its shape is"));
  EXPECT_THAT(Rejection(file("<f4", "False", "(99999999999999999999,)", 0)),
              HasSubstr("its shape is"));
  EXPECT_THAT(Rejection(File("{'descr': [('a', '<f4')]}\n", 4)),
              HasSubstr("its header is"));
}

TEST(Npy, RejectsEveryTruncation) {
  const std::string bytes = PrintNpy(
      graph::F32({2, 2}), graph::DataOf(std::vector<float>{1, 2, 3, 4}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseNpy(bytes.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace tilefarm::driver

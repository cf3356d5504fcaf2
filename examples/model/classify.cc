// Prints the label that a classification model gives an input, as classify.c
// does, with the C++ wrapper.
//
//   tunec model.onnx --target host -o model.so
//   c++ -std=c++20 classify.cc ./model.so -o classify
//   ./classify INPUT LABELS
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.h"
#include "tilefarm_model.hpp"

namespace {

std::vector<float> ReadFloats(const std::string& path, size_t count) {
  std::vector<float> data(count);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const auto bytes = static_cast<std::streamsize>(count * sizeof(float));
  file.read(reinterpret_cast<char*>(data.data()), bytes);
  if (file.gcount() != bytes || file.peek() != EOF) {
    throw std::runtime_error(path + ": is not as large as the model's input");
  }
  return data;
}

std::string ReadLabel(const std::string& path, std::ptrdiff_t number) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::string label;
  for (std::ptrdiff_t i = 0; i <= number; ++i) {
    if (!std::getline(file, label)) {
      throw std::runtime_error(path + ": has fewer labels than the model");
    }
  }
  return label;
}

void Classify(const std::string& input_path, const std::string& labels_path) {
  tilefarm::Model model(TILEFARM_MODEL(model));
  const tilefarm::Tensor& input = model.inputs().at(0);
  const tilefarm::Tensor& output = model.outputs().at(0);
  const std::vector<float> image = ReadFloats(input_path, input.elements());
  std::vector<float> scores(output.elements());
  model.SetInput<float>(input.name, image);
  model.SetOutput<float>(output.name, scores);
  model.Run();
  const auto best = std::max_element(scores.begin(), scores.end());
  const std::string label = ReadLabel(labels_path, best - scores.begin());
  std::printf("%s %.3f\n", label.c_str(), *best);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify INPUT LABELS\n");
    return 2;
  }
  try {
    Classify(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "classify: %s\n", error.what());
    return 1;
  }
  return 0;
}

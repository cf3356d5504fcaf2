// A small classification model for tests of tools.
#ifndef TILEFARM_TESTS_ONNX_CLASSIFIER_MODEL_H_
#define TILEFARM_TESTS_ONNX_CLASSIFIER_MODEL_H_

#include <string>

namespace tilefarm::onnx {

// A serialised ONNX model: scores = softmax(image * w + b), where image is
// float32 [batch, 4], w is a constant that puts element i into score i (element
// 3 into none), and b is zero; scores is float32 [batch, 3].
std::string ClassifierModel();

}  // namespace tilefarm::onnx

#endif  // TILEFARM_TESTS_ONNX_CLASSIFIER_MODEL_H_

/* Prints the label that a classification model gives an input.
 *
 *   tunec model.onnx --target host -o model.so
 *   cc classify.c ./model.so -o classify
 *   ./classify INPUT LABELS
 *
 * INPUT has the elements of the model's only input, float32 in this machine's
 * byte order; LABELS has one label on each line. The model's first output has
 * one float32 score for each label. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { kFloat = 1, kLabelBytes = 256 };

static size_t Elements(const tf_tensor_info* info) {
  size_t count = 1;
  for (int32_t i = 0; i < info->rank; ++i) count *= (size_t)info->shape[i];
  return count;
}

static int Fail(const char* what, const char* why) {
  fprintf(stderr, "classify: %s: %s\n", what, why);
  return 1;
}

/* Fills `data`; 0 if the file has exactly that many elements. */
static int ReadInput(const char* path, float* data, size_t elements) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return Fail(path, "cannot be read");
  const size_t count = fread(data, sizeof(float), elements, file);
  const int more = fgetc(file) != EOF;
  fclose(file);
  if (count != elements || more) {
    return Fail(path, "is not as large as the model's input");
  }
  return 0;
}

/* The line of this number; 0 if there is one. */
static int ReadLabel(const char* path, size_t number, char* label) {
  FILE* file = fopen(path, "r");
  if (file == NULL) return Fail(path, "cannot be read");
  int found = 1;
  for (size_t i = 0; i <= number && found; ++i) {
    found = fgets(label, kLabelBytes, file) != NULL;
  }
  fclose(file);
  if (!found) return Fail(path, "has fewer labels than the model");
  label[strcspn(label, "\n")] = 0;
  return 0;
}

static int Classify(model_model* model, const char* input_path,
                    const char* labels_path, float* input, float* scores) {
  const size_t labels = Elements(model_output(0));
  const void* inputs[] = {input};
  void* outputs[] = {scores};
  size_t best = 0;
  char label[kLabelBytes];
  if (ReadInput(input_path, input, Elements(model_input(0))) != 0) return 1;
  if (model_run(model, inputs, outputs) != 0) {
    return Fail("the model", model_error());
  }
  for (size_t i = 1; i < labels; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  if (ReadLabel(labels_path, best, label) != 0) return 1;
  printf("%s %.3f\n", label, scores[best]);
  return 0;
}

int main(int argc, char** argv) {
  model_model* model = NULL;
  if (argc != 3) {
    fprintf(stderr, "usage: classify INPUT LABELS\n");
    return 2;
  }
  if (model_inputs() != 1 || model_outputs() != 1 ||
      model_input(0)->dtype != kFloat || model_output(0)->dtype != kFloat) {
    return Fail("the model", "is not one of a float32 input and output");
  }
  if (model_create(NULL, &model) != 0) return Fail("the model", model_error());
  float* input = malloc(Elements(model_input(0)) * sizeof(float));
  float* scores = malloc(Elements(model_output(0)) * sizeof(float));
  const int status = input == NULL || scores == NULL
                         ? Fail("the tensors", "no memory")
                         : Classify(model, argv[1], argv[2], input, scores);
  free(scores);
  free(input);
  model_destroy(model);
  return status;
}

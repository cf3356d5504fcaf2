/* Models with open dimensions: which of the compiled variants takes the inputs
 * of a call. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

static int32_t Takes(const struct tf_rt_model* model,
                     const struct tf_rt_variant* variant,
                     const int64_t* const* shapes) {
  for (int32_t i = 0; i < model->input_count; ++i) {
    for (int32_t d = 0; d < model->inputs[i].rank; ++d) {
      if (shapes[i][d] != variant->input_shapes[i][d]) return 0;
    }
  }
  return 1;
}

/* Text of limited length; what does not fit is left out. */
struct Text {
  char* at;
  size_t room; /* with the 0 at the end; never 0 */
};

static void Append(struct Text* text, const char* format, ...) {
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  const int length = vsnprintf(text->at, text->room, format, arguments);
  __builtin_va_end(arguments);
  if (length < 0) return;
  const size_t used =
      (size_t)length < text->room ? (size_t)length : text->room - 1;
  text->at += used;
  text->room -= used;
}

static void AppendShape(struct Text* text,
                        const struct tf_rt_tensor_info* input,
                        const int64_t* shape) {
  Append(text, "%s [", input->name);
  for (int32_t d = 0; d < input->rank; ++d) {
    Append(text, "%s%lld", d == 0 ? "" : ", ", (long long)shape[d]);
  }
  Append(text, "]");
}

const struct tf_rt_variant* tf_rt_choose_variant(
    const struct tf_rt_model* model, const int64_t* const* input_shapes,
    char* error) {
  for (int32_t i = 0; i < model->input_count; ++i) {
    if (model->inputs[i].rank == 0 || input_shapes[i] != NULL) continue;
    if (error == NULL) return NULL;
    snprintf(error, TF_RT_ERROR_BYTES,
             "run_shaped: the shape of the input %s is null",
             model->inputs[i].name);
    return NULL;
  }
  for (int32_t v = 0; v < model->variant_count; ++v) {
    if (Takes(model, &model->variants[v], input_shapes)) {
      return &model->variants[v];
    }
  }
  if (error == NULL) return NULL;
  struct Text text = {error, TF_RT_ERROR_BYTES};
  Append(&text, "run_shaped: the library was compiled for %s, not for ",
         model->sizes);
  for (int32_t i = 0; i < model->input_count; ++i) {
    if (i > 0) Append(&text, ", ");
    AppendShape(&text, &model->inputs[i], input_shapes[i]);
  }
  return NULL;
}

// The programs of examples/model and the C++ wrapper, with a small model that
// tunec compiles.
#include <dlfcn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/model/tilefarm_model.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/classifier_model.h"

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

struct Result {
  int code;
  std::string out;  // and err
};

Result Shell(const fs::path& folder, const std::string& command) {
  const int status = std::system(
      absl::StrCat("cd ", folder.string(), " && ", command, " >out.txt 2>&1")
          .c_str());
  std::ifstream file(folder / "out.txt");
  std::ostringstream text;
  text << file.rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

// A folder with the examples, model.so, model.h and model.weights, and inputs.
class ModelExamples : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = testing::TempDir() + "/examples-XXXXXX";
    folder_ = new fs::path(mkdtemp(pattern.data()));
    fs::copy(fs::path(TILEFARM_SOURCE_DIR) / "examples/model", *folder_);
    Write("model.onnx", onnx::ClassifierModel());
    const Result built =
        Run(absl::StrCat("env -u TUNE_SERVER ", TILEFARM_BIN_DIR,
                         "/tunec model.onnx --target host,cores=1 --dim batch=1"
                         " -o model.so --weights model.weights"));
    ASSERT_EQ(built.code, 0) << built.out;
    Write("input", Floats({0, 3, 1, 0}));
    Write("short", Floats({0, 3, 1}));
    Write("long", Floats({0, 3, 1, 0, 0}));
    Write("labels", "cat\ndog\nbird\n");
    Write("few", "cat\n");
  }
  static void TearDownTestSuite() {
    fs::remove_all(*folder_);
    delete folder_;
  }

  static Result Run(const std::string& command) {
    return Shell(*folder_, command);
  }
  static void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(*folder_ / name, std::ios::binary) << bytes;
  }
  // What every one of the programs does; `size_error` is for inputs of the
  // wrong size.
  static void ExpectClassifies(const std::string& program,
                               const std::string& size_error) {
    const Result result = Run(program + " input labels");
    EXPECT_EQ(result.code, 0);
    // exp(3) / (exp(0) + exp(3) + exp(1))
    EXPECT_EQ(result.out, "dog 0.844\n");
    const auto expect_error = [&](const std::string& arguments, int code,
                                  const std::string& message) {
      const Result failed = Run(program + arguments);
      EXPECT_EQ(failed.code, code) << program << arguments;
      EXPECT_THAT(failed.out, HasSubstr(message));
    };
    expect_error(" short labels", 1, size_error);
    expect_error(" long labels", 1, size_error);
    expect_error(" absent labels", 1, "absent");
    expect_error(" input absent", 1, "absent");
    expect_error(" input few", 1, "few: has fewer labels than the model");
    expect_error("", 2, "usage: classify");
    fs::rename(*folder_ / "model.weights", *folder_ / "hidden");
    expect_error(" input labels", 1, "options.weights names another place");
    fs::rename(*folder_ / "hidden", *folder_ / "model.weights");
  }

  static fs::path* folder_;
};
fs::path* ModelExamples::folder_ = nullptr;

TEST_F(ModelExamples, TheCProgramPrintsTheLabel) {
  const Result built = Run(TILEFARM_C_COMPILER
                           " -std=c99 -Wall -Wextra -pedantic -Werror"
                           " classify.c ./model.so -o classify_c");
  ASSERT_EQ(built.code, 0) << built.out;
  ExpectClassifies("./classify_c", "is not as large as the model's input");
}

TEST_F(ModelExamples, TheCxxProgramPrintsTheLabel) {
  const Result built = Run(TILEFARM_CXX_COMPILER
                           " -std=c++20 -Wall -Wextra -pedantic -Werror"
                           " classify.cc ./model.so -o classify_cxx");
  ASSERT_EQ(built.code, 0) << built.out;
  ExpectClassifies("./classify_cxx", "is not as large as the model's input");
}

TEST_F(ModelExamples, ThePythonProgramPrintsTheLabel) {
  ExpectClassifies("python3 classify.py model.so",
                   "the tensor image has 4 elements");
}

// Each has the runtime and hidden functions of the same names.
TEST_F(ModelExamples, ArchivesOfSeveralModelsFitIntoOneProgram) {
  for (const std::string name : {"left", "right"}) {
    const Result built = Run(
        absl::StrCat("env -u TUNE_SERVER ", TILEFARM_BIN_DIR,
                     "/tunec model.onnx --target host --dim batch=1 --symbol ",
                     name, " -o ", name, ".a"));
    ASSERT_EQ(built.code, 0) << built.out;
  }
  Write("both.c", R"(
#include <stdio.h>
#include "left.h"
#include "right.h"
int main(void) {
  left_model* left = 0;
  right_model* right = 0;
  const float a[4] = {0, 3, 1, 0}, b[4] = {0, 0, 5, 0};
  const void *to_left[] = {a}, *to_right[] = {b};
  float x[3], y[3];
  void *from_left[] = {x}, *from_right[] = {y};
  if (left_create(0, &left) || right_create(0, &right)) return 1;
  if (left_run(left, to_left, from_left)) return 2;
  if (right_run(right, to_right, from_right)) return 3;
  left_destroy(left);
  right_destroy(right);
  printf("%.3f %.3f\n", x[1], y[2]);
  return 0;
}
)");
  const Result built = Run(TILEFARM_C_COMPILER
                           " -std=c99 -Wall -Wextra -pedantic -Werror -static"
                           " both.c left.a right.a -lm -o both");
  ASSERT_EQ(built.code, 0) << built.out;
  EXPECT_EQ(Run("./both").out, "0.844 0.987\n");
}

// Without packages, as where there is no NumPy.
TEST_F(ModelExamples, ThePythonProgramNeedsTheStandardLibraryAlone) {
  EXPECT_EQ(Run("python3 -I -S classify.py model.so input labels").out,
            "dog 0.844\n");
  Write("input.npy", "");
  EXPECT_THAT(Run("python3 -I -S classify.py model.so input.npy labels").out,
              HasSubstr(".npy files need NumPy"));
}

// Left half red, right half black, 4 pixels high: the middle 7 of 8 columns of
// the enlarged picture are kept.
TEST_F(ModelExamples, APictureBecomesAnInput) {
  const std::string python = "/usr/bin/python3";  // that Debian's Pillow is of
  std::string picture = "P6 8 4 255\n";
  for (int pixel = 0; pixel < 32; ++pixel) {
    picture += std::string(1, pixel % 8 < 4 ? '\xff' : '\0');
    picture += std::string(2, '\0');
  }
  Write("picture.ppm", picture);
  const Result made = Run(python + " image_input.py picture.ppm made 7");
  ASSERT_EQ(made.code, 0) << made.out;
  std::ifstream file(*folder_ / "made", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(bytes.size(), 3 * 7 * 7 * sizeof(float));
  const auto* numbers = reinterpret_cast<const float*>(bytes.data());
  EXPECT_NEAR(numbers[0], (1 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(numbers[6], -0.485 / 0.229, 1e-5);
  for (int i = 0; i < 49; ++i) {
    EXPECT_NEAR(numbers[49 + i], -0.456 / 0.224, 1e-5);
    EXPECT_NEAR(numbers[98 + i], -0.406 / 0.225, 1e-5);
  }
  const auto expect_error = [&](const std::string& arguments, int code,
                                const std::string& message) {
    const Result failed = Run(python + " image_input.py " + arguments);
    EXPECT_EQ(failed.code, code) << arguments;
    EXPECT_THAT(failed.out, HasSubstr(message));
  };
  expect_error("absent.jpg made", 1, "absent.jpg");
  expect_error("labels made", 1, "cannot identify image file");
  expect_error("picture.ppm made 0", 1, "0 is no size");
  expect_error("picture.ppm", 2, "usage: image_input.py");
}

class CxxModel : public ModelExamples {
 protected:
  CxxModel()
      : library_(dlopen((*folder_ / "model.so").c_str(), RTLD_NOW | RTLD_LOCAL),
                 &dlclose) {}

  template <typename Function>
  static std::string ErrorOf(const Function& function) {
    try {
      function();
    } catch (const ModelError& error) {
      return error.what();
    }
    return "no error";
  }

  std::shared_ptr<void> library_;
};

TEST_F(CxxModel, RunsALibraryThatIsOpenedAtRunTime) {
  Model model(FindModel(library_.get(), "model"));
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "image");
  EXPECT_EQ(model.inputs()[0].dtype, 1);
  EXPECT_THAT(model.outputs().at(0).shape, testing::ElementsAre(1, 3));
  const std::vector<float> image = {0, 0, 5, 0};
  std::vector<float> scores(3);
  model.SetInput<float>("image", image);
  model.SetOutput<float>("scores", scores);
  Model moved = std::move(model);
  moved.Run();
  EXPECT_GT(scores[2], 0.9f);
  EXPECT_NEAR(scores[0] + scores[1] + scores[2], 1, 1e-5);
}

TEST_F(CxxModel, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf([&] { FindModel(library_.get(), "net"); }),
              HasSubstr("no function net_inputs"));
  const ModelFunctions functions = FindModel(library_.get(), "model");
  EXPECT_THAT(ErrorOf([&] { Model(functions, {.threads = -1}); }),
              HasSubstr("options.threads must be"));
  EXPECT_THAT(ErrorOf([&] { Model(functions, {.weights = "absent"}); }),
              HasSubstr("the weights file absent cannot be opened"));
  Model model(functions, {.weights = *folder_ / "model.weights", .threads = 1});
  std::vector<float> image(4), scores(3);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }), "the input 'image' is not set");
  EXPECT_EQ(ErrorOf([&] { model.SetInput<float>("picture", image); }),
            "the model has no input 'picture'; it has image");
  EXPECT_EQ(ErrorOf([&] { model.SetInput<float>("image", scores); }),
            "the input 'image' has 4 elements, and 3 are given");
  const std::vector<double> doubles(4);
  EXPECT_THAT(ErrorOf([&] { model.SetInput<double>("image", doubles); }),
              HasSubstr("another element type"));
  model.SetInput<float>("image", image);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }), "the output 'scores' is not set");
  model.SetOutput<float>("scores", scores);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }), "no error");
}

// A library with open dimensions, in both forms of the wrapper.
TEST_F(CxxModel, TakesSeveralSizes) {
  const Result built = Run(absl::StrCat(
      "env -u TUNE_SERVER ", TILEFARM_BIN_DIR,
      "/tunec model.onnx --target host,cores=1 --dim batch=1,2 --symbol sized"
      " -o sized.so"));
  ASSERT_EQ(built.code, 0) << built.out;
  Write("sized.cc", R"(
#include <cstdio>
#include "sized.h"
#include "tilefarm_model.hpp"
int main() {
  tilefarm::Model model(TILEFARM_OPEN_MODEL(sized));
  std::vector<float> images = {0, 3, 1, 0, 0, 0, 5, 0}, scores(6);
  model.SetInput<float>("image", images, {2, 4});
  model.SetOutput<float>("scores", scores);
  model.Run();
  std::printf("%.3f %.3f\n", scores[1], scores[5]);
}
)");
  const Result compiled =
      Run(TILEFARM_CXX_COMPILER
          " -std=c++20 -Wall -Wextra -pedantic -Werror sized.cc ./sized.so -o "
          "sized");
  ASSERT_EQ(compiled.code, 0) << compiled.out;
  EXPECT_EQ(Run("./sized").out, "0.844 0.987\n");

  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen((*folder_ / "sized.so").c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  ASSERT_NE(library, nullptr) << dlerror();
  Model model(FindModel(library.get(), "sized"));
  EXPECT_TRUE(model.inputs()[0].open());
  std::vector<float> images(8), scores(3);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }), "the input 'image' is not set");
  EXPECT_EQ(ErrorOf([&] { model.SetInput<float>("image", images); }),
            "the input 'image' has open dimensions: give its shape");
  EXPECT_EQ(ErrorOf([&] { model.SetInput<float>("image", images, {8}); }),
            "the input 'image' has 2 dimensions, and 1 are given");
  EXPECT_EQ(ErrorOf([&] {
              model.SetInput<float>("image", images, {3, 4});
            }),
            "the input 'image' has 12 elements, and 8 are given");
  model.SetInput<float>("image", images, {2, 4});
  EXPECT_THAT(model.ResultShape("scores"), testing::ElementsAre(2, 3));
  model.SetOutput<float>("scores", scores);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }),
            "the output 'scores' has 6 elements, and 3 are given");
  scores.resize(6);
  model.SetOutput<float>("scores", scores);
  EXPECT_EQ(ErrorOf([&] { model.Run(); }), "no error");
  images.resize(12);
  model.SetInput<float>("image", images, {3, 4});
  EXPECT_THAT(ErrorOf([&] { model.Run(); }),
              HasSubstr("compiled for batch=1; batch=2, not for image [3, 4]"));
}

}  // namespace
}  // namespace tilefarm

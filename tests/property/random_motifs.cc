#include "tests/property/random_motifs.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::property {
namespace {

struct ProductTypes {
  const char* a;
  const char* b;
  const char* sum;
  int64_t group;  // products that one instruction adds
};

// Operand types of dot products and matrix units, and plain float32.
constexpr ProductTypes kProducts[] = {
    {"float32", "float32", "float32", 1},
    {"float32", "float32", "float32", 1},
    {"uint8", "int8", "int32", 4},
    {"uint8", "int8", "int32", 4},
    {"int8", "int8", "int32", 4},
    {"uint8", "uint8", "int32", 4},
    {"int16", "int16", "int32", 2},
    {"bfloat16", "bfloat16", "float32", 2},
};

std::string CastTo(const std::string& dtype, const std::string& from,
                   const std::string& value) {
  return dtype == from ? value
                       : absl::StrCat("T.Cast(\"", dtype, "\", ", value, ")");
}

}  // namespace

int RandomMotifs::NewTensor(const char* prefix, const std::string& dtype,
                            std::vector<int64_t> shape, bool parameter,
                            bool input) {
  TensorDecl t;
  t.name = Fresh(prefix);
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.parameter = parameter;
  t.input = input;
  tensors_.push_back(std::move(t));
  return static_cast<int>(tensors_.size()) - 1;
}
int RandomMotifs::Input(const std::string& dtype, std::vector<int64_t> shape) {
  const int made = NewTensor("P", dtype, std::move(shape), true, true);
  readable_.push_back(made);
  return made;
}
int RandomMotifs::Output(const std::string& dtype, std::vector<int64_t> shape) {
  return NewTensor("Q", dtype, std::move(shape), rng_.Chance(0.6), false);
}
int RandomMotifs::Temporary(const std::string& dtype,
                            std::vector<int64_t> shape) {
  return NewTensor("M", dtype, std::move(shape), false, false);
}

void RandomMotifs::Written(int tensor, double magnitude, bool exact) {
  TensorDecl& t = tensors_[static_cast<size_t>(tensor)];
  t.magnitude = magnitude;
  t.exact = exact;
  if (t.parameter) wrote_output_ = true;
  readable_.push_back(tensor);
}

void RandomMotifs::Reduce(const std::string& element, const std::string& first,
                          const std::string& update) {
  Line("with T.init():");
  ++depth_;
  Line(absl::StrCat(element, " = ", first));
  --depth_;
  Line(absl::StrCat(element, " = ", update));
}

void RandomMotifs::Motif() {
  switch (rng_.Below(7)) {
    case 0:
    case 1:
    case 2:
      return Product();
    case 3:
      return Softmax();
    case 4:
      // Draws nothing: programs of known seeds stay what they are.
      return tensors_.size() % 2 == 0 ? Extreme() : Moments();
    case 5:
      return Convolution();
    default:
      return Transposed();
  }
}

// C[.., i, j] += A[.., i, k] * B[k, j], with B as given, transposed, or in the
// groups of k that matrix units read.
void RandomMotifs::Product() {
  const ProductTypes& types = kProducts[rng_.Below(std::size(kProducts))];
  const int64_t group = types.group;
  const int layout = static_cast<int>(rng_.Below(group > 1 ? 3 : 2));
  int64_t m = PickOf<int64_t>({1, 2, 3, 4, 8});
  int64_t n = PickOf<int64_t>({1, 4, 8, 8, 16, 16, 32, 20});
  int64_t k = PickOf<int64_t>({4, 8, 8, 12, 16, 7});
  if (layout == 2) {
    k = (k + group - 1) / group * group;
    if (rng_.Chance(0.6)) {
      // A whole tile of a matrix unit.
      m = 16;
      n = 16;
      k = 16 * group;
    }
  }
  std::vector<Axis> axes{{m}, {n}, {k, true}};
  if (rng_.Chance(0.2)) axes.insert(axes.begin(), Axis{rng_.Between(1, 3)});
  const std::vector<int64_t> b_shape =
      layout == 0   ? std::vector<int64_t>{k, n}
      : layout == 1 ? std::vector<int64_t>{n, k}
                    : std::vector<int64_t>{k / group, n, group};
  std::vector<int64_t> a_shape{m, k}, c_shape{m, n};
  if (axes.size() == 4) {
    a_shape.insert(a_shape.begin(), axes[0].extent);
    c_shape.insert(c_shape.begin(), axes[0].extent);
  }
  const int a = Input(types.a, a_shape);
  const int b = Input(types.b, b_shape);
  const int c = Output(types.sum, c_shape);
  const std::vector<std::string> v = OpenBlock("P", axes, rng_.Chance(0.25));
  const std::string& vj = v[v.size() - 2];
  const std::string& vk = v.back();
  std::vector<std::string> c_at(v.begin(), v.end() - 1);
  std::vector<std::string> a_at(v.begin(), v.end() - 2);
  a_at.push_back(vk);
  const std::vector<std::string> b_at =
      layout == 0 ? std::vector<std::string>{vk, vj}
      : layout == 1
          ? std::vector<std::string>{vj, vk}
          : std::vector<std::string>{absl::StrCat(vk, " // ", group), vj,
                                     absl::StrCat(vk, " % ", group)};
  std::string left = CastTo(types.sum, types.a, At(a, a_at));
  std::string right = CastTo(types.sum, types.b, At(b, b_at));
  if (rng_.Chance(0.1)) std::swap(left, right);
  const std::string element = At(c, c_at);
  Reduce(element, absl::StrCat("T.", types.sum, "(0)"),
         absl::StrCat(element, " + ", left, " * ", right));
  CloseBlock();
  Written(c, static_cast<double>(9 * k), true);
}

// The maximum of each row, the sum of exponentials relative to it, and their
// quotient. The exponentials may have a block of their own.
void RandomMotifs::Softmax() {
  const bool wide = rng_.Chance(0.25);
  const std::string dtype = wide ? "float64" : "float32";
  const char* const lowest = wide ? "T.float64(-1.7976931348623157e308)"
                                  : "T.float32(-3.4028234663852886e38)";
  std::vector<Axis> rows;
  for (int d = static_cast<int>(rng_.Between(1, 2)); d > 0; --d) {
    rows.push_back({rng_.Between(1, 5)});
  }
  const int64_t n = rng_.Between(1, 40);
  std::vector<int64_t> row_shape;
  for (const Axis& axis : rows) row_shape.push_back(axis.extent);
  std::vector<int64_t> shape = row_shape;
  shape.push_back(n);
  const int x = Input(dtype, shape);
  const int largest = Temporary(dtype, row_shape);
  const int sum = Temporary(dtype, row_shape);
  const bool apart = rng_.Chance(0.4);
  const int terms = apart ? Temporary(dtype, shape) : -1;
  const int out = Output(dtype, shape);
  const int scaled = static_cast<int>(rng_.Below(3));
  const int64_t seen = rng_.Between(1, n);
  const auto value = [&](const std::vector<std::string>& at) {
    const std::string element = At(x, at);
    if (scaled == 0) return absl::StrCat(element, " * T.", dtype, "(0.5)");
    if (scaled == 1) {
      return absl::StrCat("T.if_then_else(", at.back(), " < ", seen, ", ",
                          element, ", T.", dtype, "(-1000000000.0))");
    }
    return element;
  };
  std::vector<Axis> all = rows;
  all.push_back({n});
  std::vector<Axis> reduced = rows;
  reduced.push_back({n, true});
  const auto row_of = [](const std::vector<std::string>& v) {
    return std::vector<std::string>(v.begin(), v.end() - 1);
  };
  std::vector<std::string> v = OpenBlock("T_max", reduced, false);
  std::string element = At(largest, row_of(v));
  Reduce(element, lowest, absl::StrCat("T.max(", element, ", ", value(v), ")"));
  CloseBlock();
  const auto term = [&](const std::vector<std::string>& at) {
    return absl::StrCat("T.exp(", value(at), " - ", At(largest, row_of(at)),
                        ")");
  };
  if (apart) {
    v = OpenBlock("T_exp", all, rng_.Chance(0.2));
    Line(absl::StrCat(At(terms, v), " = ", term(v)));
    CloseBlock();
  }
  v = OpenBlock("T_sum", reduced, false);
  element = At(sum, row_of(v));
  Reduce(element, absl::StrCat("T.", dtype, "(0.0)"),
         absl::StrCat(element, " + ", apart ? At(terms, v) : term(v)));
  CloseBlock();
  v = OpenBlock("T_norm", all, rng_.Chance(0.2));
  Line(absl::StrCat(At(out, v), " = ", apart ? At(terms, v) : term(v), " / ",
                    At(sum, row_of(v))));
  CloseBlock();
  exact_ = false;
  Written(out, 1, false);
}

// The sum of each row and, in the same block, that of its squares or its
// maximum; the second one may need the first.
void RandomMotifs::Moments() {
  std::vector<Axis> axes;
  std::vector<int64_t> shape;
  for (int d = static_cast<int>(rng_.Between(1, 2)); d > 0; --d) {
    axes.push_back({rng_.Between(1, 6)});
    shape.push_back(axes.back().extent);
  }
  const std::vector<int64_t> row_shape = shape;
  const int64_t n = rng_.Between(1, 24);
  axes.push_back({n, true});
  shape.push_back(n);
  const int x = Input("float32", shape);
  const int sum = Output("float32", row_shape);
  const int other = Output("float32", row_shape);
  const bool largest = rng_.Chance(0.3);
  const std::vector<std::string> v =
      OpenBlock("T_moments", axes, rng_.Chance(0.25));
  const std::vector<std::string> row(v.begin(), v.end() - 1);
  const std::string first = At(sum, row), second = At(other, row);
  Line("with T.init():");
  ++depth_;
  Line(absl::StrCat(first, " = T.float32(0)"));
  Line(absl::StrCat(second, largest ? " = T.float32(-3.4028234663852886e38)"
                                    : " = T.float32(0)"));
  --depth_;
  const std::string element = At(x, v);
  const std::string term =
      rng_.Chance(0.2) ? first : absl::StrCat(element, " * ", element);
  std::vector<std::string> updates = {
      absl::StrCat(first, " = ", first, " + ", element),
      largest ? absl::StrCat(second, " = T.max(", second, ", ", element, ")")
              : absl::StrCat(second, " = ", second, " + ", term)};
  if (rng_.Chance(0.3)) std::swap(updates[0], updates[1]);
  for (const std::string& update : updates) Line(update);
  CloseBlock();
  Written(sum, static_cast<double>(3 * n), true);
  Written(other, static_cast<double>(9 * n * n), true);
}

// The largest or smallest of three values and where it is, at first or at last;
// or wherever it is found, which depends on the order.
void RandomMotifs::Extreme() {
  std::vector<Axis> axes;
  std::vector<int64_t> shape;
  for (int d = static_cast<int>(rng_.Between(1, 2)); d > 0; --d) {
    axes.push_back({rng_.Between(1, 5)});
    shape.push_back(axes.back().extent);
  }
  const std::vector<int64_t> row_shape = shape;
  const int64_t n = rng_.Between(1, 40);
  axes.push_back({n, true});
  shape.push_back(n);
  const bool wide = rng_.Chance(0.4);
  const std::string type = wide ? "int64" : "int32";
  const int x = Input("int8", shape);
  const int index = Output(type, row_shape);
  const int extreme = Output("int8", row_shape);
  const bool largest = rng_.Chance(0.5);
  const std::vector<std::string> v =
      OpenBlock("T_extreme", axes, rng_.Chance(0.25));
  const std::vector<std::string> row(v.begin(), v.end() - 1);
  const std::string where = At(index, row), found = At(extreme, row);
  Line("with T.init():");
  ++depth_;
  Line(absl::StrCat(where, " = T.", type, "(-1)"));
  Line(absl::StrCat(found, " = T.int8(", largest ? -128 : 127, ")"));
  --depth_;
  const std::string element =
      absl::StrCat("T.max(T.min(", At(x, v), ", T.int8(1)), T.int8(-1))");
  const std::string here = CastTo(type, "int64", v.back());
  const std::string beyond =
      absl::StrCat(found, largest ? " > " : " < ", element);
  std::string keeps = beyond;
  if (rng_.Chance(0.85)) {
    absl::StrAppend(&keeps, " or ", found, " == ", element, " and ", where,
                    rng_.Chance(0.7) ? " < " : " > ", here);
  }
  const std::string new_index = Fresh("i"), new_extreme = Fresh("e");
  Line(absl::StrCat(new_index, " = T.Select(", keeps, ", ", where, ", ", here,
                    ")"));
  Line(absl::StrCat(new_extreme, " = T.Select(", beyond, ", ", found, ", ",
                    element, ")"));
  std::vector<std::string> stores = {absl::StrCat(where, " = ", new_index),
                                     absl::StrCat(found, " = ", new_extreme)};
  if (rng_.Chance(0.3)) std::swap(stores[0], stores[1]);
  for (const std::string& store : stores) Line(store);
  CloseBlock();
  Written(index, static_cast<double>(n), true);
  Written(extreme, 128, true);
}

// A sum over a window of two dimensions and the channels; the border reads
// zeros, from a padded copy or by a guard.
void RandomMotifs::Convolution() {
  const bool channels_last = rng_.Chance(0.5);
  const int64_t window = rng_.Chance(0.85) ? 3 : 2;
  const int64_t pad = rng_.Below(2);
  const int64_t channels = rng_.Between(1, 3), outputs = rng_.Between(1, 4);
  const int64_t h = rng_.Between(window, 7), w = rng_.Between(window, 7);
  const bool wide = rng_.Chance(0.1);
  const std::string dtype = wide ? "float64" : "float32";
  const auto image = [&](int64_t c, int64_t y, int64_t x) {
    return channels_last ? std::vector<int64_t>{1, y, x, c}
                         : std::vector<int64_t>{1, c, y, x};
  };
  const auto at_image = [&](const std::string& n, const std::string& c,
                            const std::string& y, const std::string& x) {
    return channels_last ? std::vector<std::string>{n, y, x, c}
                         : std::vector<std::string>{n, c, y, x};
  };
  const auto axes_of = [](const std::vector<int64_t>& shape) {
    std::vector<Axis> axes;
    for (const int64_t extent : shape) axes.push_back({extent});
    return axes;
  };
  const int data = Input(dtype, image(channels, h, w));
  const int kernel = Input(
      dtype, channels_last
                 ? std::vector<int64_t>{window, window, channels, outputs}
                 : std::vector<int64_t>{outputs, channels, window, window});
  const auto guarded = [&](const std::string& n, const std::string& c,
                           const std::string& y, const std::string& x) {
    return absl::StrCat("T.if_then_else(", y, " >= ", pad, " and ", y, " < ",
                        h + pad, " and ", x, " >= ", pad, " and ", x, " < ",
                        w + pad, ", ",
                        At(data, at_image(n, c, absl::StrCat(y, " - ", pad),
                                          absl::StrCat(x, " - ", pad))),
                        ", T.", dtype, "(0.0))");
  };
  int padded = data;
  const bool copies = pad > 0 && rng_.Chance(0.6);
  if (copies) {
    padded = Temporary(dtype, image(channels, h + 2 * pad, w + 2 * pad));
    const std::vector<std::string> v = OpenBlock(
        "pad", axes_of(tensors_[static_cast<size_t>(padded)].shape), false);
    const std::vector<std::string> p =
        channels_last ? std::vector<std::string>{v[0], v[3], v[1], v[2]} : v;
    Line(absl::StrCat(At(padded, v), " = ", guarded(p[0], p[1], p[2], p[3])));
    CloseBlock();
    Written(padded, kInputMagnitude, true);
  }
  const std::vector<int64_t> out_shape =
      image(outputs, h + 2 * pad - window + 1, w + 2 * pad - window + 1);
  const int out = Output(dtype, out_shape);
  std::vector<Axis> axes = axes_of(out_shape);
  for (const int64_t extent : {channels, window, window}) {
    axes.push_back({extent, true});
  }
  const std::vector<std::string> v = OpenBlock("conv", axes, rng_.Chance(0.2));
  const std::string& vo = channels_last ? v[3] : v[1];
  const std::string& vc = v[4];
  const std::string y = absl::StrCat(channels_last ? v[1] : v[2], " + ", v[5]);
  const std::string x = absl::StrCat(channels_last ? v[2] : v[3], " + ", v[6]);
  const std::string left = pad > 0 && !copies
                               ? guarded(v[0], vc, y, x)
                               : At(padded, at_image(v[0], vc, y, x));
  const std::string right =
      At(kernel, channels_last ? std::vector<std::string>{v[5], v[6], vc, vo}
                               : std::vector<std::string>{vo, vc, v[5], v[6]});
  const std::string element = At(out, {v.begin(), v.begin() + 4});
  Reduce(element, absl::StrCat("T.", dtype, "(0.0)"),
         absl::StrCat(element, " + ", left, " * ", right));
  CloseBlock();
  Written(out, static_cast<double>(9 * channels * window * window), true);
}

// A transposed convolution of one dimension: taps that meet no input add zero.
void RandomMotifs::Transposed() {
  const int64_t stride = rng_.Between(2, 4);
  const int64_t taps = stride * rng_.Between(1, 2);
  const int64_t size = rng_.Between(1, 5), depth = rng_.Between(1, 4);
  const int64_t channels = rng_.Between(1, 8), shift = rng_.Below(2);
  const std::string dtype = rng_.Chance(0.8) ? "float32" : "int32";
  const int data =
      Input(dtype, {size + (taps + shift + stride - 1) / stride, depth});
  const int kernel = Input(dtype, {taps, depth, channels});
  const int out = Output(dtype, {size * stride, channels});
  const std::vector<std::string> v = OpenBlock(
      "deconv", {{size * stride}, {channels}, {taps, true}, {depth, true}},
      rng_.Chance(0.25));
  const std::string reach = absl::StrCat(
      "(", v[0], " + ", v[2],
      shift == 0 ? std::string() : absl::StrCat(" + ", shift), ")");
  const std::string met =
      absl::StrCat("T.if_then_else(", reach, " % ", stride, " == 0, ",
                   At(data, {absl::StrCat(reach, " // ", stride), v[3]}),
                   ", T.", dtype, "(0))");
  const std::string element = At(out, {v[0], v[1]});
  Reduce(
      element, absl::StrCat("T.", dtype, "(0)"),
      absl::StrCat(element, " + ", met, " * ", At(kernel, {v[2], v[3], v[1]})));
  CloseBlock();
  Written(out, static_cast<double>(9 * taps * depth), true);
}

}  // namespace tilefarm::property

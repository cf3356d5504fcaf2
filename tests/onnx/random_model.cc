// One method for each kind of operator, all of one class: each adds nodes to
// the same graph and draws from the same values. So the file is longer than
// others.
#include "tests/onnx/random_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/onnx/schema.h"
#include "tests/onnx/quantized_writer.h"

namespace tilefarm::onnx {
namespace {

constexpr int64_t kMaxElements = 600;

class Maker : QuantizedWriter {
 public:
  explicit Maker(uint64_t seed) : QuantizedWriter(seed) {}

  std::string Make() {
    for (int64_t i = rng_.Between(1, 2); i > 0; --i) AddInput();
    const auto wanted = static_cast<int>(rng_.Between(5, 60));
    while (graph_->node_size() < wanted) Step();
    // Every value that nothing reads is an output, and some others are.
    std::set<std::string> read;
    for (const pb::NodeProto& node : graph_->node()) {
      read.insert(node.input().begin(), node.input().end());
    }
    for (const Tensor& value : values_) {
      const bool computed = value.name[0] != 'x';
      if (computed && (!read.contains(value.name) || rng_.Chance(0.04))) {
        Declare(graph_->add_output(), value);
      }
    }
    return model_.SerializeAsString();
  }

 private:
  void AddInput() {
    static const std::vector<Shape> kShapes = {
        {1, 4, 6, 6}, {2, 3, 5, 5}, {1, 8, 12},  {1, 7, 8},
        {6, 8},       {10, 12},     {1, 6, 1, 1}};
    Tensor value{absl::StrCat("x", values_.size()),
                 kShapes[rng_.Below(kShapes.size())]};
    Declare(graph_->add_input(), value);
    inputs_.push_back(value);
    values_.push_back(std::move(value));
  }

  // Prefers the latest values, so that graphs are deep.
  Tensor Any() {
    const size_t window = rng_.Chance(0.75) ? 3 : values_.size();
    const size_t count = std::min(window, values_.size());
    return values_[values_.size() - 1 - rng_.Below(count)];
  }
  // Keeps what grows in [-1, 1].
  Tensor Bounded(const Tensor& x) { return Unary("Tanh", x); }
  // A shape that broadcasts to `shape`.
  Shape Narrowed(const Shape& shape) {
    Shape narrow = shape;
    switch (rng_.Below(4)) {
      case 0:
        return {};
      case 1:  // one element per channel, as convolutions have them
        for (size_t d = 0; d < narrow.size(); ++d) {
          if (d != 1) narrow[d] = 1;
        }
        return narrow;
      case 2:
        return {narrow.back()};
      default:
        for (int64_t& extent : narrow) {
          if (rng_.Chance(0.3)) extent = 1;
        }
        return narrow;
    }
  }
  // Another value that broadcasts to the shape, or a constant.
  std::string Partner(const Shape& shape) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Tensor y = Any();
      bool fits = y.shape.size() <= shape.size();
      for (size_t d = 0; fits && d < y.shape.size(); ++d) {
        const int64_t to = shape[shape.size() - y.shape.size() + d];
        fits = y.shape[d] == 1 || y.shape[d] == to;
      }
      if (fits) return y.name;
    }
    return Floats(Narrowed(shape), -1, 1);
  }

  // --- Steps: one or several nodes ---------------------------------------

  void Step() {
    const Tensor x = Any();
    if (Volume(x.shape) > kMaxElements) {
      Slice(x);
      return;
    }
    if (x.shape.size() > 4) {  // parts of windows
      if (rng_.Chance(0.5)) {
        Activate(x);
      } else {
        const int64_t rest = Volume(x.shape) / x.shape[0] / x.shape[1];
        ReshapeTo(x, {x.shape[0], x.shape[1], rest});
      }
      return;
    }
    if (rng_.Chance(0.006)) {
      Mask(x);
      return;
    }
    switch (rng_.Below(23)) {
      case 0:
      case 1:
        Activate(x);
        break;
      case 2:
      case 3:
        Combine(x);
        break;
      case 4:
        Neutral(x);
        break;
      case 5:
      case 6:
        Product(x);
        break;
      case 7:
        Transpose(x);
        break;
      case 8:
        Reshape(x);
        break;
      case 9:
        Slice(x);
        break;
      case 10:
        Join(x);
        break;
      case 11:
        Reduce(x);
        break;
      case 12:
        Norm(x);
        break;
      case 13:
        WrittenOutNorm(x);
        break;
      case 14:
        Softmax(x);
        break;
      case 15:
        Widen(x);
        break;
      case 16:
        Attention(x);
        break;
      case 17:
        Bounded(QuantizedProduct(inputs_[rng_.Below(inputs_.size())]));
        break;
      case 18:
        Bounded(RequantizedProduct(inputs_[rng_.Below(inputs_.size())]));
        break;
      case 19:
        QuantizedActivation(inputs_[rng_.Below(inputs_.size())]);
        break;
      default:
        if (x.shape.size() == 4) {
          Image(x);
        } else {
          Product(x);
        }
    }
  }

  Tensor Activate(const Tensor& x) {
    switch (rng_.Below(7)) {
      case 0:
        return Unary("Relu", x);
      case 1:
        return Unary("Sigmoid", x);
      case 2:
        return Unary("Erf", x);
      case 3:  // GELU, written out
        return Binary(
            "Mul",
            Binary("Mul", x,
                   Binary("Add",
                          Unary("Erf", Binary("Div", x, Scalar(std::sqrt(2)))),
                          Scalar(1))
                       .name),
            Scalar(0.5));
      case 4:
        return Binary("Mul", x, Unary("Sigmoid", x).name);
      case 5:
        return Unary("HardSwish", x);
      default:
        return Unary("LeakyRelu", x);
    }
  }

  void Combine(const Tensor& x) {
    static const char* const kOps[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const std::string op = kOps[rng_.Below(std::size(kOps))];
    if (rng_.Chance(0.2)) {
      Node("Where", {Bools(Narrowed(x.shape)), x.name, Partner(x.shape)},
           x.shape);
    } else if (op == "Max" || op == "Min") {
      Binary(op, x, Partner(x.shape));
    } else if (rng_.Chance(0.3)) {
      Binary("Div", x, Floats(Narrowed(x.shape), 0.75, 2));
    } else {
      Bounded(Binary(op, x, Partner(x.shape)));
    }
  }

  // A large mask of small constants behind a reshape, as windows of attention
  // have them, on a product.
  void Mask(const Tensor& x) {
    const int64_t windows = 5, n = 64;
    const Tensor mask =
        Binary("Sub", {Floats({windows, n, 1}, -1, 1), {windows, n, n}},
               Floats({windows, 1, n}, -1, 1));
    const Tensor rows = ReshapeTo(mask, {windows * n, n});
    const Tensor one = Node("ReduceMax", {x.name}, {});
    Attr("keepdims", int64_t{0});
    const Tensor scaled = Node(
        "Mul", {one.name, Floats({windows * n, 2}, -1, 1)}, {windows * n, 2});
    const Tensor product =
        Node("MatMul", {scaled.name, Floats({2, n}, -1, 1)}, rows.shape);
    const Tensor sum = Binary("Add", product, rows.name);
    Bounded(SliceOf(sum, 0, windows * n / 2, windows * n / 2 + 1));
  }

  // What changes nothing.
  void Neutral(const Tensor& x) {
    switch (rng_.Below(6)) {
      case 0:
        Binary("Mul", x, Floats(Narrowed(x.shape), 1, 1));
        break;
      case 1:
        Binary("Add", x, Floats(Narrowed(x.shape), 0, 0));
        break;
      case 2:
        Binary("Div", x, Scalar(1));
        break;
      case 3:
        Unary("Identity", x);
        break;
      case 4:
        Node("Reshape", {x.name, Ints(x.shape)}, x.shape);
        break;
      default:
        Unary("Dropout", x);
    }
  }

  // Weights, perhaps stored as their transpose.
  std::string MatrixOf(int64_t in, int64_t out) {
    if (rng_.Chance(0.7)) return Floats({in, out}, -0.5, 0.5);
    const std::string stored = Floats({out, in}, -0.5, 0.5);
    pb::NodeProto* node = graph_->add_node();
    node->set_op_type("Transpose");
    node->add_input(stored);
    node->add_output(absl::StrCat(stored, "t"));
    return node->output(0);
  }

  Tensor Linear(const Tensor& x, int64_t out) {
    Shape shape = x.shape;
    const int64_t in = shape.back();
    shape.back() = out;
    const Tensor y = Node("MatMul", {x.name, MatrixOf(in, out)}, shape);
    if (rng_.Chance(0.3)) return y;
    return rng_.Chance(0.5)
               ? Binary("Add", y, Floats({out}, -1, 1))
               : Node("Add", {Floats({out}, -1, 1), y.name}, shape);
  }

  void Product(const Tensor& x) {
    if (x.shape.size() < 2) {
      Activate(x);
      return;
    }
    switch (rng_.Below(5)) {
      case 0: {  // x times its transpose
        Shape perm(x.shape.size()), turned = x.shape, shape = x.shape;
        std::iota(perm.begin(), perm.end(), 0);
        std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
        std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
        const Tensor t = Node("Transpose", {x.name}, turned);
        Attr("perm", perm);
        shape.back() = turned.back();
        Bounded(Node("MatMul", {x.name, t.name}, shape));
        break;
      }
      case 1: {  // several of the same value
        const int64_t out = rng_.Between(1, 9);
        std::vector<Tensor> results;
        for (int64_t i = rng_.Between(2, 3); i > 0; --i) {
          const bool other = rng_.Chance(0.3);
          results.push_back(Linear(x, other ? rng_.Between(1, 9) : out));
        }
        for (const Tensor& result : results) Bounded(result);
        break;
      }
      case 2:  // with a scale behind it
        Bounded(
            Binary("Mul", Linear(x, rng_.Between(1, 9)), Floats({}, 0.25, 1)));
        break;
      case 3:
        if (x.shape.size() == 2) {
          const int64_t out = rng_.Between(1, 9);
          const Tensor y = Node("Gemm",
                                {x.name, Floats({out, x.shape[1]}, -0.5, 0.5),
                                 Floats({out}, -1, 1)},
                                {x.shape[0], out});
          Attr("transB", int64_t{1});
          Bounded(y);
          break;
        }
        [[fallthrough]];
      default:
        Bounded(Linear(x, rng_.Between(1, 9)));
    }
  }

  Tensor Transposed(const Tensor& x, const Shape& perm) {
    Shape shape;
    for (const int64_t d : perm)
      shape.push_back(x.shape[static_cast<size_t>(d)]);
    const Tensor y = Node("Transpose", {x.name}, shape);
    Attr("perm", perm);
    return y;
  }
  void Transpose(const Tensor& x) {
    Shape perm(x.shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    rng_.Shuffle(perm);
    const Tensor y = Transposed(x, perm);
    if (!rng_.Chance(0.4)) return;
    // And back, perhaps behind an activation.
    Shape back(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) {
      back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    }
    Transposed(rng_.Chance(0.5) ? Activate(y) : y, back);
  }

  Tensor ReshapeTo(const Tensor& x, const Shape& shape) {
    return Node("Reshape", {x.name, Ints(shape)}, shape);
  }
  void Reshape(const Tensor& x) {
    Shape shape = x.shape;
    for (int64_t i = rng_.Between(1, 2); i > 0; --i) {
      const size_t d = shape.empty() ? 0 : rng_.Below(shape.size());
      const uint64_t kind = rng_.Below(3);
      if (kind == 0 && shape.size() > 1 && d + 1 < shape.size()) {
        shape[d] *= shape[d + 1];
        shape.erase(shape.begin() + static_cast<ptrdiff_t>(d) + 1);
      } else if (kind == 1 && shape.size() < 4 && !shape.empty()) {
        for (const int64_t factor : {2, 3, 1}) {
          if (shape[d] % factor != 0) continue;
          shape[d] /= factor;
          shape.insert(shape.begin() + static_cast<ptrdiff_t>(d), factor);
          break;
        }
      } else if (shape.size() < 4) {
        shape.insert(shape.begin() + static_cast<ptrdiff_t>(d), 1);
      }
    }
    ReshapeTo(x, shape);
  }

  Tensor SliceOf(const Tensor& x, size_t d, int64_t begin, int64_t end) {
    Shape shape = x.shape;
    shape[d] = end - begin;
    return Node(
        "Slice",
        {x.name, Ints({begin}), Ints({end}), Ints({static_cast<int64_t>(d)})},
        shape);
  }
  void Slice(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    const size_t d = static_cast<size_t>(
        std::max_element(x.shape.begin(), x.shape.end()) - x.shape.begin());
    if (rng_.Chance(0.3) && x.shape[d] % 2 == 0) {
      Shape shape = x.shape;
      shape[d] /= 2;
      Node("Split", {x.name, Ints({shape[d], shape[d]})}, shape);
      Attr("axis", static_cast<int64_t>(d));
      Tensor second{absl::StrCat("v", values_.size()), shape};
      node_->add_output(second.name);
      values_.push_back(std::move(second));
      return;
    }
    const int64_t begin = rng_.Between(0, x.shape[d] - 1);
    SliceOf(x, d, begin, rng_.Between(begin + 1, x.shape[d]));
  }

  void Join(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    const size_t d = rng_.Below(x.shape.size());
    std::vector<std::string> parts{x.name};
    Shape shape = x.shape;
    for (const Tensor& y :
         std::vector<Tensor>(values_.rbegin(), values_.rend())) {
      Shape other = y.shape;
      if (other.size() != shape.size() || parts.size() > 2) continue;
      other[d] = shape[d];
      if (other != shape || y.name == x.name) continue;
      parts.push_back(y.name);
      shape[d] += y.shape[d];
    }
    if (parts.size() == 1) {
      parts.push_back(Activate(x).name);
      shape[d] *= 2;
    }
    Node("Concat", parts, shape);
    Attr("axis", static_cast<int64_t>(d));
  }

  Shape Kept(const Shape& shape, size_t d) {
    Shape kept = shape;
    kept[d] = 1;
    return kept;
  }
  Tensor Mean(const Tensor& x, size_t d) {
    const Tensor y = Node("ReduceMean", {x.name}, Kept(x.shape, d));
    Attr("axes", std::vector<int64_t>{static_cast<int64_t>(d)});
    return y;
  }
  void Reduce(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    const size_t d = rng_.Below(x.shape.size());
    const bool keeps = rng_.Chance(0.7) || x.shape.size() == 1;
    Shape shape = Kept(x.shape, d);
    if (!keeps) shape.erase(shape.begin() + static_cast<ptrdiff_t>(d));
    const Tensor y =
        Node(rng_.Chance(0.5) ? "ReduceMean" : "ReduceMax", {x.name}, shape);
    Attr("axes", std::vector<int64_t>{static_cast<int64_t>(d)});
    Attr("keepdims", int64_t{keeps});
    if (keeps && rng_.Chance(0.6)) Bounded(Binary("Sub", x, y.name));
  }

  void Norm(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    const Shape last = {x.shape.back()};
    const Tensor y =
        Node("LayerNormalization",
             {x.name, Floats(last, 0.5, 1), Floats(last, -1, 1)}, x.shape);
    Attr("epsilon", 0.02F);
    Bounded(y);
  }
  void WrittenOutNorm(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    const size_t d = x.shape.size() - 1;
    const bool centres = rng_.Chance(0.6);
    const Tensor centred =
        centres ? Binary("Sub", x, Mean(x, d).name) : Unary("Identity", x);
    const Tensor square = rng_.Chance(0.5)
                              ? Binary("Pow", centred, Scalar(2))
                              : Binary("Mul", centred, centred.name);
    const Tensor deviation =
        Unary("Sqrt", Binary("Add", Mean(square, d), Scalar(0.02)));
    const Tensor normal = Binary("Div", centred, deviation.name);
    const Tensor scaled =
        Binary("Mul", normal, Floats({x.shape.back()}, 0.5, 1));
    Bounded(Binary("Add", scaled, Floats({x.shape.back()}, -1, 1)));
  }

  Tensor SoftmaxOf(const Tensor& x) {
    const size_t d = x.shape.size() - 1;
    if (rng_.Chance(0.6)) {
      const Tensor y = Unary("Softmax", x);
      Attr("axis", int64_t{-1});
      return y;
    }
    const Tensor top = Node("ReduceMax", {x.name}, Kept(x.shape, d));
    Attr("axes", std::vector<int64_t>{static_cast<int64_t>(d)});
    const Tensor e = Unary("Exp", Binary("Sub", x, top.name));
    const Tensor sum = Node("ReduceSum", {e.name, Ints({-1})}, top.shape);
    return Binary("Div", e, sum.name);
  }
  void Softmax(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
    } else {
      SoftmaxOf(x);
    }
  }

  void Widen(const Tensor& x) {
    if (x.shape.empty()) {
      Activate(x);
      return;
    }
    if (rng_.Chance(0.5)) {
      Shape pads, shape = x.shape;
      for (int side = 0; side < 2; ++side) {
        for (int64_t& extent : shape) {
          pads.push_back(rng_.Between(0, 1));
          extent += pads.back();
        }
      }
      Node("Pad", {x.name, Ints(pads), Scalar(0.5)}, shape);
      return;
    }
    Shape shape = x.shape;
    bool widened = false;
    for (int64_t& extent : shape) {
      if (extent != 1 || widened) continue;
      extent = rng_.Between(1, 3);
      widened = true;
    }
    Node("Expand", {x.name, Ints(shape)}, shape);
  }

  // [positions, width] or [1, positions, width], in one to three heads.
  void Attention(const Tensor& given) {
    Tensor x = given;
    if (x.shape.size() == 4 || x.shape.empty()) {
      Activate(x);
      return;
    }
    if (x.shape.size() == 1) x = ReshapeTo(x, {1, x.shape[0]});
    const bool batched = x.shape.size() == 3;
    const int64_t batch = batched ? x.shape[0] : 1;
    const int64_t positions = x.shape[x.shape.size() - 2];
    const int64_t heads = rng_.Between(1, 3), width = rng_.Between(1, 4);
    const auto split = [&](const Tensor& y, bool turned) {
      const Tensor parts = ReshapeTo(y, {batch, positions, heads, width});
      return Transposed(parts, turned ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3});
    };
    Tensor q, k, v;
    if (rng_.Chance(0.5)) {
      q = Linear(x, heads * width);
      k = Linear(x, heads * width);
      v = Linear(x, heads * width);
    } else {
      const Tensor all = Linear(x, 3 * heads * width);
      const size_t d = all.shape.size() - 1;
      q = SliceOf(all, d, 0, heads * width);
      k = SliceOf(all, d, heads * width, 2 * heads * width);
      v = SliceOf(all, d, 2 * heads * width, 3 * heads * width);
    }
    // Queries and keys are scaled, each by the root, or their products.
    const bool scales_operands = rng_.Chance(0.5);
    const auto operand = [&](const Tensor& y, bool turned) {
      const Tensor parts = split(y, turned);
      if (!scales_operands) return parts;
      return rng_.Chance(0.8) ? Binary("Mul", parts, Scalar(0.55))
                              : Binary("Div", parts, Scalar(1.8));
    };
    const Tensor queries = operand(q, false), keys = operand(k, true);
    const Tensor products = Node("MatMul", {queries.name, keys.name},
                                 {batch, heads, positions, positions});
    const Tensor scores =
        scales_operands ? products : Binary("Mul", products, Scalar(0.3));
    const Tensor masked =
        rng_.Chance(0.5)
            ? Binary("Add", scores, Floats({1, 1, positions, positions}, -2, 0))
            : scores;
    const Tensor mixed =
        Node("MatMul", {SoftmaxOf(Bounded(masked)).name, split(v, false).name},
             {batch, heads, positions, width});
    const Tensor joined =
        ReshapeTo(Transposed(mixed, {0, 2, 1, 3}),
                  batched ? Shape{batch, positions, heads * width}
                          : Shape{positions, heads * width});
    Tensor out = Linear(joined, x.shape.back());
    if (rng_.Chance(0.7)) out = Binary("Add", out, x.name);
    Bounded(out);
  }

  Tensor BatchNorm(const Tensor& x) {
    const Shape channels = {x.shape[1]};
    const Tensor y =
        Node("BatchNormalization",
             {x.name, Floats(channels, 0.5, 1.5), Floats(channels, -1, 1),
              Floats(channels, -0.5, 0.5), Floats(channels, 0.5, 2)},
             x.shape);
    return y;
  }

  void Image(const Tensor& x) {
    const int64_t in = x.shape[1];
    const Shape& s = x.shape;
    switch (rng_.Below(10)) {
      case 0: {
        if (std::min(s[2], s[3]) < 2) break;
        Node(rng_.Chance(0.5) ? "MaxPool" : "AveragePool", {x.name},
             {s[0], s[1], s[2] / 2, s[3] / 2});
        Attr("kernel_shape", std::vector<int64_t>{2, 2});
        Attr("strides", std::vector<int64_t>{2, 2});
        return;
      }
      case 1:
        Node("GlobalAveragePool", {x.name}, {s[0], s[1], 1, 1});
        return;
      case 2:
        BatchNorm(x);
        return;
      case 3: {
        if (Volume(s) > 200) break;
        const int64_t out = rng_.Between(1, 4);
        Tensor y =
            Node("ConvTranspose", {x.name, Floats({in, out, 2, 2}, -0.5, 0.5)},
                 {s[0], out, 2 * s[2], 2 * s[3]});
        Attr("strides", std::vector<int64_t>{2, 2});
        if (rng_.Chance(0.5)) y = BatchNorm(y);
        Bounded(y);
        return;
      }
      case 4: {  // a group norm, as exporters write it
        const int64_t groups = in % 2 == 0 ? 2 : 1;
        const Tensor flat =
            ReshapeTo(x, {s[0], groups, Volume(s) / s[0] / groups});
        const Tensor normal =
            Node("InstanceNormalization",
                 {flat.name, Floats({groups}, 1, 1), Floats({groups}, 0, 0)},
                 flat.shape);
        Attr("epsilon", 0.02F);
        const Tensor back = ReshapeTo(normal, s);
        const Tensor scaled = Binary("Mul", back, Floats({in, 1, 1}, 0.5, 1));
        Bounded(Binary("Add", scaled, Floats({in, 1, 1}, -1, 1)));
        return;
      }
      case 5:
        ShuffleChannels(x);
        return;
      case 6: {  // patches as rows
        const Tensor flat = ReshapeTo(x, {s[0], in, s[2] * s[3]});
        Bounded(Linear(Transposed(flat, {0, 2, 1}), rng_.Between(1, 6)));
        return;
      }
      case 7:
        Windows(x);
        return;
      default:
        break;
    }
    Convolution(x);
  }

  // Between convolutions in groups.
  void ShuffleChannels(const Tensor& x) {
    const Shape& s = x.shape;
    const int64_t groups = s[1] % 2 == 0 ? 2 : s[1] % 3 == 0 ? 3 : 1;
    const Tensor apart =
        ReshapeTo(x, {s[0], groups, s[1] / groups, s[2], s[3]});
    const Tensor shuffled = ReshapeTo(Transposed(apart, {0, 2, 1, 3, 4}), s);
    if (rng_.Chance(0.7)) Convolution(shuffled);
  }

  // A residual of windows of positions, and perhaps on to a grid.
  void Windows(const Tensor& x) {
    const Shape& s = x.shape;
    const int64_t in = s[1];
    const int64_t p = s[2] % 2 == 0 ? 2 : 1, q = s[3] % 2 == 0 ? 2 : 1;
    const Tensor apart = ReshapeTo(x, {s[0], in, s[2] / p, p, s[3] / q, q});
    const Tensor rows = ReshapeTo(Transposed(apart, {0, 2, 4, 3, 5, 1}),
                                  {s[0] * s[2] * s[3] / p / q, p * q, in});
    const Tensor y = Binary("Add", rows, Bounded(Linear(rows, in)).name);
    const Tensor back = Transposed(
        ReshapeTo(y, {s[0], s[2] / p, s[3] / q, p, q, in}), {0, 5, 1, 3, 2, 4});
    if (rng_.Chance(0.5)) {
      Bounded(ReshapeTo(back, s));
      return;
    }
    const Tensor grid = ReshapeTo(back, {s[0], in, p, s[2] / p, q, s[3] / q});
    Bounded(Transposed(grid, {0, 3, 5, 2, 4, 1}));
  }

  void Convolution(const Tensor& x) {
    const int64_t in = x.shape[1];
    const bool depthwise = rng_.Chance(0.25);
    const int64_t taps = rng_.Chance(0.5) ? 3 : 1;
    const int64_t out = depthwise ? in : rng_.Between(1, 8);
    const int64_t stride = rng_.Chance(0.2) ? 2 : 1;
    Shape shape = x.shape;
    shape[1] = out;
    for (size_t d = 2; d < 4; ++d) shape[d] = (shape[d] - 1) / stride + 1;
    std::vector<std::string> inputs = {
        x.name, Floats({out, depthwise ? 1 : in, taps, taps}, -0.4, 0.4)};
    if (rng_.Chance(0.6)) inputs.push_back(Floats({out}, -0.5, 0.5));
    Tensor y = Node("Conv", inputs, shape);
    Attr("group", depthwise ? in : 1);
    Attr("strides", std::vector<int64_t>{stride, stride});
    if (taps == 3) Attr("pads", std::vector<int64_t>{1, 1, 1, 1});
    if (rng_.Chance(0.5)) y = BatchNorm(y);
    if (rng_.Chance(0.3)) y = Binary("Add", y, Partner(y.shape));
    if (rng_.Chance(0.5)) y = Unary("Relu", y);
    Bounded(y);
  }

  std::vector<Tensor> inputs_;
};

}  // namespace

std::string RandomModel(uint64_t seed) { return Maker(seed).Make(); }

int NodeCount(const std::string& model) {
  pb::ModelProto proto;
  proto.ParseFromString(model);
  return proto.graph().node_size();
}

std::string Shortened(const std::string& model, int nodes) {
  pb::ModelProto proto;
  proto.ParseFromString(model);
  pb::GraphProto& graph = *proto.mutable_graph();
  while (graph.node_size() > nodes) graph.mutable_node()->RemoveLast();
  std::set<std::string> read;
  for (const pb::NodeProto& node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
  }
  graph.clear_output();
  for (const pb::NodeProto& node : graph.node()) {
    for (const std::string& name : node.output()) {
      if (read.contains(name)) continue;
      pb::ValueInfoProto* info = graph.add_output();
      info->set_name(name);
      info->mutable_type()->mutable_tensor_type()->set_elem_type(
          pb::TensorProto::FLOAT);
    }
  }
  return proto.SerializeAsString();
}

}  // namespace tilefarm::onnx

// What single instructions do: from an opcode and its operands to an
// Instruction. Used by the parser of PtxModule.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_OPERATIONS_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_OPERATIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/gpu/ptx/ptx_module.h"

namespace tilefarm::ptx {

// "f32": kind 'f', 32 bits; "bf16": 'B'; "b64": 'b'; "pred": 'p', 8 bits.
struct Type {
  char kind = 0;
  int bits = 0;
  int count = 1;  // 2 of "f16x2"
  int bytes() const { return bits * count / 8; }
};
// kind 0: not a type.
Type ParseType(std::string_view text);

struct Operand {
  enum class Kind : uint8_t {
    kRegister,
    kConstant,  // `value`, bits as in the text; a float's of its type
    kSymbol,    // `name` + `value`
    kAddress,   // [base + value], base: parts[0]; more parts: coordinates
    kVector,    // {parts}
    kSink,      // _
  };
  Kind kind = Kind::kRegister;
  std::string name;
  uint32_t place = 0;  // of a register
  int width = 0;       // its bytes
  bool negated = false;
  bool is_float = false;
  uint64_t value = 0;
  std::vector<Operand> parts;
};

using Operands = std::vector<Operand>;

// An opcode's parts: "ld", "global", "nc", "v4", "f32".
using Parts = std::vector<std::string>;
bool Has(const Parts& opcode, std::string_view part);

// What an operation needs of the kernel that is parsed.
class Places {
 public:
  virtual ~Places() = default;
  // The place of a register, or of a new one with this value; `type` gives the
  // width of constants. A sink has a place that nobody reads.
  virtual uint32_t Place(const Operand& operand, Type type) = 0;
  // Of an address without its offset, which goes to `offset`: 4 bytes of shared
  // addresses, 8 of others.
  virtual uint32_t Base(const Operand& operand, bool shared,
                        int64_t* offset) = 0;
};

// False: not supported.
bool MakeOperation(const Parts& opcode, const Operands& operands,
                   Places& places, Instruction& out);
// Those of matrices and of lanes; calls the last two below.
bool MakeMatrixOperation(const Parts& opcode, const Operands& operands,
                         Places& places, Instruction& out);

// By opcode[0]: "setp", "cvt", "ld" and "st", "mov", "cvta", "mapa"; "cp",
// "mbarrier".
bool MakeSetPredicate(const Parts& opcode, const Operands& operands,
                      Places& places, Instruction& out);
bool MakeConversion(const Parts& opcode, const Operands& operands,
                    Places& places, Instruction& out);
bool MakeAccess(const Parts& opcode, const Operands& operands, Places& places,
                Instruction& out);
bool MakeMove(const Parts& opcode, const Operands& operands, Places& places,
              Instruction& out);
bool MakeAddressConversion(const Parts& opcode, const Operands& operands,
                           Places& places, Instruction& out);
bool MakeClusterAddress(const Parts& opcode, const Operands& operands,
                        Places& places, Instruction& out);
bool MakeCopy(const Parts& opcode, const Operands& operands, Places& places,
              Instruction& out);
bool MakePhaseBarrier(const Parts& opcode, const Operands& operands,
                      Places& places, Instruction& out);

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_OPERATIONS_H_

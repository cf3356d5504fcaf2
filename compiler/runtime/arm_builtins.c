/* The functions of the AEABI for operations without an instruction on ARMv7:
 * 64-bit division, 32-bit division on cores without `sdiv`, and conversions
 * between floats and 64-bit integers. An artifact is not linked with a
 * compiler's library. Results are those of C; division by zero gives zero. */
#include <stdint.h>

struct Quotient {
  uint64_t quotient, rest;
};

static struct Quotient Divide64(uint64_t n, uint64_t d) {
  struct Quotient result = {0, n};
  if (d == 0 || d > n) return result;
  int shift = __builtin_clzll(d) - __builtin_clzll(n);
  for (d <<= shift; shift >= 0; --shift, d >>= 1) {
    if (result.rest < d) continue;
    result.rest -= d;
    result.quotient |= (uint64_t)1 << shift;
  }
  return result;
}

static uint32_t Divide32(uint32_t n, uint32_t d, uint32_t* rest) {
  uint32_t quotient = 0;
  *rest = n;
  if (d == 0 || d > n) return 0;
  int shift = __builtin_clz(d) - __builtin_clz(n);
  for (d <<= shift; shift >= 0; --shift, d >>= 1) {
    if (*rest < d) continue;
    *rest -= d;
    quotient |= (uint32_t)1 << shift;
  }
  return quotient;
}

static uint64_t Magnitude64(int64_t value) {
  return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}
static uint32_t Magnitude32(int32_t value) {
  return value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
}

/* The quotient in r0 and r1, the remainder in r2 and r3: C cannot express it.
 */
__attribute__((used)) void tf_rt_divide_unsigned(uint64_t n, uint64_t d,
                                                 struct Quotient* result) {
  *result = Divide64(n, d);
}
__attribute__((used)) void tf_rt_divide_signed(int64_t n, int64_t d,
                                               struct Quotient* result) {
  *result = Divide64(Magnitude64(n), Magnitude64(d));
  if ((n < 0) != (d < 0)) result->quotient = 0 - result->quotient;
  if (n < 0) result->rest = 0 - result->rest;
}
#define TF_DIVIDE(name, function)                       \
  __attribute__((naked)) void name(void) {              \
    __asm__(                                            \
        "push {r4, lr}\n"                               \
        "sub sp, sp, #24\n"                             \
        "add r4, sp, #8\n"                              \
        "str r4, [sp]\n" /* the fifth word: `result` */ \
        "bl " #function                                 \
        "\n"                                            \
        "ldrd r0, r1, [sp, #8]\n"                       \
        "ldrd r2, r3, [sp, #16]\n"                      \
        "add sp, sp, #24\n"                             \
        "pop {r4, pc}\n");                              \
  }
TF_DIVIDE(__aeabi_uldivmod, tf_rt_divide_unsigned)
TF_DIVIDE(__aeabi_ldivmod, tf_rt_divide_signed)

/* The quotient in r0, the remainder in r1: the two halves of 64 bits. */
uint64_t __aeabi_uidivmod(uint32_t n, uint32_t d) {
  uint32_t rest = 0;
  const uint32_t quotient = Divide32(n, d, &rest);
  return (uint64_t)rest << 32 | quotient;
}
uint64_t __aeabi_idivmod(int32_t n, int32_t d) {
  uint32_t rest = 0;
  uint32_t quotient = Divide32(Magnitude32(n), Magnitude32(d), &rest);
  if ((n < 0) != (d < 0)) quotient = 0 - quotient;
  if (n < 0) rest = 0 - rest;
  return (uint64_t)rest << 32 | quotient;
}
uint32_t __aeabi_uidiv(uint32_t n, uint32_t d) {
  return (uint32_t)__aeabi_uidivmod(n, d);
}
int32_t __aeabi_idiv(int32_t n, int32_t d) {
  return (int32_t)__aeabi_idivmod(n, d);
}

/* These pass floats in core registers on every ARM. */
#define TF_AEABI __attribute__((pcs("aapcs")))

/* Both halves are exact, so that the sum is rounded once. */
TF_AEABI double __aeabi_ul2d(uint64_t value) {
  return (double)(uint32_t)(value >> 32) * 0x1p32 + (double)(uint32_t)value;
}
TF_AEABI double __aeabi_l2d(int64_t value) {
  return (double)(int32_t)(value >> 32) * 0x1p32 + (double)(uint32_t)value;
}
/* Bits that do not fit into a double are kept as one sticky bit, so that the
 * conversion through double rounds like a direct one. */
TF_AEABI float __aeabi_ul2f(uint64_t value) {
  if (value < (uint64_t)1 << 53) return (float)__aeabi_ul2d(value);
  const uint64_t folded = value >> 11 | ((value & 0x7ff) != 0);
  return (float)__aeabi_ul2d(folded) * 0x1p11f;
}
TF_AEABI float __aeabi_l2f(int64_t value) {
  const float magnitude = __aeabi_ul2f(Magnitude64(value));
  return value < 0 ? -magnitude : magnitude;
}
TF_AEABI uint64_t __aeabi_d2ulz(double value) {
  const uint32_t high = (uint32_t)(value * 0x1p-32);
  return (uint64_t)high << 32 | (uint32_t)(value - (double)high * 0x1p32);
}
TF_AEABI int64_t __aeabi_d2lz(double value) {
  return value < 0 ? (int64_t)(0 - __aeabi_d2ulz(-value))
                   : (int64_t)__aeabi_d2ulz(value);
}
TF_AEABI uint64_t __aeabi_f2ulz(float value) { return __aeabi_d2ulz(value); }
TF_AEABI int64_t __aeabi_f2lz(float value) { return __aeabi_d2lz(value); }

// Early return on absl::Status errors.
//
//   TF_RETURN_IF_ERROR(Check(x));
//   TF_ASSIGN_OR_RETURN(auto program, Parse(text));
#ifndef TILEFARM_BASE_STATUS_MACROS_H_
#define TILEFARM_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TF_RETURN_IF_ERROR(expr)             \
  do {                                       \
    absl::Status tf_status_ = (expr);        \
    if (!tf_status_.ok()) return tf_status_; \
  } while (false)

#define TF_STATUS_CONCAT_INNER_(a, b) a##b
#define TF_STATUS_CONCAT_(a, b) TF_STATUS_CONCAT_INNER_(a, b)
#define TF_ASSIGN_OR_RETURN(lhs, expr) \
  TF_ASSIGN_OR_RETURN_IMPL_(TF_STATUS_CONCAT_(tf_or_, __LINE__), lhs, expr)
#define TF_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return std::move(tmp).status();  \
  lhs = *std::move(tmp)

#endif  // TILEFARM_BASE_STATUS_MACROS_H_

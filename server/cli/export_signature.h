// Signed exports: the last line of the file is a signature (Ed25519) of all
// lines before it.
//
//   {"signature":{"format":"tilefarm-export","version":1,"records":3,
//                 "sha256":"...","key":"...","ed25519":"..."}}
//
// docs/formats.md describes it. The holder of the private key signs; who has
// the public key finds out whether an export is complete and unchanged.
#ifndef TILEFARM_SERVER_CLI_EXPORT_SIGNATURE_H_
#define TILEFARM_SERVER_CLI_EXPORT_SIGNATURE_H_

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::cli {

// Signs the lines of an export. Not thread-safe.
class ExportSigner {
 public:
  // `key`: a file with an Ed25519 private key in PEM, without a password, that
  // only its owner may read. NotFound, PermissionDenied, InvalidArgument.
  static absl::StatusOr<ExportSigner> Open(const std::string& key);
  ExportSigner(ExportSigner&&) noexcept;
  ExportSigner& operator=(ExportSigner&&) noexcept;
  ~ExportSigner();

  // A line of the export, without its line feed.
  void Add(std::string_view line);
  // The last line, without its line feed.
  absl::StatusOr<std::string> Finish();

 private:
  struct State;
  explicit ExportSigner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether the line is a signature, which has no record.
bool IsSignatureLine(std::string_view line);

// Copies `in` to `out`, which the caller reads afterwards: what was verified is
// what is read, also if the file changes meanwhile. `key`: a file with an
// Ed25519 public key or a certificate of one, in PEM; dates and issuer of a
// certificate do not matter. The signature itself is not copied.
//
// InvalidArgument: the export has no signature, or one of another key, or it
// was altered or cut off; the message says which. NotFound: no such key file.
absl::Status VerifyExport(const std::string& key, std::istream& in,
                          std::ostream& out);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_EXPORT_SIGNATURE_H_

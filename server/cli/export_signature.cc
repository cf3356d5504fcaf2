#include "server/cli/export_signature.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace tilefarm::cli {
namespace {

constexpr char kFormat[] = "tilefarm-export";
constexpr int kVersion = 1;
constexpr std::string_view kSignatureStart = "{\"signature\":";
// More than any key or certificate has.
constexpr size_t kMostKeyBytes = 1 << 20;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

// Otherwise OpenSSL would ask for a password on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*write*/, void* /*data*/) {
  return -1;
}

// SHA-256 of lines, each with a line feed.
class LineDigest {
 public:
  LineDigest() : context_(EVP_MD_CTX_new()) {
    TF_CHECK(context_ != nullptr &&
             EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void Add(std::string_view line) {
    TF_CHECK(EVP_DigestUpdate(context_.get(), line.data(), line.size()) == 1 &&
             EVP_DigestUpdate(context_.get(), "\n", 1) == 1);
    ++lines_;
  }
  int64_t lines() const { return lines_; }
  std::string Hex() {
    std::array<unsigned char, 32> digest;
    unsigned int size = 0;
    TF_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
  }

 private:
  DigestContext context_;
  int64_t lines_ = 0;
};

// What is signed.
std::string SignedText(int64_t lines, const std::string& digest) {
  return absl::StrCat(kFormat, " ", kVersion, "\nrecords ", lines, "\nsha256 ",
                      digest, "\n");
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path,
                                        const char* flag, bool secret) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) {
    const int error = errno;
    return absl::NotFoundError(
        absl::StrCat(flag, " ", path, ": ", std::strerror(error)));
  }
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": is not a file"));
  }
  if (secret && (facts.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s %s has mode %04o: others may read it; make it private with: chmod "
        "600 %s",
        flag, path, facts.st_mode & 07777, path));
  }
  if (static_cast<size_t>(facts.st_size) > kMostKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": is too large for a key"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return absl::PermissionDeniedError(
        absl::StrCat(flag, " ", path, ": cannot be read"));
  }
  return std::move(text).str();
}

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status CheckKind(const Key& key, const char* flag,
                       const std::string& path, const char* wanted) {
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": there is no ", wanted, " in it"));
  }
  if (EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " ", path,
        ": is a key of another kind than Ed25519: make one with: openssl "
        "genpkey -algorithm ed25519 -out KEY.pem"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Key> ReadPublicKey(const std::string& path) {
  TF_ASSIGN_OR_RETURN(const std::string pem,
                      ReadKeyFile(path, "--verify", /*secret=*/false));
  const Certificate certificate(
      PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
  Key key(
      certificate != nullptr
          ? X509_get_pubkey(certificate.get())
          : PEM_read_bio_PUBKEY(BioOf(pem).get(), nullptr, nullptr, nullptr));
  TF_RETURN_IF_ERROR(
      CheckKind(key, "--verify", path, "public key or certificate in PEM"));
  return key;
}

// SHA-256 of the public key's 32 bytes: its name in signatures.
std::string NameOf(const Key& key) {
  std::array<unsigned char, 32> bytes;
  size_t size = bytes.size();
  TF_CHECK(EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) == 1);
  return Sha256Hex({reinterpret_cast<const char*>(bytes.data()), size});
}

struct Signature {
  int64_t lines = 0;
  std::string digest, key, bytes;
};

// nullopt: a line that starts like a signature, but is damaged.
std::optional<Signature> ParseSignature(std::string_view line) {
  const nlohmann::json json = ParseJson(line);
  if (!json.is_object() || json.size() != 1) return std::nullopt;
  const nlohmann::json& fields = *json.begin();
  const auto text = [&](const char* key) -> std::string {
    const auto it = fields.find(key);
    return it != fields.end() && it->is_string() ? it->get<std::string>() : "";
  };
  if (!fields.is_object() || text("format") != kFormat ||
      fields.value("version", nlohmann::json()) != kVersion) {
    return std::nullopt;
  }
  const auto lines = fields.find("records");
  if (lines == fields.end() || !lines->is_number_unsigned()) {
    return std::nullopt;
  }
  Signature signature;
  signature.lines = lines->get<int64_t>();
  signature.digest = text("sha256");
  signature.key = text("key");
  const std::string bytes = text("ed25519");
  if (bytes.size() != 128 ||
      bytes.find_first_not_of("0123456789abcdef") != bytes.npos) {
    return std::nullopt;
  }
  signature.bytes = absl::HexStringToBytes(bytes);
  return signature;
}

bool Verifies(const Key& key, const Signature& signature) {
  const std::string text = SignedText(signature.lines, signature.digest);
  const DigestContext context(EVP_MD_CTX_new());
  const auto* bytes =
      reinterpret_cast<const unsigned char*>(signature.bytes.data());
  const bool good =
      context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr,
                           key.get()) == 1 &&
      EVP_DigestVerify(context.get(), bytes, signature.bytes.size(),
                       reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  ERR_clear_error();
  return good;
}

absl::Status Refused(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(why.data(), why.size()), ": nothing was imported"));
}

}  // namespace

struct ExportSigner::State {
  Key key;
  LineDigest digest;
};

ExportSigner::ExportSigner(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
ExportSigner::ExportSigner(ExportSigner&&) noexcept = default;
ExportSigner& ExportSigner::operator=(ExportSigner&&) noexcept = default;
ExportSigner::~ExportSigner() = default;

absl::StatusOr<ExportSigner> ExportSigner::Open(const std::string& path) {
  TF_ASSIGN_OR_RETURN(const std::string pem,
                      ReadKeyFile(path, "--sign", /*secret=*/true));
  auto state = std::make_unique<State>();
  state->key.reset(
      PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, NoPassword, nullptr));
  TF_RETURN_IF_ERROR(CheckKind(state->key, "--sign", path,
                               "private key in PEM without a password"));
  return ExportSigner(std::move(state));
}

void ExportSigner::Add(std::string_view line) { state_->digest.Add(line); }

absl::StatusOr<std::string> ExportSigner::Finish() {
  const int64_t lines = state_->digest.lines();
  const std::string digest = state_->digest.Hex();
  const std::string text = SignedText(lines, digest);
  const DigestContext context(EVP_MD_CTX_new());
  std::array<unsigned char, 64> bytes;
  size_t size = bytes.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                         state_->key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytes.data(), &size,
                     reinterpret_cast<const unsigned char*>(text.data()),
                     text.size()) != 1) {
    ERR_clear_error();
    return absl::InternalError("the export could not be signed");
  }
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), size));
  return nlohmann::ordered_json{{"signature",
                                 {{"format", kFormat},
                                  {"version", kVersion},
                                  {"records", lines},
                                  {"sha256", digest},
                                  {"key", NameOf(state_->key)},
                                  {"ed25519", hex}}}}
      .dump();
}

bool IsSignatureLine(std::string_view line) {
  return line.substr(0, kSignatureStart.size()) == kSignatureStart;
}

absl::Status VerifyExport(const std::string& path, std::istream& in,
                          std::ostream& out) {
  TF_ASSIGN_OR_RETURN(const Key key, ReadPublicKey(path));
  LineDigest digest;
  std::optional<Signature> signature;
  bool damaged = false;
  for (std::string line; std::getline(in, line);) {
    if (signature || damaged) {
      return Refused("the export has lines after its signature");
    }
    if (IsSignatureLine(line)) {
      signature = ParseSignature(line);
      damaged = !signature;
      continue;
    }
    digest.Add(line);
    out << line << "\n";
    if (!out) {
      return absl::UnavailableError(
          "no room for a copy of the export in the folder of temporary files");
    }
  }
  if (in.bad()) return absl::UnavailableError("the export cannot be read");
  if (damaged) return Refused("the signature of the export is damaged");
  if (!signature) {
    return Refused(
        "the export has no signature at its end: it was not signed, or it was "
        "cut off");
  }
  if (signature->key != NameOf(key)) {
    return Refused(absl::StrCat("the export was signed with the key ",
                                signature->key.substr(0, 16), ", not with ",
                                NameOf(key).substr(0, 16), " of ", path));
  }
  if (!Verifies(key, *signature)) {
    return Refused("the signature of the export is wrong");
  }
  const int64_t lines = digest.lines();
  if (lines != signature->lines) {
    return Refused(absl::StrCat("the export has ", lines,
                                " lines, and was signed with ",
                                signature->lines));
  }
  if (digest.Hex() != signature->digest) {
    return Refused("the export was altered after it was signed");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::cli

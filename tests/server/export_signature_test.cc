// Signed exports: whole ones are taken, any other is refused.
#include "server/cli/export_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>
#include <utility>

#include "tests/support/process.h"

namespace tilefarm::cli {
namespace {

using ::testing::HasSubstr;

class ExportSignatureTest : public ::testing::Test {
 protected:
  ExportSignatureTest() : key_(MakeKey("a", "ed25519")) {
    export_ = Signed({"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"});
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  void OpenSsl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "openssl"});
    const auto result = testing::RunCommand(std::move(arguments));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
  }
  // NAME.pem, and its public key NAME.pub.
  std::string MakeKey(const std::string& name,
                      const std::string& algorithm) const {
    const std::string key = File(name + ".pem");
    OpenSsl({"genpkey", "-algorithm", algorithm, "-out", key});
    chmod(key.c_str(), 0600);
    OpenSsl({"pkey", "-in", key, "-pubout", "-out", File(name + ".pub")});
    return key;
  }
  std::string Signed(const std::vector<std::string>& lines) const {
    auto signer = ExportSigner::Open(key_);
    EXPECT_TRUE(signer.ok()) << signer.status();
    std::string text;
    for (const std::string& line : lines) {
      signer->Add(line);
      text += line + "\n";
    }
    const auto last = signer->Finish();
    EXPECT_TRUE(last.ok()) << last.status();
    EXPECT_TRUE(IsSignatureLine(*last));
    return text + *last + "\n";
  }
  absl::Status Verify(const std::string& text, const std::string& key = "a.pub",
                      std::string* verified = nullptr) const {
    std::istringstream in(text);
    std::ostringstream out;
    const absl::Status status = VerifyExport(File(key), in, out);
    if (verified != nullptr) *verified = out.str();
    return status;
  }
  void ExpectRefusal(const std::string& text, const std::string& why,
                     const std::string& key = "a.pub") const {
    const absl::Status status = Verify(text, key);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("nothing was imported"));
  }
  std::string Changed(const std::string& from, const std::string& to) const {
    std::string text = export_;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  const testing::TempDir folder_;
  std::string key_, export_;
};

TEST_F(ExportSignatureTest, AWholeExportIsTaken) {
  std::string verified;
  const absl::Status status = Verify(export_, "a.pub", &verified);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(verified, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
  EXPECT_TRUE(Verify(Signed({})).ok());
  // Without the last line feed, too.
  EXPECT_TRUE(Verify(export_.substr(0, export_.size() - 1)).ok());
}

TEST_F(ExportSignatureTest, ACertificateHoldsTheKey) {
  OpenSsl({"req", "-new", "-x509", "-key", key_, "-subj", "/CN=team", "-days",
           "1", "-out", File("a.crt")});
  EXPECT_TRUE(Verify(export_, "a.crt").ok());
}

TEST_F(ExportSignatureTest, AlteredExportsAreRefused) {
  ExpectRefusal(Changed("\"b\":2", "\"b\":3"), "was altered");
  ExpectRefusal(Changed("{\"b\":2}\n", ""), "2 lines, and was signed with 3");
  ExpectRefusal(Changed("{\"b\":2}", "{\"b\":2}\n{\"b\":2}"), "4 lines");
  ExpectRefusal(Changed("{\"a\":1}\n{\"b\":2}", "{\"b\":2}\n{\"a\":1}"),
                "was altered");
  ExpectRefusal(export_ + "{\"d\":4}\n", "lines after its signature");
  ExpectRefusal(export_ + "\n", "lines after its signature");
  ExpectRefusal(Changed("\"records\":3", "\"records\":2"),
                "signature of the export is wrong");
  // Every single character of the signature counts.
  const size_t start = export_.find("{\"signature\"");
  for (size_t at = start; at + 1 < export_.size(); ++at) {
    std::string changed = export_;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_FALSE(Verify(changed).ok()) << changed.substr(start);
  }
}

TEST_F(ExportSignatureTest, CutOffAndUnsignedExportsAreRefused) {
  for (size_t size = 0; size + 1 < export_.size(); ++size) {
    EXPECT_FALSE(Verify(export_.substr(0, size)).ok()) << size;
  }
  ExpectRefusal("{\"a\":1}\n", "no signature at its end");
  ExpectRefusal("", "no signature at its end");
  ExpectRefusal(Changed("{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", ""),
                "0 lines, and was signed with 3");
  ExpectRefusal(Changed("{\"signature\":{", "{\"signature\":["),
                "signature of the export is damaged");
  ExpectRefusal("{\"signature\":3}\n", "damaged");
  ExpectRefusal(Changed("\"version\":1", "\"version\":2"), "damaged");
}

TEST_F(ExportSignatureTest, AnotherKeyIsRefused) {
  MakeKey("b", "ed25519");
  ExpectRefusal(export_, "was signed with the key", "b.pub");
}

TEST_F(ExportSignatureTest, BadKeyFilesAreErrorsThatNameThem) {
  const auto sign = [&](const std::string& file) {
    return std::string(ExportSigner::Open(File(file)).status().message());
  };
  EXPECT_THAT(sign("none.pem"), HasSubstr("--sign " + File("none.pem")));
  EXPECT_THAT(sign("a.pub"), HasSubstr("mode 0"));
  chmod(File("a.pub").c_str(), 0600);
  EXPECT_THAT(sign("a.pub"), HasSubstr("no private key"));
  chmod(key_.c_str(), 0640);
  EXPECT_EQ(ExportSigner::Open(key_).status().code(),
            absl::StatusCode::kPermissionDenied);
  OpenSsl({"genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:x",
           "-out", File("locked.pem")});
  chmod(File("locked.pem").c_str(), 0600);
  EXPECT_THAT(sign("locked.pem"), HasSubstr("without a password"));
  MakeKey("x", "x25519");
  EXPECT_THAT(sign("x.pem"), HasSubstr("another kind than Ed25519"));

  EXPECT_EQ(Verify(export_, "none.pub").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Verify(export_, "x.pub").message()),
              HasSubstr("another kind than Ed25519"));
  folder_.Write("text.pem", "no key");
  EXPECT_THAT(std::string(Verify(export_, "text.pem").message()),
              HasSubstr("no public key or certificate"));
}

}  // namespace
}  // namespace tilefarm::cli

// No artifact, comparison or history that a client brings can harm the server,
// and no worker can bring absurd pairs into a comparison.
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/parser.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "tests/fault/hostile_client_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

constexpr grpc::StatusCode kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
constexpr grpc::StatusCode kTooMuch = grpc::StatusCode::RESOURCE_EXHAUSTED;

class HostileArtifactTest : public HostileClientFixture {
 protected:
  HostileArtifactTest() {
    server_options_.insert(
        server_options_.end(),
        {"--allow-artifacts", "--artifact-isolation", "none"});
  }
  void SetUp() override {
    HostileClientFixture::SetUp();
    if (HasFatalFailure()) return;
    stub_ = v1::Regression::NewStub(channel_);
    const auto module = ir::ParseModule(kMmRelu);
    ASSERT_TRUE(module.ok()) << module.status();
    const auto compiled =
        driver::Compile(*module, {.target = *target::ParseKey(kTargetKey)});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    artifact_ = compiled->shared_object;
  }

  static v1::ArtifactHeader HeaderOf(const std::string& bytes) {
    v1::ArtifactHeader header;
    header.set_sha256(Sha256Hex(bytes));
    header.set_bytes(bytes.size());
    header.set_target(kTargetKey);
    header.add_symbols("mm_relu");
    header.set_user("ci");
    return header;
  }
  // Sends the header with the bytes, in parts.
  grpc::Status Put(const v1::ArtifactHeader& header, const std::string& bytes,
                   size_t part_bytes = 100'000) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    v1::ArtifactPart part;
    *part.mutable_header() = header;
    bool fine = writer->Write(part);
    for (size_t at = 0; fine && at < bytes.size(); at += part_bytes) {
      part.Clear();
      part.set_data(bytes.substr(at, part_bytes));
      fine = writer->Write(part);
    }
    writer->WritesDone();
    return writer->Finish();
  }
  grpc::Status Put(const std::string& bytes) {
    return Put(HeaderOf(bytes), bytes);
  }
  static void ExpectRefused(const grpc::Status& status, grpc::StatusCode code,
                            const std::string& text) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
  }

  v1::CompareRequest Comparison(const std::string& device = "board") const {
    v1::CompareRequest request;
    request.set_program(kMmRelu);
    request.set_target(kTargetKey);
    for (auto* side :
         {request.mutable_baseline(), request.mutable_candidate()}) {
      side->set_sha256(Sha256Hex(artifact_));
      side->set_symbol("mm_relu");
    }
    request.set_device(device);
    request.set_user("ci");
    request.add_candidate_first(true);
    return request;
  }
  grpc::Status Compare(const v1::CompareRequest& request,
                       std::vector<v1::CompareUpdate>* updates = nullptr) {
    grpc::ClientContext context;
    SetDeadline(context);
    const auto reader = stub_->Compare(&context, request);
    v1::CompareUpdate update;
    while (reader->Read(&update)) {
      if (updates != nullptr) updates->push_back(update);
    }
    return reader->Finish();
  }
  v1::WorkerMessage ArtifactHello(const std::string& name) const {
    v1::WorkerMessage hello = HelloOf(name);
    hello.mutable_hello()->mutable_device()->set_takes_artifacts(true);
    return hello;
  }

  std::unique_ptr<v1::Regression::Stub> stub_;
  std::string artifact_;
  int requests_ = 0;
};

TEST_F(HostileArtifactTest, OnlyWholeArtifactsAreStored) {
  const v1::ArtifactHeader good = HeaderOf(artifact_);
  ExpectRefused(Put(good, artifact_.substr(0, artifact_.size() - 1)), kInvalid,
                "the artifact ended after");
  ExpectRefused(Put(good, ""), kInvalid, "the artifact ended after 0");
  ExpectRefused(Put(good, artifact_ + "x"), kInvalid, "more bytes");
  std::string other = artifact_;
  other.back() ^= 1;
  ExpectRefused(Put(good, other), kInvalid, "not those of its sha256");
  ExpectRefused(Put(std::string(10'000, 'x')), kInvalid, "no ELF file");
  ExpectRefused(Put(artifact_.substr(0, 200)), kInvalid, "the artifact");
  v1::ArtifactHeader header = good;
  header.set_target("aarch64:cortex-a72,cores=1");
  ExpectRefused(Put(header, artifact_), kInvalid, "another machine");
  header = good;
  header.set_symbols(0, "other");
  ExpectRefused(Put(header, artifact_), kInvalid,
                "does not export the function other");
  EXPECT_TRUE(Put(artifact_).ok());
  EXPECT_TRUE(Put(artifact_).ok()) << "a second time";
}

TEST_F(HostileArtifactTest, WrongHeadersAreRefused) {
  const auto with = [&](const auto& change) {
    v1::ArtifactHeader header = HeaderOf(artifact_);
    change(header);
    return Put(header, artifact_);
  };
  ExpectRefused(with([](auto& h) { h.set_bytes(0); }), kTooMuch, "1 to");
  ExpectRefused(with([](auto& h) { h.set_bytes(uint64_t{1} << 62); }), kTooMuch,
                "1 to");
  ExpectRefused(with([](auto& h) { h.set_sha256("../../etc/passwd"); }),
                kInvalid, "sha256");
  ExpectRefused(with([](auto& h) { h.clear_symbols(); }), kInvalid,
                "no function");
  ExpectRefused(with([](auto& h) { h.set_symbols(0, "a b"); }), kInvalid,
                "no C identifier");
  ExpectRefused(with([](auto& h) { h.set_target("vax"); }), kInvalid, "vax");
  ExpectRefused(with([](auto& h) {
                  for (int i = 0; i < 1000; ++i) h.add_symbols("f");
                }),
                kTooMuch, "symbols");
  ExpectRefused(Put(HeaderOf(artifact_), artifact_ + std::string(4 << 20, 'x'),
                    /*part_bytes=*/3 << 20),
                kTooMuch, "");
  // Parts without a header, and a second header.
  for (const bool has_header : {false, true}) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    v1::ArtifactPart part;
    if (has_header) *part.mutable_header() = HeaderOf(artifact_);
    part.set_data("x");
    writer->Write(part);
    writer->Write(part);
    writer->WritesDone();
    ExpectRefused(writer->Finish(), kInvalid, "the first part");
  }
}

TEST_F(HostileArtifactTest, AnnouncedBytesAreBoundedInAll) {
  struct Upload {
    grpc::ClientContext context;
    v1::PutArtifactResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::ArtifactPart>> writer;
  };
  std::vector<std::unique_ptr<Upload>> uploads;
  int refused = 0;
  for (int i = 0; i < 6; ++i) {
    auto upload = std::make_unique<Upload>();
    SetDeadline(upload->context, std::chrono::seconds(30));
    upload->writer = stub_->PutArtifact(&upload->context, &upload->response);
    v1::ArtifactPart part;
    *part.mutable_header() = HeaderOf("no. " + std::to_string(i));
    part.mutable_header()->set_bytes(90 << 20);
    upload->writer->Write(part);
    uploads.push_back(std::move(upload));
  }
  // Those that were refused have answered; the others wait for bytes.
  for (auto& upload : uploads) {
    upload->writer->WritesDone();
    const grpc::Status status = upload->writer->Finish();
    refused += status.error_code() == kTooMuch ? 1 : 0;
    EXPECT_FALSE(status.ok());
  }
  EXPECT_GT(refused, 0);
  // All of that is given back.
  EXPECT_TRUE(Put(artifact_).ok());
}

TEST_F(HostileArtifactTest, ComparisonsOfNothingAreRefused) {
  v1::CompareRequest request = Comparison();
  EXPECT_EQ(Compare(request).error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Put(artifact_).ok());
  EXPECT_EQ(Compare(request).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "there is no device";
  const auto with = [&](const auto& change) {
    v1::CompareRequest changed = Comparison();
    change(changed);
    return Compare(changed).error_code();
  };
  EXPECT_EQ(with([](auto& r) { r.clear_candidate_first(); }), kInvalid);
  EXPECT_EQ(with([](auto& r) {
              for (int i = 0; i < 100; ++i) r.add_candidate_first(false);
            }),
            kTooMuch);
  EXPECT_EQ(with([](auto& r) { r.set_cluster_ms(4'000'000'000u); }), kInvalid);
  EXPECT_EQ(with([](auto& r) { r.set_sample_us(4'000'000'000u); }), kInvalid);
  EXPECT_EQ(with([](auto& r) { r.set_most_rounds(4'000'000'000u); }), kInvalid);
  EXPECT_EQ(with([](auto& r) { r.set_program("while True: pass"); }), kInvalid);
  EXPECT_EQ(with([](auto& r) { r.set_target("aarch64:cortex-a72"); }),
            kInvalid);
  EXPECT_EQ(with([](auto& r) { r.mutable_baseline()->set_symbol("system"); }),
            kInvalid);
  for (const double spread :
       {-1.0, 2.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(with([&](auto& r) { r.mutable_candidate()->set_spread(spread); }),
              kInvalid);
  }
}

TEST_F(HostileArtifactTest, AbsurdPairsAreAFailedCluster) {
  ASSERT_TRUE(Put(artifact_).ok());
  const double nan = std::nan("");
  struct Answer {
    std::vector<double> baseline, candidate;
    const char* why;
  };
  const Answer answers[] = {
      {{1e-3, 1e-3}, {1e-3}, "samples without their pairs"},
      {{}, {}, "a comparison without samples"},
      {{1e-3}, {-1}, "a sample that is no time"},
      {{nan}, {1e-3}, "a sample that is no time"},
      {{0}, {1e-3}, "a sample that is no time"},
      {{1e-30}, {1e-3}, "needs more than"},
      {{1e-3},
       {std::numeric_limits<double>::infinity()},
       "a sample that is no time"}};
  for (const Answer& answer : answers) {
    WorkerStream worker(channel_);
    v1::ServerMessage message;
    ASSERT_TRUE(worker.Write(ArtifactHello("board")));
    ASSERT_TRUE(worker.Read(&message));
    worker.Write(StateOf(1));
    std::vector<v1::CompareUpdate> updates;
    std::thread client([&] {
      // The device is there once its state has arrived.
      Until([&] { return Compare(Comparison(), &updates).ok(); }, 30);
    });
    while (worker.Read(&message) && !message.has_lease()) {
    }
    ASSERT_TRUE(message.has_lease());
    EXPECT_TRUE(message.lease().has_comparison());
    v1::WorkerMessage result = ResultOf(message.lease());
    v1::ComparedPairs& pairs =
        *result.mutable_result()->mutable_measurement()->mutable_compared();
    for (const double s : answer.baseline) pairs.add_baseline_seconds(s);
    for (const double s : answer.candidate) pairs.add_candidate_seconds(s);
    worker.Write(result);
    client.join();
    ASSERT_EQ(updates.size(), 1u) << answer.why;
    EXPECT_EQ(updates[0].status(), "run_error");
    EXPECT_THAT(updates[0].error(), HasSubstr(answer.why));
  }
}

TEST_F(HostileArtifactTest, ArtifactsAreGivenToTheirLeasesAlone) {
  ASSERT_TRUE(Put(artifact_).ok());
  const auto farm = v1::Farm::NewStub(channel_);
  const auto get = [&](const std::string& lease, const std::string& sha256) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::GetArtifactRequest request;
    request.set_lease_id(lease);
    request.set_sha256(sha256);
    const auto reader = farm->GetArtifact(&context, request);
    std::string bytes;
    v1::ArtifactData data;
    while (reader->Read(&data)) bytes += data.data();
    const grpc::Status status = reader->Finish();
    return status.ok() ? bytes : std::to_string(status.error_code());
  };
  const std::string not_found = std::to_string(grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(get("", Sha256Hex(artifact_)), not_found);
  EXPECT_EQ(get("none", Sha256Hex(artifact_)), not_found);
  WorkerStream worker(channel_);
  v1::ServerMessage message;
  ASSERT_TRUE(worker.Write(ArtifactHello("board")));
  ASSERT_TRUE(worker.Read(&message));
  worker.Write(StateOf(1));
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::CompareUpdate>> reader;
  ASSERT_TRUE(Until([&] {
    v1::FindDevicesRequest request;
    request.set_target(kTargetKey);
    v1::FindDevicesResponse response;
    grpc::ClientContext asked;
    SetDeadline(asked);
    return stub_->FindDevices(&asked, request, &response).ok() &&
           response.devices_size() == 1;
  }));
  reader = stub_->Compare(&context, Comparison());
  while (worker.Read(&message) && !message.has_lease()) {
  }
  ASSERT_TRUE(message.has_lease());
  const std::string lease = message.lease().lease_id();
  EXPECT_EQ(get(lease, Sha256Hex(artifact_)), artifact_);
  EXPECT_EQ(get(lease, Sha256Hex("other")), not_found);
  // Nobody waits for the result: the lease ends, and its artifact with it.
  context.TryCancel();
  v1::CompareUpdate update;
  while (reader->Read(&update)) {
  }
  reader->Finish();
  EXPECT_TRUE(
      Until([&] { return get(lease, Sha256Hex(artifact_)) == not_found; }, 30));
}

TEST_F(HostileArtifactTest, PointsWithoutSenseAreRefused) {
  v1::HistoryPoint good;
  good.set_series("s");
  good.set_benchmark("b");
  good.set_device_class("cpu");
  good.set_branch("main");
  good.set_commit("c");
  good.set_seconds(1e-3);
  const auto append = [&](const v1::HistoryPoint& point) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::AppendPointsRequest request;
    request.set_request_id("r-" + std::to_string(++requests_));
    *request.add_points() = point;
    v1::AppendPointsResponse response;
    return stub_->AppendPoints(&context, request, &response).error_code();
  };
  EXPECT_EQ(append(good), grpc::StatusCode::OK);
  const auto with = [&](const auto& change) {
    v1::HistoryPoint point = good;
    change(point);
    return append(point);
  };
  EXPECT_EQ(with([](auto& p) { p.set_seconds(std::nan("")); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_seconds(0); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_low_seconds(-1); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_ratio_high(std::nan("")); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_clusters(-1); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_commit(""); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_commit("a\nb"); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_at("yesterday"); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_verdict("splendid"); }), kInvalid);
  EXPECT_EQ(with([](auto& p) { p.set_benchmark(std::string(5000, 'x')); }),
            kTooMuch);
}

}  // namespace
}  // namespace tilefarm::testing

// No request of a user can harm the server or other users.
#include "tests/fault/hostile_client_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class HostileUserTest : public HostileClientFixture {
 protected:
  grpc::Status Submit(const v1::SubmitRequest& request) {
    grpc::Status status;
    Send(request, &status);
    return status;
  }
};

std::string Deep(const std::string& open, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST_F(HostileUserTest, DeepTextsAreErrorsOfTheOneWhoSentThem) {
  constexpr int kDepth = 200'000;
  for (const auto& [open, close] : std::map<std::string, std::string>{
           {"(", ")"}, {"[", "]"}, {"{", "}"}, {"-", ""}, {"not ", ""}}) {
    const std::string deep = Deep(open, close, kDepth);
    v1::SubmitRequest program = JobOf("program", 4);
    program.set_program("from tvm.script import tir as T\nx = " + deep + "\n");
    EXPECT_FALSE(Submit(program).ok());
    program = JobOf("expression", 4);
    std::string text = kMmRelu;
    text.replace(text.find("T.float32(0)"), 12, deep + "T.float32(0)");
    program.set_program(text);
    // Several signs before a number are one number.
    EXPECT_EQ(Submit(program).ok(), open == "-");
    v1::SubmitRequest sketch = JobOf("sketch", 4);
    sketch.set_space_trace("b0 = sch.get_block(" + deep + ")\n");
    EXPECT_FALSE(Submit(sketch).ok());
    v1::SubmitRequest requirement = JobOf("requirement", 4);
    requirement.add_requirements(deep.substr(0, 500));
    EXPECT_FALSE(Submit(requirement).ok());
    grpc::ClientContext context;
    SetDeadline(context);
    v1::MeasureRequest measure;
    measure.set_program(kMmRelu);
    measure.set_target(kTargetKey);
    measure.set_trace("b0 = sch.get_block(" + deep + ")\n");
    v1::MeasureResponse answer;
    EXPECT_FALSE(tune_->Measure(&context, measure, &answer).ok());
    grpc::ClientContext importing;
    SetDeadline(importing);
    v1::DbImportResponse imported;
    auto writer = tune_->DbImport(&importing, &imported);
    v1::DbLine line;
    line.set_json("{\"workload\":" + deep + "}");
    writer->Write(line);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(HostileUserTest, HugeListsOfEachRequestAreRefusedUnparsed) {
  v1::SubmitRequest requirements = JobOf("requirements", 4);
  for (int i = 0; i < 3'000'000; ++i) requirements.add_requirements();
  v1::SubmitRequest targets = JobOf("targets", 4);
  for (int i = 0; i < 3'000'000; ++i) targets.add_more_targets();
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(Submit(requirements).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Submit(targets).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  // Unknown fields in requests of every method.
  v1::CancelRequest unknown;
  auto& fields = *unknown.GetReflection()->MutableUnknownFields(&unknown);
  for (int i = 0; i < 2'000'000; ++i) fields.AddLengthDelimited(1000, "");
  const std::string bytes = unknown.SerializeAsString();
  for (const char* method :
       {"Tune/Submit", "Tune/Watch", "Tune/ListJobs", "Tune/Cancel",
        "Tune/ListDevices", "Tune/ChangeDevice", "Tune/DeviceLog", "Tune/Best",
        "Tune/Measure", "Tune/DbStats", "Tune/DbExport", "Tune/DbImport",
        "Admin/CreateToken", "Admin/ListTokens", "Admin/Revoke",
        "Admin/TokenLog"}) {
    SendRaw(std::string("/tilefarm.v1.") + method, bytes);
    SendRaw(std::string("/tilefarm.v1.") + method, "\xff\xff\xff");
  }
}

TEST_F(HostileUserTest, StringsBeyondTheirLimitsAreRefused) {
  for (const char* field : {"request_id", "user", "target", "model"}) {
    v1::SubmitRequest request = JobOf("long", 4);
    request.GetReflection()->SetString(
        &request, request.GetDescriptor()->FindFieldByName(field),
        std::string(1 << 20, 'x'));
    EXPECT_EQ(Submit(request).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  v1::SubmitRequest lines = JobOf("two\nlines", 4);
  EXPECT_EQ(Submit(lines).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // A file on the server's machine is not a target.
  v1::SubmitRequest file = JobOf("file", 4);
  file.set_target("/etc/passwd.json");
  const grpc::Status status = Submit(file);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("only the client's machine"));
}

TEST_F(HostileUserTest, AFloodOfJobsEndsAtTheLimit) {
  v1::SubmitRequest request = JobOf("", 1000);
  request.set_user("flood");
  grpc::Status status;
  int accepted = 0;
  for (; status.ok() && accepted < 2000; ++accepted) {
    request.set_request_id("flood-" + std::to_string(accepted));
    status = Submit(request);
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("flood has 1000 jobs"));
}

TEST_F(HostileUserTest, AnothersRequestIdIsNotHis) {
  const v1::SubmitRequest honest = JobOf("mine", 4);
  const std::string id = Send(honest);
  v1::SubmitRequest copy = honest;
  copy.set_user("mallory");
  const std::string other = Send(copy);
  EXPECT_NE(other, "");
  EXPECT_NE(other, id);
  EXPECT_EQ(Send(honest), id);
  // Serves both jobs, and ends before TearDown starts another honest job.
  const HonestWorker worker(*this, "honest",
                            [](const v1::Lease&) { return kHonestSeconds; });
  ExpectHonestEnd(id);
  ExpectHonestEnd(other);
}

TEST_F(HostileUserTest, WatchersWhoDoNotReadTakeNoMemory) {
  grpc::Status status;
  const std::string id = Send(JobOf("watched", 1'000'000), &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const HonestWorker worker(*this, "busy",
                            [](const v1::Lease&) { return kHonestSeconds; });
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobUpdate>>> readers;
  v1::WatchRequest request;
  request.set_job_id(id);
  for (int i = 0; i < 90; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    SetDeadline(*contexts.back());
    readers.push_back(tune_->Watch(contexts.back().get(), request));
  }
  // Each result sends an update to every watcher.
  ASSERT_TRUE(Until([&] { return worker.leases() >= 300; }));
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) reader->Finish();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelRequest cancel;
  cancel.set_job_id(id);
  v1::CancelResponse cancelled;
  EXPECT_TRUE(tune_->Cancel(&context, cancel, &cancelled).ok());
}

}  // namespace
}  // namespace tilefarm::testing

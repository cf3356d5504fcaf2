#include "worker/frames.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "worker/builder_protocol.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {
namespace {

class Pipe {
 public:
  Pipe() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(fds_, O_CLOEXEC), 0);
  }
  ~Pipe() {
    CloseWriter();
    close(fds_[0]);
  }
  int reader() const { return fds_[0]; }
  int writer() const { return fds_[1]; }
  void Write(const std::string& bytes) {
    EXPECT_EQ(write(fds_[1], bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  void CloseWriter() {
    if (fds_[1] >= 0) close(fds_[1]);
    fds_[1] = -1;
  }

 private:
  int fds_[2] = {-1, -1};
};

std::string Header(uint8_t version, uint32_t type, uint64_t length) {
  ByteWriter out;
  for (char c : {'T', 'F', 'W'}) out.U8(static_cast<uint8_t>(c));
  out.U8(version);
  out.U32(type);
  out.U64(length);
  return out.Take();
}

TEST(FramesTest, RoundTripsAFrameLargerThanThePipe) {
  Pipe pipe;
  const std::string payload(3 << 20, 'x');
  std::thread writer([&] {
    EXPECT_EQ(WriteFrame(pipe.writer(), -1, 7, payload), FrameStatus::kOk);
  });
  Frame frame;
  EXPECT_EQ(ReadFrame(pipe.reader(), 10000, &frame), FrameStatus::kOk);
  writer.join();
  EXPECT_EQ(frame.type, 7u);
  EXPECT_EQ(frame.payload, payload);
}

TEST(FramesTest, LayoutIsAsDocumented) {
  Pipe pipe;
  ASSERT_EQ(WriteFrame(pipe.writer(), -1, 0x01020304, "ab"), FrameStatus::kOk);
  char bytes[18];
  ASSERT_EQ(read(pipe.reader(), bytes, sizeof bytes), 18);
  EXPECT_EQ(std::string(bytes, sizeof bytes),
            std::string("TFW\x06\x04\x03\x02\x01\x02\0\0\0\0\0\0\0ab", 18));
}

TEST(FramesTest, ReadsNoByteBeyondTheFrame) {
  Pipe pipe;
  ASSERT_EQ(WriteFrame(pipe.writer(), -1, 1, "first"), FrameStatus::kOk);
  ASSERT_EQ(WriteFrame(pipe.writer(), -1, 2, "second"), FrameStatus::kOk);
  Frame frame;
  ASSERT_EQ(ReadFrame(pipe.reader(), 1000, &frame), FrameStatus::kOk);
  ASSERT_EQ(ReadFrame(pipe.reader(), 1000, &frame), FrameStatus::kOk);
  EXPECT_EQ(frame.payload, "second");
}

TEST(FramesTest, EndBetweenFramesIsTheEnd) {
  Pipe pipe;
  pipe.CloseWriter();
  Frame frame;
  EXPECT_EQ(ReadFrame(pipe.reader(), 1000, &frame), FrameStatus::kEnd);
}

TEST(FramesTest, EndWithinAFrameIsMalformed) {
  for (size_t keep : {1u, 15u, 16u, 19u}) {
    Pipe pipe;
    pipe.Write((Header(kFrameVersion, 1, 4) + "abcd").substr(0, keep));
    pipe.CloseWriter();
    Frame frame;
    EXPECT_EQ(ReadFrame(pipe.reader(), 1000, &frame), FrameStatus::kMalformed)
        << keep;
  }
}

TEST(FramesTest, OtherVersionMagicOrLengthIsMalformed) {
  std::string other_magic = Header(kFrameVersion, 1, 0);
  other_magic[0] = 'X';
  for (const std::string& header :
       {Header(kFrameVersion + 1, 1, 0), other_magic,
        Header(kFrameVersion, 1, kMaxPayloadBytes + 1),
        Header(kFrameVersion, 1, ~uint64_t{0})}) {
    Pipe pipe;
    pipe.Write(header);
    Frame frame;
    EXPECT_EQ(ReadFrame(pipe.reader(), 1000, &frame), FrameStatus::kMalformed);
  }
}

TEST(FramesTest, SilenceTimesOut) {
  Pipe pipe;
  Frame frame;
  EXPECT_EQ(ReadFrame(pipe.reader(), 10, &frame), FrameStatus::kTimeout);
  pipe.Write("TFW");
  EXPECT_EQ(ReadFrame(pipe.reader(), 10, &frame), FrameStatus::kTimeout);
}

TEST(FramesTest, AReaderGoesOnWithTheFrameItHasPartOf) {
  Pipe from, to;
  ASSERT_EQ(WriteFrame(from.writer(), 100, 7, "payload"), FrameStatus::kOk);
  char bytes[kFrameHeaderBytes + 7];
  ASSERT_EQ(read(from.reader(), bytes, sizeof bytes),
            static_cast<ssize_t>(sizeof bytes));
  FrameReader reader;
  Frame frame;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    ASSERT_EQ(reader.Read(to.reader(), 0, &frame), FrameStatus::kTimeout) << i;
    EXPECT_EQ(reader.in_frame(), i > 0);
    to.Write(std::string(1, bytes[i]));
  }
  ASSERT_EQ(reader.Read(to.reader(), 0, &frame), FrameStatus::kOk);
  EXPECT_EQ(frame.type, 7u);
  EXPECT_EQ(frame.payload, "payload");
  EXPECT_FALSE(reader.in_frame());
}

TEST(FramesTest, WritingToAClosedPipeFails) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  signal(SIGPIPE, SIG_IGN);
  close(fds[0]);
  EXPECT_EQ(WriteFrame(fds[1], 100, 1, "x"), FrameStatus::kIoError);
  close(fds[1]);
}

TEST(FramesTest, WritingToAFullPipeTimesOut) {
  Pipe pipe;
  fcntl(pipe.writer(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(WriteFrame(pipe.writer(), 20, 1, std::string(1 << 20, 'x')),
            FrameStatus::kTimeout);
}

TEST(PayloadTest, RunnerMessagesRoundTrip) {
  LoadWorkload load;
  load.key = "key";
  load.symbol = "f";
  load.artifact = std::string("\0elf", 4);
  load.input_seed = ~uint64_t{0};
  load.program.buffers = {
      {ElementType::kInt8, true, false, 12, -8, 7, false, true},
      {ElementType::kBFloat16, false, true, 1, 0, 0, true}};
  load.program.oracle_bytes = 99;
  load.program.cold_constants = true;
  load.limits = {1234, 5678, {0, 3}};
  LoadWorkload copy;
  ASSERT_TRUE(Decode(Encode(load), &copy));
  EXPECT_EQ(Encode(copy), Encode(load));
  EXPECT_EQ(copy.program.buffers[0].low, -8);
  EXPECT_TRUE(copy.program.buffers[0].layout_free);
  EXPECT_FALSE(copy.program.buffers[1].layout_free);
  EXPECT_TRUE(copy.program.cold_constants);
  EXPECT_THAT(copy.limits.cpus, testing::ElementsAre(0, 3));

  RunReply reply;
  reply.status = RunStatus::kWrongResult;
  reply.error = "why";
  reply.seconds = {1, 2.5};
  reply.max_rel_error = 0.25;
  RunReply reply_copy;
  ASSERT_TRUE(Decode(Encode(reply), &reply_copy));
  EXPECT_EQ(Encode(reply_copy), Encode(reply));
}

// Every prefix of a payload, and every payload with one byte changed, is
// either refused or decoded; nothing crashes or allocates without bound.
template <typename T>
void TryDamaged(const T& value) {
  const std::string good = Encode(value);
  for (size_t size = 0; size < good.size(); ++size) {
    T out;
    EXPECT_FALSE(Decode(good.substr(0, size), &out)) << size;
  }
  T longer;
  EXPECT_FALSE(Decode(good + "x", &longer));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      T out;
      Decode(bad, &out);
    }
  }
}

TEST(PayloadTest, DamagedPayloadsAreRefused) {
  LoadWorkload load;
  load.key = "key";
  load.program.buffers = {{ElementType::kFloat32, true, true, 5, 0, 0, true}};
  load.limits.cpus = {1};
  TryDamaged(load);
  RunRequest run;
  run.key = "key";
  run.artifact = "artifact";
  TryDamaged(run);
  RunReply reply;
  reply.seconds = {1, 2, 3};
  TryDamaged(reply);
  BuildReply build;
  build.artifact = "abc";
  build.program = load.program;
  TryDamaged(build);
  BuildRequest request;
  request.program = "p";
  TryDamaged(request);
}

TEST(PayloadTest, ImpossibleSpecsAreRefused) {
  ProgramSpec spec;
  spec.buffers = {{ElementType::kFloat32, true, false, 1, 0, 0, 0}};
  ProgramSpec out;
  EXPECT_TRUE(Decode(Encode(spec), &out));
  spec.buffers[0].elements = 0;
  EXPECT_FALSE(Decode(Encode(spec), &out));
  spec.buffers[0].elements = uint64_t{1} << 60;
  EXPECT_FALSE(Decode(Encode(spec), &out));
  spec.buffers[0].elements = 1;
  spec.buffers[0].low = 1;
  EXPECT_FALSE(Decode(Encode(spec), &out));
  spec.buffers[0].low = 0;
  spec.buffers[0].type = static_cast<ElementType>(77);
  EXPECT_FALSE(Decode(Encode(spec), &out));
}

}  // namespace
}  // namespace tilefarm::worker

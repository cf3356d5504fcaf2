// The recording in examples/demo, compressed by zstd.
#ifndef TILEFARM_SERVER_DEMO_EMBEDDED_RECORDING_H_
#define TILEFARM_SERVER_DEMO_EMBEDDED_RECORDING_H_

#include <string_view>

namespace tilefarm::demo {

std::string_view EmbeddedRecording();

}  // namespace tilefarm::demo

#endif  // TILEFARM_SERVER_DEMO_EMBEDDED_RECORDING_H_

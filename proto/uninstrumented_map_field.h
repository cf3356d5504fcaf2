// Included before everything else in builds with ThreadSanitizer: protobuf's
// MapField has two more members there, and the code of Debian's libprotobuf,
// which is built without it, looks for the members behind them elsewhere.
#pragma once

#ifdef __cplusplus
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
#endif

#include "server/cli/report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "server/web/assets.h"

namespace tilefarm::cli {
namespace {

// In the order of their dependencies.
constexpr const char* kModules[] = {
    "format.js",    "dom.js",      "candidates.js", "charts.js", "roofline.js",
    "decisions.js", "pictures.js", "summary.js",    "report.js"};

absl::StatusOr<std::string> Asset(const std::string& name) {
  const web::Asset* const asset = web::FindAsset("/assets/" + name);
  if (asset == nullptr) {
    return absl::InternalError(absl::StrCat("there is no asset ", name));
  }
  return std::string(asset->bytes);
}

// Imports begin at the start of a line and end with a semicolon.
std::string WithoutImports(absl::string_view module) {
  std::string out;
  bool importing = false;
  for (const absl::string_view line : absl::StrSplit(module, '\n')) {
    importing |= absl::StartsWith(line, "import ");
    if (importing) {
      importing = !absl::EndsWith(line, ";");
      continue;
    }
    constexpr absl::string_view kExport = "export ";
    absl::StrAppend(
        &out,
        absl::StartsWith(line, kExport) ? line.substr(kExport.size()) : line,
        "\n");
  }
  return out;
}

// As a content security policy names a script.
std::string HashOf(const std::string& text) {
  return absl::StrCat(
      "'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))),
      "'");
}

// JSON within a script element: a text in it must not end the element.
std::string Embeddable(const nlohmann::ordered_json& data) {
  using Json = nlohmann::ordered_json;
  return absl::StrReplaceAll(
      data.dump(-1, ' ', false, Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}});
}

}  // namespace

absl::StatusOr<std::string> Bundle() {
  std::string script;
  for (const char* name : kModules) {
    TF_ASSIGN_OR_RETURN(const std::string module, Asset(name));
    absl::StrAppend(&script, WithoutImports(module));
  }
  return script;
}

std::string ReportPage(const nlohmann::ordered_json& data) {
  const auto bundle = Bundle(), charts = Asset("chart.min.js"),
             style = Asset("style.css");
  TF_CHECK(bundle.ok() && charts.ok() && style.ok());
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; script-src ",
      HashOf(*charts), " ", HashOf(*bundle), "; style-src ", HashOf(*style),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>Tilefarm report</title>\n<style>",
      *style, "</style>\n</head>\n<body>\n<main id=\"main\"></main>\n<script>",
      *charts, "</script>\n<script type=\"application/json\" id=\"data\">",
      Embeddable(data), "</script>\n<script type=\"module\">", *bundle,
      "</script>\n</body>\n</html>\n");
}

}  // namespace tilefarm::cli

#include "server/web/assets.h"

#include "server/web/embedded_assets.h"

namespace tilefarm::web {
namespace {

constexpr std::string_view kFolder = "/assets/";
constexpr std::string_view kIndex = "index.html";

const Asset* Named(std::string_view name) {
  for (const Asset& asset : kEmbeddedAssets) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

}  // namespace

std::span<const Asset> Assets() { return kEmbeddedAssets; }

const Asset* FindAsset(std::string_view path) {
  if (path == "/") return Named(kIndex);
  if (path.substr(0, kFolder.size()) != kFolder) return nullptr;
  const std::string_view name = path.substr(kFolder.size());
  return name == kIndex ? nullptr : Named(name);
}

}  // namespace tilefarm::web

// What the dashboard is made of: pages, styles, scripts and the library of
// charts, embedded in the program. They are the same for everybody and say
// nothing of the farm; what they show comes from the API.
#ifndef TILEFARM_SERVER_WEB_ASSETS_H_
#define TILEFARM_SERVER_WEB_ASSETS_H_

#include <span>
#include <string_view>

namespace tilefarm::web {

struct Asset {
  std::string_view name;          // "app.js"
  std::string_view content_type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;
  std::string_view etag;  // changes with the bytes
};

std::span<const Asset> Assets();
// "/" is index.html, "/assets/NAME" any other file. Null: none. The views have
// no paths of their own: the page's script chooses one by what follows the "#".
const Asset* FindAsset(std::string_view path);

}  // namespace tilefarm::web

#endif  // TILEFARM_SERVER_WEB_ASSETS_H_

# What `cmake --install` puts where: the programs, and what they print of
# themselves: manual pages and completions for shells. Helper programs are
# beside the daemons, which look for them there.
include(GNUInstallDirs)

set(tilefarm_programs rpc-worker tune tune-opt tune-server tunec)
install(TARGETS ${tilefarm_programs} tune-builder tune-runner
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(tilefarm_share ${CMAKE_BINARY_DIR}/share)
set(tilefarm_made_files)
# NAME from what PROGRAM prints with the arguments.
function(tilefarm_printed program name)
  add_custom_command(
    OUTPUT ${tilefarm_share}/${name}
    COMMAND ${program} ${ARGN} > ${tilefarm_share}/${name}
    DEPENDS ${program}
    VERBATIM)
  set(tilefarm_made_files ${tilefarm_made_files} ${tilefarm_share}/${name} PARENT_SCOPE)
endfunction()
file(MAKE_DIRECTORY ${tilefarm_share}/man ${tilefarm_share}/bash ${tilefarm_share}/fish ${tilefarm_share}/zsh)
foreach(program IN LISTS tilefarm_programs)
  tilefarm_printed(${program} man/${program}.1 --print-man)
  tilefarm_printed(${program} bash/${program} --print-completion bash)
  tilefarm_printed(${program} fish/${program}.fish --print-completion fish)
  tilefarm_printed(${program} zsh/_${program} --print-completion zsh)
endforeach()
# Programs with a sanitizer are not installed.
if(TILEFARM_SANITIZE)
  add_custom_target(tilefarm_documentation DEPENDS ${tilefarm_made_files})
else()
  add_custom_target(tilefarm_documentation ALL DEPENDS ${tilefarm_made_files})
endif()

install(DIRECTORY ${tilefarm_share}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${tilefarm_share}/bash/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${tilefarm_share}/fish/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${tilefarm_share}/zsh/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

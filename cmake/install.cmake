# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: headers, both libraries, pkg-config and CMake package files, and the executable with
# its manual page and completion.
if(NOT TARGET ptxgen_static)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ptxgen)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ptxgen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
# Two export sets: a user of the shared library needs neither LLVM nor libyaml to be found.
install(TARGETS ptxgen_static EXPORT ptxgen-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT ptxgen-static NAMESPACE ptxgen:: DESTINATION ${package_dir})
if(TARGET ptxgen_shared)
  install(TARGETS ptxgen_shared EXPORT ptxgen-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ptxgen-shared NAMESPACE ptxgen:: DESTINATION ${package_dir})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ptxgen-config.cmake.in ptxgen-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ptxgen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxgen-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptxgen-config-version.cmake
  DESTINATION ${package_dir})

# By its own place, so that an installed tree may be moved.
file(RELATIVE_PATH PTXGEN_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PTXGEN_PC_PREFIX ${PTXGEN_PC_PREFIX})
set(PTXGEN_LLVM_LIBDIR ${LLVM_LIBRARY_DIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/ptxgen.pc.in ptxgen.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(NOT TARGET ptxgen)
  return()
endif()
install(TARGETS ptxgen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/ptxgen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_SOURCE_DIR}/completions/ptxgen.bash RENAME ptxgen
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_ptxgen DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/completions/ptxgen.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Editors take the language's JSON Schema from here; it is printed by the tables that the frontend reads.
add_custom_command(OUTPUT spec.schema.json DEPENDS ptxgen VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:ptxgen> schema > spec.schema.json)
# The reference of the tables, too.
add_custom_command(OUTPUT reference.md DEPENDS ptxgen VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:ptxgen> reference > reference.md)
add_custom_target(schema ALL DEPENDS spec.schema.json reference.md)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/reference.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/spec.schema.json ${PROJECT_SOURCE_DIR}/docs/manifest.schema.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ptxgen)

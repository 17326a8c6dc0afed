# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, in three components: runtime (the shared library), dev (headers, archive, pkg-config and
# CMake package) and tools (the executable with manual pages, completions, schemas and all documentation).
if(NOT TARGET ptxgen_static)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ptxgen)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ptxgen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Export sets of their own: a user of the shared library needs neither LLVM nor libyaml to be found, nor the executable.
install(TARGETS ptxgen_static EXPORT ptxgen-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT ptxgen-static NAMESPACE ptxgen:: DESTINATION ${package_dir})
if(TARGET ptxgen_shared)
  install(TARGETS ptxgen_shared EXPORT ptxgen-shared
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
  install(EXPORT ptxgen-shared NAMESPACE ptxgen:: DESTINATION ${package_dir})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ptxgen-config.cmake.in ptxgen-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ptxgen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxgen-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptxgen-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/ptxgen_add_kernels.cmake DESTINATION ${package_dir})

# By its own place, so that an installed tree may be moved.
file(RELATIVE_PATH PTXGEN_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PTXGEN_PC_PREFIX ${PTXGEN_PC_PREFIX})
if(PTXGEN_STATIC)
  set(PTXGEN_LLVM_LIBS "-L${LLVM_LIBRARY_DIR} -lLLVM-${LLVM_VERSION_MAJOR} ")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/ptxgen.pc.in ptxgen.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(NOT TARGET ptxgen)
  return()
endif()
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)
set_target_properties(ptxgen PROPERTIES EXPORT_NAME compiler)
install(TARGETS ptxgen EXPORT ptxgen-tools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT ptxgen-tools NAMESPACE ptxgen:: DESTINATION ${package_dir})
# The manual page has the commands and options from the tables that the executable reads.
set(page ${PROJECT_SOURCE_DIR}/docs/ptxgen.1.in)
add_custom_command(OUTPUT ptxgen.1 DEPENDS ptxgen ${page} VERBATIM
  COMMAND ${CMAKE_COMMAND} -D PTXGEN=$<TARGET_FILE:ptxgen> -D IN=${page} -D OUT=ptxgen.1 -P ${PROJECT_SOURCE_DIR}/cmake/manual.cmake)
add_custom_target(manual ALL DEPENDS ptxgen.1)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxgen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# Each shell looks in a folder of its own for a name of its own.
foreach(place IN ITEMS "ptxgen.bash bash-completion/completions/ptxgen" "_ptxgen zsh/site-functions/_ptxgen"
    "ptxgen.fish fish/vendor_completions.d/ptxgen.fish")
  string(REGEX MATCH "^([^ ]+) (.+)/([^/]+)$" place ${place})
  install(FILES completions/${CMAKE_MATCH_1} DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2} RENAME ${CMAKE_MATCH_3})
endforeach()

# The documentation lies as it does in the source tree, so that its links work.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs specs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN *.1.in EXCLUDE)
install(DIRECTORY include/ptxgen DESTINATION ${CMAKE_INSTALL_DOCDIR}/include)
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(FILES bench/results/apps.csv bench/results/h200.csv bench/results/h200-rows.csv DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/results)

# Editors take the language's JSON Schema from here; it is printed by the tables that the frontend reads.
add_custom_command(OUTPUT spec.schema.json DEPENDS ptxgen VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:ptxgen> schema > spec.schema.json)
add_custom_target(schema ALL DEPENDS spec.schema.json)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/spec.schema.json ${PROJECT_SOURCE_DIR}/docs/manifest.schema.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ptxgen)

# SPDX-License-Identifier: Apache-2.0
# The public library: libptxgen.so.0 and libptxgen.a, both made of the objects of all folders.
#
# src/api is the glue between the public API and the folders.  Tests get it as ptxgen_api beside the folders, because
# they also look inside; users get one library that shows only ptxgen_*.
file(GLOB api CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/*.c)
add_library(ptxgen_folders INTERFACE)
target_link_libraries(ptxgen_folders INTERFACE ptxgen_explore ptxgen_dist ptxgen_ref ptxgen_laws ptxgen_launch ptxgen_cache)
if(NOT api)
  add_library(ptxgen_api INTERFACE)
  target_link_libraries(ptxgen_api INTERFACE ptxgen_folders)
  return()
endif()
add_library(ptxgen_api STATIC ${api})
target_link_libraries(ptxgen_api PUBLIC ptxgen_folders)
# Which sources generate the code: part of the keys of the disk cache.
set(source_id ${PROJECT_BINARY_DIR}/generated/source_id.h)
set(generating)
foreach(folder base program frontend lower llvmgen ref laws)
  file(GLOB_RECURSE some CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.[ch] ${PROJECT_SOURCE_DIR}/src/${folder}/*.def)
  list(APPEND generating ${some})
endforeach()
add_custom_command(OUTPUT ${source_id}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${source_id} -P ${PROJECT_SOURCE_DIR}/cmake/source_id.cmake
  DEPENDS ${generating} ${PROJECT_SOURCE_DIR}/cmake/source_id.cmake VERBATIM)
target_sources(ptxgen_api PRIVATE ${source_id})
target_include_directories(ptxgen_api PRIVATE ${PROJECT_BINARY_DIR}/generated)

# What both need from outside.
set(needs PkgConfig::YAML ptxgen_llvm Threads::Threads ${CMAKE_DL_LIBS} m)
set(objects $<TARGET_OBJECTS:ptxgen_api> ${PTXGEN_OBJECTS})
set(public_include $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

add_library(ptxgen_static STATIC ${objects})
set_target_properties(ptxgen_static PROPERTIES OUTPUT_NAME ptxgen EXPORT_NAME static LINKER_LANGUAGE C)
target_include_directories(ptxgen_static PUBLIC ${public_include})
target_link_libraries(ptxgen_static INTERFACE
  "$<BUILD_INTERFACE:${needs}>" "$<INSTALL_INTERFACE:$<$<BOOL:${PTXGEN_STATIC}>:LLVM>;yaml;Threads::Threads;${CMAKE_DL_LIBS};m>")
if(PTXGEN_STATIC)
  add_library(ptxgen::ptxgen ALIAS ptxgen_static)
  return()
endif()

set(map ${PROJECT_SOURCE_DIR}/cmake/ptxgen.map)
add_library(ptxgen_shared SHARED ${objects})
set_target_properties(ptxgen_shared PROPERTIES OUTPUT_NAME ptxgen EXPORT_NAME ptxgen LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
target_include_directories(ptxgen_shared PUBLIC ${public_include})
target_link_libraries(ptxgen_shared PRIVATE ${needs})
target_link_options(ptxgen_shared PRIVATE -Wl,--version-script=${map})
if(NOT PTXGEN_SANITIZE) # whose functions are found in the executable
  target_link_options(ptxgen_shared PRIVATE -Wl,-z,defs)
endif()
add_library(ptxgen::ptxgen ALIAS ptxgen_shared)

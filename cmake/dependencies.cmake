# SPDX-License-Identifier: Apache-2.0
# What the project links: LLVM (C API), libyaml; Criterion for tests; CUDA and Z3 when they are there.
# No version is asked for, because LLVM takes a request for its exact minor version only.  LLVM 20 and 21 were tried: see
# docs/install.md.
find_package(LLVM REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/llvm)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "ptxgen takes LLVM 22, not ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}; "
    "another one is named by -DLLVM_DIR=PREFIX/lib/cmake/llvm")
endif()
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)

# ptxgen_llvm: LLVM's headers, and either the archives that the components need or the name of its shared library, which is
# opened at run time.
add_library(ptxgen_llvm INTERFACE)
target_include_directories(ptxgen_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
if(PTXGEN_STATIC)
  # llvm-config rather than the imported targets: those drag in shared system libraries that nothing here reaches.
  find_program(PTXGEN_LLVM_CONFIG NAMES llvm-config-${LLVM_VERSION_MAJOR} llvm-config HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
  execute_process(COMMAND ${PTXGEN_LLVM_CONFIG} --link-static --libs nvptx native passes irreader bitreader linker orcjit
    OUTPUT_VARIABLE PTXGEN_LLVM_ARCHIVES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(PTXGEN_LLVM_ARCHIVES)
  target_link_directories(ptxgen_llvm INTERFACE ${LLVM_LIBRARY_DIRS})
  target_link_options(ptxgen_llvm INTERFACE -static-libgcc -Wl,--gc-sections -Wl,--as-needed)
  target_link_libraries(ptxgen_llvm INTERFACE ${PTXGEN_LLVM_ARCHIVES} -Wl,-Bstatic -lstdc++ -lz -lzstd -Wl,-Bdynamic
    Threads::Threads ${CMAKE_DL_LIBS} m)
  # libyaml too, so that the executable needs nothing but the C library.
  find_library(YAML_ARCHIVE NAMES libyaml.a HINTS ${YAML_LIBDIR} REQUIRED)
  set_property(TARGET PkgConfig::YAML PROPERTY INTERFACE_LINK_LIBRARIES ${YAML_ARCHIVE})
else()
  get_target_property(file LLVM LOCATION)
  file(REAL_PATH ${file} file) # links belong to other packages
  target_compile_definitions(ptxgen_llvm INTERFACE PTXGEN_LLVM_FILE="${file}"
    PTXGEN_LLVM_SONAME="$<TARGET_SONAME_FILE_NAME:LLVM>")
  target_include_directories(ptxgen_llvm INTERFACE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(ptxgen_llvm INTERFACE ${CMAKE_DL_LIBS})
endif()

if(BUILD_TESTING)
  pkg_check_modules(CRITERION REQUIRED IMPORTED_TARGET criterion)
endif()

# Optional. Nothing links CUDA: the driver is opened at run time; ptxas and the headers serve tests and benchmarks.
find_program(PTXGEN_PTXAS ptxas HINTS ${CUDAToolkit_ROOT}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
find_path(PTXGEN_CUDA_INCLUDE cuda.h HINTS ${CUDAToolkit_ROOT}/include $ENV{CUDA_HOME}/include /usr/local/cuda/include)
pkg_check_modules(Z3 IMPORTED_TARGET z3)

message(STATUS "LLVM ${LLVM_PACKAGE_VERSION}, ptxas: ${PTXGEN_PTXAS}, cuda.h: ${PTXGEN_CUDA_INCLUDE}, Z3: ${Z3_VERSION}")

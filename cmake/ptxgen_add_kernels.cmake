# SPDX-License-Identifier: Apache-2.0
# ptxgen_add_kernels(TARGET SPECS a.yaml b.yaml... [ARCH sm_90] [SIZES n=512...] [OPTIONS --tuning=FILE...])
#
# Building TARGET generates a C header from each spec, a.h from a.yaml, and TARGET finds them as "a.h".  A header is
# generated again when its spec or the compiler changes.  Messages name file, line and column, as those of C compilers do.
# ARCH is the oldest architecture that the code runs on, sm_80 by default.  SIZES are known when compiling: the code takes
# no others.  OPTIONS go to `ptxgen compile`.  What includes a header needs <cuda.h> and links the driver: CUDA::cuda_driver.
function(ptxgen_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCH" "SPECS;SIZES;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SPECS)
    message(FATAL_ERROR "ptxgen_add_kernels(TARGET SPECS FILE... [ARCH sm_NN] [SIZES NAME=N...] [OPTIONS ...]): "
      "what is \"${arg_UNPARSED_ARGUMENTS}\", and which specs?")
  elseif(NOT TARGET ${target})
    message(FATAL_ERROR "ptxgen_add_kernels: there is no target ${target}; add_executable() or add_library() comes first")
  elseif(NOT TARGET ptxgen::compiler)
    message(FATAL_ERROR "ptxgen_add_kernels: the executable `ptxgen` is not installed beside its CMake package")
  endif()
  if(NOT arg_ARCH)
    set(arg_ARCH sm_80)
  endif()
  list(TRANSFORM arg_SIZES PREPEND --size=)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptxgen/${target})
  file(MAKE_DIRECTORY ${folder})
  foreach(spec IN LISTS arg_SPECS)
    get_filename_component(spec ${spec} ABSOLUTE)
    get_filename_component(name ${spec} NAME_WLE)
    add_custom_command(OUTPUT ${folder}/${name}.h
      COMMAND ptxgen::compiler ${spec} --emit=header --arch=${arg_ARCH} ${arg_SIZES} ${arg_OPTIONS} -o ${folder}/${name}.h
      DEPENDS ${spec} $<TARGET_FILE:ptxgen::compiler>
      COMMENT "Generating ${name}.h for ${target}" VERBATIM)
    target_sources(${target} PRIVATE ${folder}/${name}.h)
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
endfunction()

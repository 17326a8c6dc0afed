# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=… -DOUT=… -P source_id.cmake: a header with one hash of everything that generated code depends on, for the
# keys of the disk cache: code of yesterday's ptxgen is not found by today's.
file(GLOB sources ${ROOT}/src/base/*.[ch] ${ROOT}/src/frontend/*.[ch] ${ROOT}/src/lower/*.[ch] ${ROOT}/src/llvmgen/*.[ch]
  ${ROOT}/src/ref/*.[ch] ${ROOT}/src/laws/*.[ch]
  ${ROOT}/src/*/*.def)
set(all)
foreach(source IN LISTS sources)
  file(SHA256 ${source} hash)
  string(APPEND all ${hash})
endforeach()
string(SHA256 id "${all}")
set(text "#define PTXGEN_SOURCE_ID \"${id}\"\n")
set(old)
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()

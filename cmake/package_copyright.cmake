# SPDX-License-Identifier: Apache-2.0
# For cpack, before packages are made of the installed components.
foreach(pair IN ITEMS runtime:${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} dev:libptxgen-dev tools:ptxgen)
  string(REGEX MATCH "(.*):(.*)" pair ${pair})
  set(component ${CPACK_TEMPORARY_DIRECTORY}/${CMAKE_MATCH_1})
  if(IS_DIRECTORY ${component})
    configure_file(${CPACK_RESOURCE_FILE_LICENSE} ${component}/usr/share/doc/${CMAKE_MATCH_2}/copyright COPYONLY)
  endif()
endforeach()

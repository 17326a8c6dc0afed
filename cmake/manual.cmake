# SPDX-License-Identifier: Apache-2.0
# cmake -D PTXGEN=… -D IN=… -D OUT=… -P manual.cmake: the manual page, of its fixed text and of what `ptxgen reference manual` prints.
set(ENV{ASAN_OPTIONS} detect_leaks=0)
execute_process(COMMAND ${PTXGEN} reference manual OUTPUT_VARIABLE commands_and_options COMMAND_ERROR_IS_FATAL ANY)
configure_file(${IN} ${OUT} @ONLY)

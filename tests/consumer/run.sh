#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# consumer/run.sh BUILD_DIR - installs a build into an empty folder, then builds and runs a project that finds it there:
# through the CMake package (shared and static) and through pkg-config.
set -eu
build=${1:?usage: run.sh BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/installed

# What is compiled with sanitizers links only with them.
sanitize=$(sed -n 's/^PTXGEN_SANITIZE:STRING=//p' "$build/CMakeCache.txt")
flags=${sanitize:+-fsanitize=$sanitize}

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
for file in include/ptxgen/ptxgen.h 'lib/*libptxgen.so' 'lib/*libptxgen.so.0' 'lib/*libptxgen.a' \
    'lib/*pkgconfig/ptxgen.pc' share/man/man1/ptxgen.1 share/ptxgen/spec.schema.json 'lib/*cmake/ptxgen/ptxgen-config.cmake'; do
    find "$prefix" -path "$prefix/$file" | grep -q . || { echo "not installed: $file"; exit 1; }
done

cmake -S "$here" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" >"$work/log" 2>&1 &&
    ninja -C "$work/build" >>"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/consumer_ptxgen"
"$work/build/consumer_static"
if ldd "$work/build/consumer_static" | grep -q libptxgen; then
    echo 'the static consumer needs libptxgen.so'
    exit 1
fi

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name ptxgen.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086 # lists of words
cc $flags "$here/consumer.c" $(pkg-config --cflags --libs ptxgen) -Wl,-rpath,"$(pkg-config --variable=libdir ptxgen)" -o "$work/consumer"
"$work/consumer"

# The installed executable finds its library by itself, wherever the tree lies.
if [ -x "$prefix/bin/ptxgen" ]; then
    mv "$prefix" "$work/moved"
    "$work/moved/bin/ptxgen" --version
fi

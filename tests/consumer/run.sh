#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# consumer/run.sh BUILD_DIR      installs a build into an empty folder, then builds and runs a project that finds it there:
#                                through the CMake package (shared, static, generated kernels) and through pkg-config
# consumer/run.sh --at PREFIX    the same with what is installed at PREFIX
set -eu
where=${1:?usage: run.sh BUILD_DIR | --at PREFIX}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
    echo "$1"
    [ $# -lt 2 ] || cat "$2"
    exit 1
}

flags=
if [ "$where" = --at ]; then
    prefix=$2
else
    prefix=$work/installed
    # What is compiled with sanitizers links only with them.
    sanitize=$(sed -n 's/^PTXGEN_SANITIZE:STRING=//p' "$where/CMakeCache.txt")
    flags=${sanitize:+-fsanitize=$sanitize}
    cmake --install "$where" --prefix "$prefix" >"$work/log" || fail 'not installed' "$work/log"
fi
docs=share/doc/ptxgen
# Of /usr, which holds much else, the paths are listed once, and only what has our name is compared.
find "$prefix/" >"$work/paths"
for file in include/ptxgen/ptxgen.h include/ptxgen/ptxgen.hpp 'lib/*libptxgen.so' 'lib/*libptxgen.so.0' 'lib/*libptxgen.a' 'lib/*pkgconfig/ptxgen.pc' \
    share/bash-completion/completions/ptxgen share/man/man1/ptxgen.1 share/ptxgen/spec.schema.json \
    'lib/*cmake/ptxgen/ptxgen-config.cmake' $docs/LICENSE $docs/README.md $docs/examples/reduce_buffer.c $docs/specs/dot.yaml; do
    grep -q "^$prefix/$(echo "$file" | sed 's/[.+]/\\&/g; s/\*/.*/g')$" "$work/paths" || fail "not installed: $file"
done
# Every completion, wherever its shell looks for it.
for file in "$here"/../../completions/*; do
    find "$prefix/share/" -path '*/doc/*' -o -type f -name '*ptxgen*' -exec cmp -s "$file" {} \; -print | grep -q . ||
        fail "not installed: $file"
done
# The links of the installed pages.
find "$prefix/$docs" -name '*.md' | while read -r page; do
    grep -oE '\]\([^)#]+' "$page" | sed 's/..//' | grep -v : | while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || fail "${page#"$prefix/"} links to $link, which is not installed"
    done
done

# The project, in a folder whose specs may be changed.
cp "$here"/CMakeLists.txt "$here"/*.c "$here"/*.cu "$here"/*.yaml "$work"
project=$work/build
static=$(grep -q '/ptxgen-static\.cmake$' "$work/paths" && echo ON || echo OFF)
kernels=OFF
for include in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include; do
    [ ! -f "$include/cuda.h" ] || kernels=ON
done
export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
cmake -S "$work" -B "$project" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" -DCONSUMER_STATIC=$static \
    -DCONSUMER_KERNELS=$kernels >"$work/log" 2>&1 && ninja -C "$project" >>"$work/log" || fail 'the project fails' "$work/log"
"$project/consumer_ptxgen"
if [ $static = ON ]; then
    "$project/consumer_static"
    ! ldd "$project/consumer_static" | grep -q libptxgen || fail 'the static consumer needs libptxgen.so'
fi

# A changed spec is compiled again, and no other; a wrong one is shown as a compiler shows its errors.
if [ $kernels = ON ]; then
    header=$project/ptxgen/kernels
    ninja -C "$project" | grep -q 'no work to do' || fail 'a second build has work to do'
    touch -d '1 hour ago' "$work/then"
    find "$project" -name '*.h' -exec touch -r "$work/then" {} +
    find "$work" -maxdepth 1 -name '*.yaml' -exec touch -d '2 hours ago' {} +
    sed -i 's/operator: add/operator: min/' "$work/total.yaml"
    ninja -C "$project" >"$work/log" || fail 'a changed spec does not build' "$work/log"
    [ "$header/total.h" -nt "$work/then" ] || fail 'a changed spec is not compiled again'
    [ "$(stat -c %Y "$header/largest.h")" = "$(stat -c %Y "$work/then")" ] || fail 'a spec that did not change is compiled again'
    sed -i 's/operator: min/operator: plus/' "$work/total.yaml"
    ! ninja -C "$project" >"$work/log" || fail 'a wrong spec is accepted'
    grep -q "^$work/total.yaml:3:[0-9]*: error: " "$work/log" || fail 'the error of a wrong spec is not shown' "$work/log"
    echo "kernels: $(find "$project" -name '*.h' | wc -l) headers"
fi

PKG_CONFIG_PATH=$(dirname "$(grep '/ptxgen\.pc$' "$work/paths")")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086 # lists of words
cc $flags "$here/consumer.c" $(pkg-config --cflags --libs ptxgen) -Wl,-rpath,"$(pkg-config --variable=libdir ptxgen)" -o "$work/consumer"
"$work/consumer"

# The installed executable finds its library by itself, wherever the tree lies.
if [ "$where" != --at ] && [ -x "$prefix/bin/ptxgen" ]; then
    mv "$prefix" "$work/moved"
    "$work/moved/bin/ptxgen" --version
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layering.sh BUILD_DIR - who may call whom, read from the undefined symbols of each folder's library.
#
#   base <- program <- frontend <- lower <- llvmgen <- simt <- dist;  explore on lower;  launch on program, dist on launch;  cache on base;
#   ref and laws on frontend
#   LLVM* from nobody, because llvmgen opens it at run time; cu* only from launch, yaml_* only from frontend's yaml_doc;
#   nobody prints or ends the process.
# Exit status 0 when all hold, 1 with a line for each that does not.
set -eu
build=${1:?usage: layering.sh BUILD_DIR}
failures=0

fail()
{
    echo "layering: $*"
    failures=$((failures + 1))
}

# Symbols that an archive defines, and those that it takes from elsewhere (not from its own objects).
defined() { nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u; }
needed()
{
    defined "$1" >"$work/own"
    nm -u "$1" | awk '$1 == "U" { print $2 }' | sort -u | comm -23 - "$work/own"
}

# forbid FOLDER PATTERN REASON: no needed symbol may match.
forbid()
{
    found=$(grep -xE "$2" "$work/$1.needs" || true)
    [ -z "$found" ] || fail "src/$1 $3: $(echo "$found" | tr '\n' ' ')"
}

# depends FOLDER ALLOWED...: of the project's own symbols, only those of ALLOWED folders are used.
depends()
{
    folder=$1
    shift
    [ -f "$work/$folder.needs" ] || return 0
    for other in $folders; do
        case " $folder $* " in *" $other "*) continue ;; esac
        [ -f "$work/$other.defines" ] || continue
        found=$(comm -12 "$work/$folder.needs" "$work/$other.defines")
        [ -z "$found" ] || fail "src/$folder must not use src/$other: $(echo "$found" | tr '\n' ' ')"
    done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folders='base program frontend lower explore llvmgen simt dist ref cache launch laws'
looked=0
for folder in $folders; do
    archive=$build/libptxgen_$folder.a
    [ -f "$archive" ] || continue
    looked=$((looked + 1))
    needed "$archive" >"$work/$folder.needs"
    defined "$archive" >"$work/$folder.defines"
    forbid "$folder" 'LLVM[A-Z].*' 'calls LLVM'
    [ "$folder" = launch ] || forbid "$folder" 'cu[A-Z].*' 'calls CUDA'
    [ "$folder" = frontend ] || forbid "$folder" 'yaml_(parser|event|token|document|emitter)_.*' 'calls libyaml'
    # The executor's and the prover's forked children end by _exit(); nothing else may.
    [ "$folder" = simt ] || [ "$folder" = laws ] || forbid "$folder" '_exit' 'ends the process'
    forbid "$folder" 'exit|_Exit|quick_exit|abort' 'ends the process'
    forbid "$folder" '(__)?v?printf(_chk)?|puts|putchar|perror' 'prints'
    forbid "$folder" 'stdout|stderr' 'prints'
done
[ "$looked" -gt 0 ] || fail "no libraries in $build"

# Inside the frontend, only yaml_doc opens libyaml.
if [ -f "$build/libptxgen_frontend.a" ]; then
    found=$(nm -A -u "$build/libptxgen_frontend.a" 2>/dev/null |
        awk '$NF ~ /^yaml_(parser|event|token|document|emitter)_/ && $1 !~ /:yaml_doc[a-z_]*\.c\.o:/ { print $1 $NF }')
    [ -z "$found" ] || fail "libyaml outside yaml_doc: $found"
fi

depends base
depends program base
depends frontend base program
depends lower base program frontend
depends explore base program frontend lower
depends llvmgen base program frontend lower
depends simt base program frontend lower llvmgen
depends dist base program frontend lower llvmgen simt launch
depends ref base program frontend
depends laws base program frontend ref
depends cache base
depends launch base program

# The shared library shows the public API alone.
shared=$build/libptxgen.so
if [ -f "$shared" ]; then
    found=$(nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | grep -v '^ptxgen_' || true)
    [ -z "$found" ] || fail "libptxgen.so exports: $(echo "$found" | tr '\n' ' ')"
    readelf -d "$shared" | grep -q 'SONAME.*\[libptxgen\.so\.0\]' || fail 'libptxgen.so has not the name libptxgen.so.0'
fi

[ "$failures" -eq 0 ] || exit 1
echo "layering: $looked libraries in order"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ptxas_all.sh PTXGEN PTXAS [quick|all] - PTX for every spec, those of the benchmarks too, assembles, with no local memory and no spills.
#
# quick: the oldest and two common architectures; all: every one that the project promises.  Exit status 77 (skipped) without
# ptxas, 0 when all assemble cleanly; else 1 with a line per failure.  Last line: "N passed, N failed".
set -u
ptxgen=${1:?usage: ptxas_all.sh PTXGEN PTXAS [quick|all]}
ptxas=${2:-}
if [ ! -x "$ptxas" ]; then
    echo "no ptxas"
    exit 77
fi
case ${3:-all} in
quick) architectures='75 90' ;;
*) architectures='75 80 86 89 90 100 120' ;;
esac
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# assemble SPEC ARCH: prints nothing when all is well.
assemble()
{
    name=$(basename "$1" .yaml)
    ptx=$work/$name.$2.ptx
    "$ptxgen" "$1" "--arch=sm_$2" --emit=ptx -o "$ptx" >"$ptx.log" 2>&1 || {
        echo "$name sm_$2: ptxgen failed: $(head -n 1 "$ptx.log")"
        return 1
    }
    "$ptxas" -v "-arch=sm_$2" -o /dev/null "$ptx" >"$ptx.log" 2>&1 || {
        echo "$name sm_$2: $(grep -m 1 -iE 'error|fatal' "$ptx.log")"
        return 1
    }
    # "N bytes stack frame, N bytes spill stores, N bytes spill loads"
    awk -v what="$name sm_$2" '/bytes stack frame/ && ($1 || $5 || $9) { print what ": " $0; bad = 1 } END { exit bad }' "$ptx.log"
}

passed=0
failed=0
for spec in "$here"/specs/*.yaml "$here"/bench/specs/*.yaml; do
    for architecture in $architectures; do
        if assemble "$spec" "$architecture"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
        rm -f "$work"/*
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

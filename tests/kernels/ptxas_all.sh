#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ptxas_all.sh PTXGEN PTXAS [quick|rest|all] - PTX for every spec, those of the benchmarks too, assembles, with no local memory and no spills.
#
# quick: the oldest architecture and one with bulk copies; all: every one that the project promises; rest: those that quick
# leaves out.  As many at a time as there are processors.  Exit status 77 (skipped) without ptxas, 0 when all assemble cleanly;
# else 1 with a line per failure.  Last line: "N passed, N failed".
set -u
ptxgen=${1:?usage: ptxas_all.sh PTXGEN PTXAS [quick|all]}
ptxas=${2:-}
if [ ! -x "$ptxas" ]; then
    echo "no ptxas"
    exit 77
fi
case ${3:-all} in
quick) architectures='75 90' ;;
rest) architectures='80 86 89 100 120' ;;
*) architectures='75 80 86 89 90 100 120' ;;
esac
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What one process does with PTXGEN PTXAS WORK SPEC ARCHITECTURE: one line, "ok" or what is wrong.
cat >"$work/assemble" <<'END'
what="$(basename "$4" .yaml) sm_$5" ptx=$3/$(basename "$4" .yaml).$5.ptx
if ! "$1" "$4" "--arch=sm_$5" --emit=ptx -o "$ptx" >"$ptx.log" 2>&1; then
    echo "$what: ptxgen failed: $(head -n 1 "$ptx.log")"
elif ! "$2" -v "-arch=sm_$5" -o /dev/null "$ptx" >"$ptx.log" 2>&1; then
    echo "$what: $(grep -m 1 -iE 'error|fatal' "$ptx.log")"
else # "N bytes stack frame, N bytes spill stores, N bytes spill loads"
    awk -v what="$what" '/bytes stack frame/ && ($1 || $5 || $9) { print what ": " $0; bad = 1; exit } END { if (!bad) print "ok" }' \
        "$ptx.log"
fi
rm -f "$ptx" "$ptx.log"
END

for spec in "$here"/specs/*.yaml "$here"/bench/specs/*.yaml; do
    for architecture in $architectures; do
        printf '%s\n%s\n' "$spec" "$architecture"
    done
done | xargs -d '\n' -n 2 -P "$(nproc)" sh "$work/assemble" "$ptxgen" "$ptxas" "$work" >"$work/verdicts"
grep -v '^ok$' "$work/verdicts"
passed=$(grep -c '^ok$' "$work/verdicts")
failed=$(grep -cv '^ok$' "$work/verdicts")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh PTXGEN - compiling and a small run on the host under valgrind: no error, nothing lost.
# Exit status 77 (skipped) without valgrind.  Last line: "N passed, N failed".
set -u
ptxgen=$(realpath "${1:?usage: valgrind.sh PTXGEN}")
command -v valgrind >/dev/null || { echo 'no valgrind'; exit 77; }
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

clean()
{
    if valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect --suppressions="$here/tests/valgrind.supp" \
        "$ptxgen" "$@" >"$work/out" 2>"$work/messages"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "ptxgen $*:"
        head -n 40 "$work/messages"
    fi
}

cd "$work" || exit 1
clean "$here/specs/dot.yaml" --arch=sm_90
clean "$here/specs/welford.yaml" --arch=sm_75
clean run "$here/specs/mss.yaml" --size n=3000 --input x=random:7 --device cpu --verify
clean run "$here/specs/half_sum.yaml" --size n=700 --device cpu --simt=seed:3,race,weak
clean explain "$here/specs/sum.yaml" --json
clean tune "$here/specs/sum.yaml" --size n=300 --device cpu --limit 3 --set strategy=reduce.block --tuning t.yaml --export=t4
printf 'kind: reduse\ninputs: {x: f33[n]}\nmap: x +\n' >broken.yaml
# A refusal, too, gives back what it took: status 1 is what is expected of it.
valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect --suppressions="$here/tests/valgrind.supp" \
    "$ptxgen" broken.yaml >out 2>messages
if [ $? -eq 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && head -n 40 messages; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_expect.sh PTXGEN - every spec says beside itself what becomes of it, in lines `# expect: …` for sm_90:
#     plan NAME     the plan has a case of this strategy
#     ptx TEXT      the PTX contains this
#     run ARGS => TEXT   `ptxgen run SPEC ARGS --device cpu` prints this line
set -u
ptxgen=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

verdict() # STATUS WHAT
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2"
    fi
}

for spec in "$root"/specs/*.yaml; do
    name=$(basename "$spec" .yaml)
    grep '^# expect: ' "$spec" | sed 's/^# expect: //' >"$work/lines"
    [ -s "$work/lines" ]
    verdict $? "$name: no '# expect:' line"
    "$ptxgen" "$spec" --arch=sm_90 --emit=plan -o "$work/plan" 2>/dev/null
    "$ptxgen" "$spec" --arch=sm_90 -o "$work/ptx" 2>/dev/null
    while read -r what rest; do
        case $what in
        plan) grep -qx "    strategy: $rest" "$work/plan" ;;
        ptx) grep -qF -- "$rest" "$work/ptx" ;;
        run)
            # shellcheck disable=SC2086 # a list of words
            "$ptxgen" run "$spec" ${rest%% => *} --device cpu 2>/dev/null </dev/null | grep -qxF -- "${rest#* => }"
            ;;
        *) false ;;
        esac
        verdict $? "$name: expect: $what $rest"
    done <"$work/lines"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

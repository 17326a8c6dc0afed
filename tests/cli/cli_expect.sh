#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_expect.sh PTXGEN - every spec says beside itself what becomes of it, in lines `# expect: …` for sm_90:
#     plan NAME     the plan has a case of this strategy; NAME@TUNABLE=VALUE: with this value
#     ptx TEXT      the PTX contains this
#     run ARGS => TEXT   `ptxgen run SPEC ARGS --device cpu` prints this line; DEVICE names another device
# PTXGEN_TEST_SPECS=N: of one spec in N.
set -u
. "$(dirname "$0")/commands.sh"

number=0
for spec in "$specs"/*.yaml; do
    number=$((number + 1))
    [ $((number % ${PTXGEN_TEST_SPECS:-1})) -eq 0 ] || continue
    name=$(basename "$spec" .yaml)
    grep '^# expect: ' "$spec" | sed 's/^# expect: //' >"$work/lines"
    [ -s "$work/lines" ]
    verdict $? "$name: no '# expect:' line"
    "$ptxgen" "$spec" --arch=sm_90 --emit=plan -o "$work/plan" 2>/dev/null
    "$ptxgen" "$spec" --arch=sm_90 -o "$work/ptx" 2>/dev/null
    while read -r what rest; do
        case $what in
        plan)
            value=${rest#*@}
            [ "$value" != "$rest" ] || value=
            grep -x -A 2 "    strategy: ${rest%@*}" "$work/plan" | grep -q "${value%=*}${value:+: }${value#*=}"
            ;;
        ptx) grep -qF -- "$rest" "$work/ptx" ;;
        run)
            # shellcheck disable=SC2086 # a list of words
            "$ptxgen" run "$spec" ${rest%% => *} --device "${DEVICE:-cpu}" 2>/dev/null </dev/null | grep -qxF -- "${rest#* => }"
            ;;
        *) false ;;
        esac
        verdict $? "$name: expect: $what $rest"
    done <"$work/lines"
done
results

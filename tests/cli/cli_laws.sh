#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_laws.sh PTXGEN - what `ptxgen check` says about operators.
#
# Every spec of tests/laws says beside itself what is found, in lines `# …`:
#     expect: LAW VERDICT   the table has this line (proofs are not expected where there is no prover)
#     note: TEXT            standard output contains this
#     hint: TEXT            a message has this hint
#     absent: TEXT          standard output does not contain this
# Nothing of specs/ is refuted.
set -u
. "$(dirname "$0")/commands.sh"
table_has() { sed 's/^ *//; s/  */ /g; s/: declared$//' "$work/out" | grep -qxF -- "$1"; }

# A prover proves that x + 0 is x in the integers; trials alone cannot.
printf 'kind: reduce\ninputs: {x: "i64[n]"}\noperator: add\noutputs: {r: i64}\n' > "$work/sum.yaml"
"$ptxgen" check "$work/sum.yaml" --cache=off > "$work/out" 2>&1
prover=no
table_has 'identity proved' && prover=yes

for spec in "$here"/../data/laws/*.yaml; do
    name=$(basename "$spec" .yaml)
    for with in default off; do
        if [ $with = off ]; then set -- --prover=off; else set --; fi
        timeout 60 "$ptxgen" check "$spec" --cache=off "$@" > "$work/out" 2> "$work/err" < /dev/null
        status=$?
        want=1
        grep -q '^# expect: .* refuted$' "$spec" || want=0
        [ $status -eq $want ]
        verdict $? "$name ($with): exit status $status instead of $want"
        grep '^# [a-z]*: ' "$spec" | sed 's/^# //' > "$work/lines"
        while read -r what rest; do
            case $what in
            expect:)
                case $with$prover$rest in off*proved*|*no*proved*) continue ;; esac
                table_has "$rest"
                ;;
            note:)
                [ $with$prover = defaultyes ] || continue
                grep -qF -- "$rest" "$work/out"
                ;;
            hint:)
                [ $with$prover = defaultyes ] || continue
                grep -qF -- "hint: $rest" "$work/err"
                ;;
            absent:) ! grep -qF -- "$rest" "$work/out" ;;
            *) continue ;;
            esac
            verdict $? "$name ($with): $what $rest"
        done < "$work/lines"
    done
done

# What begins anew with segments is another operator than what the spec names.
timeout 60 "$ptxgen" check "$specs/sums_by_sorted_key.yaml" --cache=off > "$work/out" 2>&1
verdict $? "sums_by_sorted_key has an error"
table_has 's (add, anew in each segment)' && table_has 'kept (add)'
verdict $? "operators that begin anew: $(cat "$work/out")"

# No right operator is refuted, with trials alone and where proofs are added.
timeout 300 "$ptxgen" check "$specs"/*.yaml --cache=off --prover=off > "$work/out" 2>&1
verdict $? "a right operator is refuted: $(grep -m1 'error' "$work/out")"
right='mss interval_identity scan_fill lssp matrix2x2 polynomial'
for name in $right; do
    timeout 60 "$ptxgen" check "$specs/$name.yaml" --cache=off > "$work/out" 2>&1
    verdict $? "$name is refuted"
    [ $prover = no ] || grep -q '^    associative  proved' "$work/out"
    verdict $? "$name is not proved associative"
done
timeout 60 "$ptxgen" check "$specs/mss.yaml" --cache=off > "$work/out" 2>&1
[ $prover = no ] || grep -q 'associative but for overflow: a = {best' "$work/out"
verdict $? 'mss: no note of the overflow'

# The messages have a place, a code that can be explained, and exist as JSON.
cd "$work" || exit 1
"$ptxgen" check "$here/../data/laws/subtract.yaml" --cache=off > out 2> err
grep -q 'subtract.yaml:8:13: error: the operator is not associative: a = .*(ab)c = .*a(bc) = .*\[PTXG-2401\]' err
verdict $? 'subtract: message'
"$ptxgen" explain PTXG-2401 | grep -q 'not associative'
verdict $? 'PTXG-2401 is explained'
"$ptxgen" check "$here/../data/laws/argmax_no_tie.yaml" --cache=off --json --diagnostics=json > out 2> err
grep -q '"ok": false' out && grep -q '"law": "commutative", "verdict": "refuted", "example": "a = {' out
verdict $? 'JSON of the laws'
grep -q '"code": *"PTXG-2402"' err
verdict $? 'JSON of the messages'

# --no-laws; the same laws elsewhere; verdicts are kept.
"$ptxgen" check "$here/../data/laws/subtract.yaml" --no-laws > out 2> err
verdict $? '--no-laws'
"$ptxgen" "$here/../data/laws/subtract.yaml" --laws --cache=off -o - > out 2> err
[ $? -eq 1 ] && [ ! -s out ]
verdict $? 'compile --laws refuses'
"$ptxgen" "$here/../data/laws/subtract.yaml" -o - > out 2> err
verdict $? 'compile without --laws does not look'
PTXGEN_CACHE=$work/cache "$ptxgen" check "$here/../data/laws/subtract.yaml" > first 2> err1
PTXGEN_CACHE=$work/cache "$ptxgen" check "$here/../data/laws/subtract.yaml" > second 2> err2
cmp -s first second && cmp -s err1 err2
verdict $? 'the second answer is the first'
[ $prover = no ] || [ "$(find cache -type f | wc -l)" -ge 1 ]
verdict $? 'verdicts are kept'

# Commutativity that is proved reaches the plan; what is not evident is not assumed without --laws.
cat > xor.yaml <<'SPEC'
kind: reduce
inputs: {x: "u32[n]"}
operator: {state: u32, identity: 0, combine: "(a | b) - (a & b)"}
outputs: {r: u32}
SPEC
cat > hidden.yaml <<'SPEC'
kind: reduce
inputs: {x: "i32[n]"}
operator: {state: i32, combine: "if a > b then a else b"}
outputs: {r: i32}
SPEC
"$ptxgen" hidden.yaml --emit=problem -o - > out 2> err
! grep -q commutative out
verdict $? 'a comparison is not evidently commutative'
"$ptxgen" hidden.yaml --emit=problem --laws --cache=off -o - > out 2> err
[ $prover = no ] || grep -q 'user, commutative, exact' out
verdict $? '--laws marks it'
"$ptxgen" run hidden.yaml --laws --cache=off --size n=5000 --device cpu --verify > out 2> err < /dev/null
verdict $? '--laws runs right'
"$ptxgen" check xor.yaml --cache=off > out 2> err
[ $prover = no ] || grep -q 'associative  proved$' out
verdict $? 'exclusive or in disguise'

echo "prover: $prover"
results

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_tune.sh PTXGEN - tuning on the host executor, and on the driver that only records: search, checks, journal, files, exports.
. "$(dirname "$0")/commands.sh"
needs python3
PTXGEN_CACHE=off
PTXGEN_TUNING=off
PTXGEN_LIBCUDA=/no/such/library
export PTXGEN_CACHE PTXGEN_TUNING PTXGEN_LIBCUDA
fake=$(dirname "$ptxgen")/tests/libfake_cuda.so
file_has() { grep -q -e "$2" "$1" || complain "$1 lacks: $2"; }
# json FILE EXPRESSION: of the document d, in Python.
json() { python3 -c "import json, sys; d = json.load(open('$1')); sys.exit(0 if ($2) else 1)" 2> /dev/null || complain "not so: $2"; }

cat > sum.yaml << 'EOF'
kind: reduce
inputs: {x: 'f32[n]'}
operator: add
outputs: {sum: f32}
EOF
sed 's/^outputs/determinism: run\noutputs/' sum.yaml > steady.yaml
# Not commutative, whatever it says: what keeps the order is right, what does not is found.
cat > liar.yaml << 'EOF'
kind: reduce
inputs: {x: 'i32[n]'}
operator: {state: i32, identity: -1, combine: 'if b == -1 then a else b', commutative: true}
outputs: {last: i32}
EOF
some="--set strategy=reduce.block,reduce.gather --set threads=64,128 --set items=1,2"

# ---- a search, its files, and going on ----
run tune sum.yaml --size n=3000 --device cpu --limit 6 --tuning=here/t.yaml $some --export=t4 --emit-def rows.def
exits 0; out_has '6 of [0-9]* variants tried'; out_has '1.000x  default'; out_has 'written to here/t.yaml'
file_has here/t.yaml 'sizes: {n: 3000}'; file_has here/t.yaml 'gpu: "host executor"'; file_has here/t.yaml 'variants: 6'
file_has rows.def '^TUNE("reduce\.'; file_has rows.def 'host executor sum n=3000: '
json sum.t4.json 'd["schema_version"] == "1.0.0" and len(d["results"]) == 6 and all(r["invalidity"] == "correct" and r["times"]["runtimes"] for r in d["results"])'
run tune sum.yaml --size n=3000 --device cpu --limit 9 --tuning=here/t.yaml $some --json
exits 0; json out 'd["tried"] == 9 and len(d["results"]) == 9 and d["best"] in [r["id"] for r in d["results"]]'
json out 'all(r["us"] > 0 for r in d["results"]) and d["results"][0]["id"] == "default"'
[ "$(grep -c 'problem:' here/t.yaml)" -eq 1 ] || complain 'the entry was not replaced'
run tune sum.yaml --size n=4000 --device cpu --limit 9 --tuning=here/t.yaml $some --journal=sum.n3000.journal; exits 2; err_has 'journal of another tuning'
run tune sum.yaml --size n=200 --device cpu --limit 3 --tuning=here/t.yaml $some --export=t1; exits 0; exists sum.n200.journal
[ "$(grep -c 'problem:' here/t.yaml)" -eq 2 ] || complain 'the second entry is missing'
json sum.t1.json '[p["Name"] for p in d["ConfigurationSpace"]["TuningParameters"]][:3] == ["strategy", "threads", "items"] and d["Budget"][0]["BudgetValue"] == 3'

# A run that was cut off: a line that is not complete, and a variant that was never finished.
victim=$(grep '^reduce.gather' sum.n3000.journal | tail -1 | cut -f1)
printf '%s\tstarted\t0\t0\t\n%s' "$victim" reduce.gather@thre >> sum.n3000.journal
run tune sum.yaml --size n=3000 --device cpu --limit 10 --tuning=off $some --json
exits 0; json out "[r['outcome'] for r in d['results'] if r['id'] == '$victim'] == ['started'] and d['tried'] == 10"

# ---- a stage; plans of the whole take what was found ----
cat > two.yaml << 'EOF'
fuse: false
inputs: {x: 'f32[n]'}
stages:
  double: {kind: map, outputs: {y: {type: 'f32[n]', value: x * 2}}}
  total: {kind: reduce, map: y, operator: add, outputs: {sum: f32}}
outputs: [sum]
EOF
run tune two.yaml --stage total --size n=3000 --device cpu --limit 4 --tuning=here/two.yaml $some; exits 0; out_has 'written to here/two.yaml'
sed -i 's/variant: .*/variant: "reduce.block@threads=64,items=2"/' here/two.yaml
run two.yaml --tuning=here/two.yaml --emit=plan -o -; exits 0; out_has 'tuned0_block'
run run two.yaml --size n=3000 --device cpu --tuning=here/two.yaml --verify; exits 0

# ---- a whole program: each stage on what it reads there.  The places are no permutation in data of `move` alone. ----
cat > moved.yaml << 'EOF'
fuse: false
inputs: {x: 'f32[n]'}
params: {k: f32}
stages:
  order: {kind: map, outputs: {place: {type: 'i32[n]', value: i32(n - 1 - index(n))}}}
  move: {kind: map, outputs: {y: {type: 'f32[n]', at: place, value: x * k}}}
  change: {kind: reduce, map: y, operator: max, outputs: {top: f32}}
outputs: [y]
iterate: {steps: 3, feedback: {x: y}, until: top < 0}
EOF
run tune moved.yaml --stage move --size n=300 --param k=2 --device cpu --limit 2 --tuning=off; [ "$status" -ne 0 ] || complain 'generated places meet no one'
run tune moved.yaml --size n=300 --param k=2 --device cpu --limit 3 --tuning=moved.t.yaml --set order:threads=64,128 --set change:strategy=reduce.block
exits 0; out_has '# stage move, on what it reads'; out_has 'moved_change on host executor'; out_lacks until
[ "$(grep -c 'name: moved_' moved.t.yaml)" -eq 3 ] || complain 'a stage has no entry'
sed -i '/name: moved_change/,$ s/variant: .*/variant: "reduce.block@threads=64,items=2"/' moved.t.yaml # whichever was the fastest
run moved.yaml --tuning=moved.t.yaml --emit=plan -o -; exits 0; out_has 'moved_change_tuned0_block, threads: 64'
run run moved.yaml --size n=300 --param k=2 --device cpu --tuning=moved.t.yaml --verify; exits 0
run tune moved.yaml --size n=300 --param k=2 --device cpu --limit 2 --tuning=off --json
exits 0; json out 'list(d["stages"]) == ["order", "move", "change"] and d["stages"]["move"]["inputs"] == {"x": "program", "place": "program"} and d["stages"]["move"]["tried"] == 2'
run tune moved.yaml --size n=300 --param k=2 --device cpu --set threads=64; exits 2; err_has 'a tunable is of one stage: --set STAGE:threads=64, of order, move, change'
run tune moved.yaml --size n=300 --param k=2 --device cpu --set moov:threads=64; exits 2; err_has "no stage is called 'moov'; those that run are order, move, change, until; did you mean 'move'"
run run moved.yaml --size n=300 --param k=2 --device cpu --set moev:threads=64; exits 2; err_has "no stage is called 'moev'; those that run are order, move, change, until"; err_has "did you mean 'move'"
# A journal per stage, from which the same command goes on.
run tune moved.yaml --size n=300 --param k=2 --device cpu --limit 3 --tuning=off --journal here/j.journal
exits 0; for stage in order move change; do exists here/j.$stage.journal; out_has "j.$stage.journal"; done; [ ! -e here/j.until.journal ] || complain 'a journal of the condition'
tried=$(cut -f1 here/j.move.journal | sort -u)
run tune moved.yaml --size n=300 --param k=2 --device cpu --limit 3 --tuning=off --journal here/j.journal --json
exits 0; json out 'd["stages"]["move"]["journal"].endswith("here/j.move.journal") and all(x["tried"] == 3 for x in d["stages"].values())'
[ "$(cut -f1 here/j.move.journal | sort -u)" = "$tried" ] || complain 'other variants are tried, not those of the journal'
run tune moved.yaml --size n=301 --param k=2 --device cpu --limit 3 --tuning=off --journal here/j.journal; exits 2; err_has 'here/j.order.journal is the journal of another tuning'
run tune moved.yaml --size n=300 --param k=2 --device cpu --strategy reduce.block; exits 2; err_has '[-][-]strategy is of one stage'
sed 's/steps: 3/steps: 0/' moved.yaml > never.yaml
run tune never.yaml --size n=300 --param k=2 --device cpu; exits 1; err_has 'has no step'
run variants moved.yaml --size n=300 --limit 2 --set change:strategy=reduce.block; exits 0
out_has '# stage order: --variant order:ID'; out_has '# stage move: '; out_has '^reduce.block@'; out_lacks until
run variants moved.yaml --limit 2 --json; exits 0; json out 'list(d["stages"]) == ["order", "move", "change"] and all(s["shown"] == 2 for s in d["stages"].values())'
run variants moved.yaml --set threads=4; exits 2; err_has 'a tunable is of one stage: --set STAGE:threads=4'
run variants moved.yaml --size q=3; exits 2; err_has "no size 'q'"
run moved.yaml --set change:strategy=reduce.block --set change:threads=64 --emit=plan -o -; exits 0; out_has 'moved_change_[a-z]*, threads: 64'; out_lacks 'moved_order_[a-z]*, threads: 64'
run moved.yaml --set nowhere:threads=64 --emit=plan -o -; exits 2; err_has 'no stage is called .nowhere.'
run moved.yaml --set change:threads=65 --emit=plan -o -; exits 2; err_has threads

# ---- what a tuning file does ----
sed -i 's/variant: .*/variant: "reduce.block@threads=64,items=2"/' here/t.yaml
run run sum.yaml --size n=3000 --device cpu --tuning=here/t.yaml --verify --json; exits 0; json out 'd["case"] == "tuned0_block" and d["outputs"]["sum"]["verified"]'
run run sum.yaml --size n=1000 --device cpu --tuning=here/t.yaml --json; exits 0; json out 'd["case"] == "small"'
run run sum.yaml --size n=3000 --device cpu --json; exits 0; json out 'd["case"] == "small"'
run explain sum.yaml --size n=3000 --tuning=here/t.yaml --all; exits 0; out_has 'tuned0_block: reduce.block when 2122 <= n'; out_has 'threads  *64  *tuning file'
run sum.yaml --tuning=here/t.yaml --emit=plan -o -; exits 0; out_has tuned0_block
run sum.yaml --tuning=nowhere.yaml --emit=plan -o -; [ "$status" -ne 0 ] || complain 'a missing file is accepted'; err_has nowhere.yaml

# ---- results are checked ----
run tune steady.yaml --size n=3000 --device cpu --limit 12 --tuning=off $some --json
exits 0; json out 'any(r["outcome"] == "bits" for r in d["results"])'
json out 'next(r for r in d["results"] if r["id"] == d["best"])["outcome"] == "ok"'
run tune liar.yaml --size n=200 --input x=iota --device cpu --limit 40 --tuning=off --set strategy=reduce.block --set threads=64 --set items=1,2 --json
exits 0; json out 'any(r["outcome"] == "wrong" and "differ" in r["why"] for r in d["results"])'
json out 'next(r for r in d["results"] if r["id"] == d["best"])["outcome"] == "ok"'
run tune liar.yaml --size n=30000 --input x=iota --device cpu --limit 3 --tuning=off --journal=liar2.journal; exits 4; err_has 'the default does not work'

# ---- one tree, whatever is measured; a tree that is asked for is another one ----
sed 's/^outputs/determinism: device\noutputs/' sum.yaml > fixed.yaml
run tune fixed.yaml --size n=3000 --device cpu --limit 3 --tuning=fixed.t.yaml; exits 2; err_has 'nothing to tune: determinism: device'
[ ! -e fixed.t.yaml ] || complain 'an entry that does not count was written'
sed 's/f32/i32/g' fixed.yaml > exact.yaml
run tune exact.yaml --size n=300 --device cpu --limit 3 --tuning=off $some; exits 0
run explain fixed.yaml --device cpu --arch=sm_90 --set threads=64; exits 0; out_has 'a tree that is asked for'
run explain fixed.yaml --device cpu --arch=sm_90; exits 0; ! grep -q 'asked for' out || complain 'nothing was asked for'

# ---- usage ----
run tune sum.yaml; exits 2
run tune; exits 2
run tune sum.yaml --size n=30 --device cpu --reference=mine; exits 2
run tune sum.yaml --size n=30 --device cpu --export=t2; exits 2
run tune sum.yaml --size n=30 --device cpu --limit x; exits 2
run tune sum.yaml --size n=30; exits 3; err_has 'no CUDA driver'

# ---- beside a GPU, on a driver that computes nothing: every launch takes the same time ----
if [ -f "$fake" ]; then
    PTXGEN_LIBCUDA=$fake
    run tune sum.yaml --size n=5000 --limit 8 --reference=default --tuning=gpu.yaml --journal=gpu.journal --json
    exits 0; json out 'd["tried"] == 8 and all(r["outcome"] in ("ok", "slow", "same") for r in d["results"])'
    file_has gpu.yaml 'arch: sm_90'
    run tune sum.yaml --size n=5000 --limit 8 --tuning=gpu.yaml --journal=gpu2.journal; exits 4; err_has 'the default does not work'
    run tune two.yaml --size n=5000 --limit 3 --reference=default --tuning=gpu2.yaml --json; exits 0; json out 'list(d["stages"]) == ["double", "total"]'
    [ "$(grep -c 'name: two_' gpu2.yaml)" -eq 2 ] || complain 'a stage has no entry'
    sed -i 's/variant: .*/variant: "reduce.block@threads=64,items=2"/' gpu.yaml
    PTXGEN_TUNING=$work/gpu.yaml
    run bench sum.yaml --size n=5000 --no-verify; exits 0; out_has 'case tuned0_block'
    run explain sum.yaml --size n=5000; exits 0; out_has 'case  *tuned0_block'
    run bench sum.yaml --size n=5000 --no-verify --tuning=off; exits 0; out_has 'case small'
    run bench sum.yaml --size n=5000 --no-verify --set threads=128; exits 0; out_has 'case small'
    echo 'entries: 1' > gpu.yaml
    run bench sum.yaml --size n=5000 --no-verify; [ "$status" -ne 0 ] || complain 'a broken file is accepted'; err_has gpu.yaml
else
    echo 'cli_tune: tuning beside a GPU was not tried: libfake_cuda.so is missing'
fi

# ---- the journal beside the cache, and why variants are out of the race ----
PTXGEN_LIBCUDA=/no/such/library
PTXGEN_TUNING=off
PTXGEN_CACHE=$work/cache run tune liar.yaml --size n=200 --input x=iota --device cpu --limit 40 --set strategy=reduce.block --set threads=64 --set items=1,2
exits 0; out_has "^kept in $work/cache/tune/liar.n200.*.journal: "; out_has '^  [0-9]* wrong: .* values of .last. differ'; out_has '^    as reduce.block@threads=64'
PTXGEN_CACHE=$work/cache run tune liar.yaml --size n=200 --input x=iota --device cpu --limit 41 --set strategy=reduce.block --set threads=64 --set items=1,2 --json
exits 0; json out 'd["tried"] == 41 and d["journal"].startswith("'"$work"'/cache/tune/")'
PTXGEN_CACHE=$work/cache run tune sum.yaml --size n=201 --device cpu --limit 2; exits 0
[ "$(ls cache/tune | wc -l)" -eq 2 ] || complain 'not a journal for each size'
absent sum.n201.journal

echo "$count commands, $failures failures"
[ "$failures" -eq 0 ]

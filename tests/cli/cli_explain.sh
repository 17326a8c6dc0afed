#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_explain.sh PTXGEN - explanations of all kinds, as text and JSON; variants listed, compiled and pinned.
. "$(dirname "$0")/commands.sh"
needs python3
PTXGEN_LIBCUDA=/no/such/library
export PTXGEN_LIBCUDA
# json EXPRESSION: of the document d, in Python.
json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(0 if ($1) else 1)" 2> /dev/null || complain "not so: $1"; }

# ---- explain ----
for spec in sum dot mss row_sum scan_sum segment_sum hotspot2d; do
    run explain "$specs/$spec.yaml" --arch=sm_90 --size n=65536 --json
    exits 0
    json 'd["target"]["gpu"] == "H200" and any(s["status"] == "chosen" for s in d["strategies"]) and d["cases"][0]["kernels"]'
    json 'all(s["why"] for s in d["strategies"] if s["status"] != "chosen")'
done
run explain "$specs/sum.yaml" --arch=sm_90 --size n=2^28
exits 0; [ "$(sed -n 2p out)" = 'case large (reduce.gather) takes n=268435456' ] || complain 'the verdict is not first'
out_has '^predicted 2[34][0-9]\.[0-9]* us, 1\.0[0-9] of the limit, bound by memory'; out_has 'plan 1 launch, 1 pass'; out_has 'reduce.last_block  *it fits'
out_has '^limit 23[34]\.[0-9]* us: memory 231.* reads 1073741824 bytes, writes 4$'; out_lacks 'segreduce'; out_has '8 more do not apply'
[ "$(wc -l < out)" -le 40 ] || complain 'more than 40 lines'
awk 'length > 100 { exit 1 }' out || complain 'a line of more than 100 columns'
out_has 'reduce.gather  *chosen: case .* takes these sizes'; out_has "reduce.block  *not at these sizes: case '[a-z_]*' needs n <= [0-9]* (n = 268435456)"
[ "$(grep -c 'chosen' out)" -eq 1 ] || complain 'more than one strategy is chosen'
run explain "$specs/softmax.yaml" --arch=sm_90 --size m=4096 --size n=16384
exits 0; out_has 'segreduce.resident) takes'; out_has '^plan 1 launch, 1 pass over the arrays$'
run explain "$specs/softmax.yaml" --arch=sm_90 --size m=64 --size n=2^20
exits 0; out_has '^plan 2 launches, 2 passes over the arrays; reads 536870912 bytes, the inputs 2 times, writes'
run explain "$specs/sum.yaml" --arch=sm_90 --size n=2^28 --all
exits 0; out_has 'reduce.last_block .*reduce.gather comes first.* (H200 '; out_has 'segreduce.tile  *it reduces segments\|segreduce.tile  *its '
run explain "$specs/histogram_at.yaml" --arch=sm_90 --size n=2^20
exits 0; out_has "places 'hist': each element writes once, 4 bytes where it says, by an atomic instruction"; out_has 'have tables in each block first: reduce.bins'; out_has 'case few (reduce.bins) takes'; out_has 'plan 2 launches'
out_has 'writes at most'; out_has '^  hist       add: 1 field, commutative, with identity'; out_lacks ' window '
run explain "$specs/embedding.yaml" --arch=sm_90 --size b=99 --size v=99 --size h=9; exits 0; out_lacks '^operators'; out_lacks ' window '
printf 'kind: map\ninputs: {x: "u8[n]"}\noutputs: {y: {type: "u8[n]", at: n - 1 - index(n), value: x}}\n' > byte.yaml
run explain byte.yaml --arch=sm_90 --size n=99; exits 0; out_has 'writes once, 1 byte where it says'; out_has ' window '
run explain "$specs/transpose_at.yaml" --arch=sm_90 --size m=8192 --size n=8192; exits 0; out_lacks "places 'y'"; out_has 'case turned (stencil.multi_write) takes'
# What `contract` would take off, where arithmetic is what takes the time.
grep -v "^contract" "$specs/kmeans_assign.yaml" > rounded.yaml
run explain rounded.yaml --arch=sm_90 --size n=2^20 --size k=64 --size f=16
exits 0; out_has 'bound by arithmetic'; out_has '^`contract: true` in the spec would take 16 of 52 floating-point operations off'
run explain "$specs/kmeans_assign.yaml" --arch=sm_90 --size n=2^20 --size k=64 --size f=16
exits 0; out_lacks 'contract: true'
cat > pairs.yaml <<'END'
kind: reduce
inputs: {x: "f32[n, f]", y: "f32[k, f]"}
over: f
operator: {state: f32, combine: a + b, identity: 0, commutative: true}
map: x * y
outputs: {d: "f32[n, k]"}
END
run explain pairs.yaml --arch=sm_90 --size n=8192 --size k=64 --size f=64
exits 0; out_has '^`contract: true` in the spec would take 1 of 2'
{ echo 'determinism: run'; cat pairs.yaml; } > same.yaml # where it would be refused
run explain same.yaml --arch=sm_90 --size n=8192 --size k=64 --size f=64
exits 0; out_has 'bound by arithmetic'; out_lacks 'contract: true'
# It keeps steps together: a fused operation is as light as two.
cat > steps.yaml <<'END'
contract: true
kind: stencil
inputs: {u: "f32[h, w]"}
params: {c: f32}
iterate: {steps: 8, feedback: {u: o}}
outputs: {o: {type: "f32[h, w]", value: "u + c * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u)"}}
END
run explain steps.yaml --arch=sm_90 --size h=2048 --size w=2048
exits 0; out_has '(stencil.temporal) takes'
run explain "$specs/scan_sum.yaml" --arch=sm_90 --size n=100
exits 0; out_has "scan.block  *chosen: case 'small' takes"; out_has "scan.pipeline  *not at these sizes: case 'small' comes first"
# One of its cases would take them, a later one would not.
run explain "$specs/scan_rows.yaml" --arch=sm_90 --size m=64 --size n=2000; exits 0; out_has "scan.block  *not at these sizes: case 'staged' comes first"
run explain "$specs/sum.yaml" --arch=sm_90 --set strategy=reduce.block --size n=100; exits 0; out_has 'reduce.gather  *it fits, but reduce.block was asked for'
# Scans whose shape follows from the operator: takes NAME 'MAP AND OPERATOR' INPUT OVER OUTPUT VALUE SIZES PATTERN...
takes() {
    printf 'kind: scan\ninputs: {x: "%s"}\nover: %s\n%b\noutputs: {r: {type: "%s", value: "%s"}}\n' "$2" "$3" "$1" "$4" "$5" > shape.yaml
    # shellcheck disable=SC2086
    run explain shape.yaml --arch=sm_90 --gpu=H200 $6
    exits 0; shift 6
    tr '\n' ' ' < out | tr -s ' ' > joined
    for pattern; do grep -q "$pattern" joined || complain "not so: $pattern"; done
}
welford='operator: welford\nmap: x' sum='operator: logsumexp\nmap: x' largest='operator: max\nmap: x'
takes "$welford" 'f32[m, n]' m 'f32[n, m]' s.mean '--size m=2302 --size n=431' 'turned_strips (segscan.strips) takes'
takes "$welford" 'f32[m, n]' m 'f32[n, m]' s.mean '--size m=300 --size n=4000' 'turned (segscan.column) takes'
takes "$largest" 'i32[m, n]' m 'i32[m, n]' s '--size m=383 --size n=2670' 'shared_strips (segscan.strips) takes'
takes "$largest" 'i32[m, n]' m 'i32[m, n]' s '--size m=383 --size n=8000' 'strips (segscan.column) takes'
takes "$largest" 'f16[m, n]' n 'f16[n, m]' s '--size m=4000 --size n=900' 'turned (segscan.column) takes' 'threads 256, items 16'
takes "$sum" 'f32[m, n]' n 'f32[m, n]' 's.max + log(s.sum)' '--size m=767 --size n=79358' '(scan.block) takes' 'items 2, vector 4'
takes "$sum" 'f32[m, n]' n 'f32[m, n]' 's.max + log(s.sum)' '--size m=64 --size n=79358' '(scan.pipeline) takes'
takes "$sum" 'f32[n]' n 'f32[n]' 's.max + log(s.sum)' '--size n=1048575' '(scan.pipeline) takes' 'threads 512, items 5' 'upsweep_warps 8'
takes "$largest" 'i8[m, n]' n 'i8[m, n]' s '--size m=4863 --size n=13788' '(scan.block) takes' 'items 1, vector 16, min_blocks 3' ' 0 local'
takes "$largest" 'f32[m, n]' m 'f32[m, n]' s '--size m=1800 --size n=60000' ' strips (segscan.column) takes' 'min_blocks 8' ' 0 local'
takes "$largest" 'u8[n]' n 'u8[n]' s '--size n=2^27' '(scan.pipeline) takes' 'vector 4' ' 0 local'
# Ranks: 4 bytes to each other rank; a row of 65536 bytes to both sides; 16 steps after an exchange; nothing where nothing is split.
run explain "$specs/sum.yaml" --arch=sm_90 --size n=2^28 --ranks 2,8,16
exits 0; out_has '^sum on several GPUs (H200), split along n$'; out_has '^ *8  *33554432  *peers  *1  *28  *3.70 '; out_has '^ *16  *16777216  *nccl  *1  *60  *15.00 '
run explain "$specs/jacobi2d.yaml" --arch=sm_90 --size m=8192 --size n=16384 --ranks 2 --json
exits 0; json 'd["split"] == "m" and [r["part"] for r in d["scaling"]] == [8192, 4096] and d["scaling"][1]["bytes"] == 131072'
json 'd["scaling"][0]["us"] / 2 < d["scaling"][1]["us"] < d["scaling"][0]["us"] / 2 + 6'
run explain "$specs/scan_sum.yaml" --arch=sm_90 --size n=2^29 --ranks 2 --json; exits 0; json '700 < d["scaling"][1]["us"] < 850'
run explain "$specs/softmax.yaml" --arch=sm_90 --size m=4096 --size n=4096 --ranks 2 --json; exits 0; json 'd["scaling"][1]["exchanges"] == 0'
# Nothing to do is neither faster nor slower.
run explain "$specs/jacobi2d.yaml" --arch=sm_90 --size m=0 --size n=0 --ranks 2; exits 0; out_has ' 0\.00 *- *-$'; out_lacks 'nan'
run explain "$specs/softmax.yaml" --arch=sm_90 --size m=4096 --size n=4096 --ranks 2 --shard n; exits 2; err_has 'split a dimension that is not combined'
# A program: the stages of a step added; a row of 16384 f32 to both sides, a table of means and sizes to each other rank.
run explain "$specs/apps/heat.yaml" --arch=sm_90 --size m=8192 --size n=16384 --ranks 2,16
exits 0; out_has '^heat on several GPUs (H200), split along m; all stages of a step together$'; out_has '^ *2  *4096  *peers  *1  *131072 '; out_has 'about `until` after a step is not counted'
one=$(awk '$1 == 1 { print $7 }' out)
run explain "$specs/apps/heat.yaml" --arch=sm_90 --size m=8192 --size n=16384; awk -v one="$one" '/^All stages/ { d = $8 - one; ok = d < 0.02 && d > -0.02 } END { exit !ok }' out || complain 'one rank is not one GPU'
run explain "$specs/apps/kmeans.yaml" --gpu=H200 --size n=494025 --size f=34 --size k=5 --ranks 2 --json
exits 0; json 'd["split"] == "n" and d["scaling"][1]["part"] == 247013 and d["scaling"][1]["exchanges"] == 1 and d["scaling"][1]["bytes"] == 1360'
run explain "$specs/apps/kmeans.yaml" --gpu=H200 --size n=9 --size f=34 --size k=5 --ranks 2 --shard q; exits 2; err_has 'no dimension called q'
run explain "$specs/apps/radix_sort.yaml" --arch=sm_90 --size n=999 --ranks 2; exits 2; err_has 'radix_sort.yaml:18:15: error: stage split: elements of one rank may belong anywhere'
run explain "$specs/apps/heat.yaml" --arch=sm_90 --size m=9 --ranks 2; exits 2; err_has 'give all of them'
# The stages of a step, added; not without sizes.
run explain "$specs/apps/heat.yaml" --arch=sm_90 --size m=900 --size n=900; exits 0; out_has '^All stages, one after the other: predicted .* a step; .* in a graph'
awk '/^predicted/ { sum += $2 } /^All stages/ { said = $8 } END { exit !(said > 0 && sum - said < 0.03 && said - sum < 0.03) }' out || complain 'the sum is not that of the stages'
out_has '; limit .* us; 2 launches\.$'
between=$(sed -n 's/^Between the stages: \([0-9]*\) bytes.*/\1/p' out)
run explain "$specs/apps/heat.yaml" --arch=sm_90 --size m=900 --size n=900 --json; exits 0
json 'all(abs(d["all"][k] - sum(s["at"][k] for s in d["stages"])) < 1e-2 for k in ("predicted_us", "predicted_graph_us", "launches", "roofline_us", "bytes_read", "bytes_written"))'
json "d['all']['bytes_between'] == $between > 0 and d['all']['repeated'] and d['all']['launches'] == 2"
run explain "$specs/apps/heat.yaml" --arch=sm_90 --json; exits 0; json 'd["all"]["predicted_us"] is None and d["all"]["bytes_between"] is None'
run explain "$specs/apps/heat.yaml" --arch=sm_90; exits 0; grep -q '^All stages' out && complain 'a sum without sizes'
run explain "$specs/sum.yaml" --arch=sm_90 --ranks 2; exits 2; err_has 'give all of them'
for wrong in '' 0 2, x 65537 -2; do run explain "$specs/sum.yaml" --size n=9 --ranks "$wrong"; exits 2; err_has 'as in --ranks 2,4,8'; done
run explain "$specs/sum.yaml" --size n=9 --ranks 2 --html=x.html; exits 2; err_has 'leave out --html'
run explain "$specs/sum.yaml" --arch=sm_90; exits 0; out_has 'reduce.block  *chosen$'; out_has '^no time is predicted: not all sizes'
for n in 2^61 2^62; do
    run explain "$specs/scan_sum.yaml" --gpu=H200 --size n=$n; exits 1; err_has "the shape of 'x' is negative or too large"
done
run explain "$specs/scan_sum.yaml" --arch=sm_90 --size n=2^28
exits 0; out_has 'scan.pipeline'; out_has "degree  *[0-9][0-9]*  *elements per thread; [0-9][0-9]* by Clausen's model"
run explain "$specs/hotspot2d.yaml" --gpu=A100 --size m=1024 --size n=1024 --param steps=3 --json
exits 0; json 'd["arch"] == "sm_80" and d["target"]["source"] == "by its data sheet" and d["at"]["passes"] >= 1'
json 'd["work_per_element"]["floating_point"] > 8 and d["at"]["bytes_per_element"] == 12 and d["at"]["predicted_us"] >= d["at"]["roofline_us"]'
run explain "$specs/sum.yaml" --size n=1000; exits 0; out_has 'on sm_80'; out_has 'A100 (by its data sheet)'
run explain "$specs/sum.yaml"; exits 0; out_has 'per element'; out_lacks '^limit'
run explain "$specs/sum.yaml" --gpu=Voodoo2; exits 2; err_has "unknown GPU 'Voodoo2'"
run explain "$specs/sum.yaml" --device cuda:0 --size n=1000; exits 3
if [ -n "$(command -v ptxas)" ] || [ -x /usr/local/cuda/bin/ptxas ]; then
    run explain "$specs/sum.yaml" --arch=sm_90 --json
    json 'd["resources_from"] == "ptxas" and all(k["registers"] > 8 for c in d["cases"] for k in c["kernels"])'
fi
PATH=/usr/bin:/bin CUDA_HOME=/no run explain "$specs/sum.yaml" --emit=explain; exits 2

# Evidence of measurements stands beside what was measured alone.
run explain "$specs/sum.yaml" --arch=sm_90 --all; exits 0
out_has '^    threads  *1024  *H200 f32 sum'; out_has '^    evict_first  *1  *every element is read once'; out_has '^    smem_transpose  *0  *default'
out_lacks '^    \(min_blocks\|staged\|combine\|over_threads\|max_grid\|bulk\) .*H200'
run explain "$specs/dot.yaml" --arch=sm_90 --all; exits 0; out_has '^    items  *8  *2 is tuned, which does not suit this case'
# The order of the inputs decides the space, unless `space` does.
{ echo 'kind: reduce'; echo 'inputs: {p: "f32[n, f]", c: "f32[k, f]"}'; echo 'over: f'; echo 'map: p * c'; echo 'operator: add'; echo 'outputs: {d: "f32[n, k]"}'; } > order.yaml
run explain order.yaml --all; exits 0; out_has '^space \[n, f, k\] over f, in the order of the inputs: columns.*; space: \[n, k, f\] makes them rows$'; out_has 'segreduce.column  *chosen'
echo 'space: [n, k, f]' >> order.yaml
run explain order.yaml --all; exits 0; out_has '^space \[n, k, f\] over f, as the spec says: rows.*; space: \[f, n, k\] makes them columns$'; out_lacks 'segreduce.column  *chosen'
run run order.yaml --size n=33 --size k=5 --size f=7 --input p=random:1 --input c=random:2 --device cpu --verify; exits 0; out_has 'verified: 165 values'
run explain "$specs/jacobi2d.yaml" --json; json 'd["space"].startswith("space [m, n], in the order of the inputs")'

# ---- variants ----
run variants "$specs/sum.yaml" --arch=sm_90 --json --limit 600
exits 0; json 'd["legal"] > 1000000 and d["shown"] == 600 and len({v["id"] for v in d["variants"] if not v["why_not"]}) == 600'
json 'all(v["id"] == v["strategy"] + "@" + ",".join(f"{k}={x}" for k, x in v["tunables"].items()) for v in d["variants"])'
json 'any(s["strategy"] == "segreduce.offsets" and s["why_not"] for s in d["strategies"])'
json 'sum(s["legal"] for s in d["strategies"]) == d["legal"] and d["strategies"][0]["illegal"] > 0'
run variants "$specs/sum.yaml" --arch=sm_90 --strategy=reduce.block --set threads=1024 --set items=16 --all --limit=all
exits 0; out_has '  no: .*at most 64'
run variants "$specs/row_sum.yaml" --arch=sm_90 --main --set strategy=segreduce.subwarp --set lanes=1 --set items=1,2 --set threads=64,128 --compile --json --limit=all
exits 0; json 'd["failed"] == 0 and len(d["variants"]) == d["legal"] and all(v["compile_ms"] > 0 and v["ptx_bytes"] > 500 for v in d["variants"])'
run variants "$specs/sum.yaml" --size n=2^20 --gpu=H200 --main; exits 0; out_has 'us predicted'; out_has '^[0-9]* variants, of which 100 are shown'
some="--arch=sm_90 --strategy=scan.lookback --main --set threads=256 --set items=3,4 --limit=all --compile --json"
run variants "$specs/scan_sum.yaml" $some; exits 0; cp out whole.json
run variants "$specs/scan_sum.yaml" $some --size n=2^24
exits 0; json '[3 * v["ptx_bytes"] < 2 * w["ptx_bytes"] for v, w in zip(d["variants"], json.load(open("whole.json"))["variants"])].count(True) > len(d["variants"]) // 2'
run variants "$specs/sum.yaml" --limit=0; exits 2
run "$specs/sum.yaml" --set strategy=reduce.cluster -o -; exits 2; err_has 'reduce.block with cluster: 8'
run variants "$specs/sum.yaml" --strategy=reduce.blok; exits 2; err_has "did you mean 'reduce.block'"
run variants "$specs/sum.yaml" --strategy=scan.block; exits 2; err_has 'another kind of problem'
run variants "$specs/sum.yaml" --set thread=4; exits 2; err_has "did you mean 'threads'"
run variants "$specs/sum.yaml" --variant=default; exits 2
run variants; exits 2

# ---- pinning ----
id=reduce.gather@threads=128,items=2,vector=2
run "$specs/sum.yaml" --arch=sm_90 --variant=$id --emit=plan -o -
exits 0; out_has 'tunables: {threads: 128, items: 2, vector: 2,'; out_has 'strategy: reduce.gather'; out_lacks 'strategy: reduce.block'
run run "$specs/sum.yaml" --variant=$id --size n=1000 --input x=random:7 --device cpu --verify; exits 0; out_has verified
run explain "$specs/sum.yaml" --variant=$id; exits 0; out_has 'reduce.gather  *chosen'
run run "$specs/scan_sum.yaml" --size n=300000 --device cpu --verify; exits 0; out_has 'verified: 300001 values agree' # compared in parts
run run "$specs/sum.yaml" --variant=default --size n=100 --device cpu; exits 0
run run "$specs/row_sum.yaml" --set strategy=segreduce.tile --size m=3 --size n=200 --device cpu; exits 1
err_has "compiled for segreduce.tile alone: case 'tile' needs n <= 128 (n = 200); case 'tile_unaligned' needs n <= 128 (n = 200) \[PTXG-5002\]"
run run "$specs/scan_sum.yaml" --arch=sm_90 --set strategy=scan.pipeline --size n=64 --unaligned 1 --device cpu; exits 1
err_has 'needs misalign(x, y) % 16 == 0 (misalign(x, y) = 4)'
{ cat "$specs/scan_sum.yaml"; echo 'assume: {x: {aligned: 16}, y: {aligned: 8}}'; } > aligned.yaml
run run aligned.yaml --size n=64 --device cpu --verify; exits 0; out_has verified
run run aligned.yaml --size n=64 --unaligned 2 --device cpu; exits 1; err_has '`assume` promises that x is aligned to 16 bytes'
run explain PTXG-5002; exits 0; out_has 'variant='
# Old names of strategies and tunables are accepted for one version, and written by their new ones.
run "$specs/scan_sum.yaml" --variant=scan.allpre@threads=256,staged=0 --emit=plan -o -; exits 0; out_has 'scan.resident'; out_has 'smem_transpose: 0'; out_lacks allpre
for old in histogram:reduce.bins_shared scan_rows:segscan.lookback scan_rows:segscan.block; do
    run "$specs/${old%:*}.yaml" --set strategy="${old#*:}" --emit=plan -o -; exits 0; out_lacks "${old#*:}"
done
run "$specs/scan_rows.yaml" --set strategy=segscan.resident -o -; exits 2; err_has 'scan.resident, of rows with across: 1'
run explain "$specs/select.yaml" --arch=sm_90 --set strategy=scan.pipeline; exits 0; out_has 'scan.pipeline  *chosen'
printf 'kind: scan\ninputs: {x: "i32[m, n]"}\nover: n\noutputs: {a: {type: "i32[m, n]", where: x > 3, value: x}}\n' >rows.yaml
run explain rows.yaml --arch=sm_90 --set strategy=scan.pipeline; exits 1; err_has 'as one piece; here they go to rows'
run explain "$specs/gather_sum.yaml" --arch=sm_90 --set strategy=stencil.dynamic; exits 0; out_has 'stencil\.global'
run explain "$specs/gather_sum.yaml" --arch=sm_90 --set strategy=stencil.multi_write; exits 1; err_has 'offsets come at launch'
run "$specs/scan_offsets.yaml" --set strategy=segscan.warp -o -; exits 2; err_has 'scan.block with lanes: 32'
run "$specs/scan_offsets.yaml" --set strategy=scan.block --set lanes=8 -o -; exits 2; err_has 'lanes 32'
run variants "$specs/scan_sum.yaml" --arch=sm_90 --strategy=scan.lookahead --set upsweep=4 --limit=3; exits 0; out_has 'scan.pipeline@.*upsweep_warps=4'; out_lacks 'upsweep_warps=[^4]'
# Strategies that became segreduce.block, by their old names; what the other kind of segment has is refused.
run explain "$specs/row_sum.yaml" --set strategy=segreduce.multi_block; exits 0; out_has 'segreduce.block'
run explain "$specs/segment_sum.yaml" --set strategy=segreduce.offsets_block --set queue=1; exits 0; out_has 'segreduce.block'
run explain "$specs/row_sum.yaml" --set strategy=segreduce.block --set queue=1; exits 2; err_has 'lanes and queue are for segments between offsets'
run explain "$specs/segment_sum.yaml" --set strategy=segreduce.block --set parts=1; exits 2; err_has 'parts is for segments of one size'
run explain "$specs/row_sum.yaml" --set lanes=8; exits 0
run run "$specs/segment_mss.yaml" --device cpu --arch=sm_90 --set parts=0 --size n=100 --size k=40 --verify; exits 0; out_has verified # left to others
run "$specs/row_sum.yaml" --emit=plan -o - --set strategy=segreduce.block --set parts=3; exits 0; out_has 'parts: 3'; out_has 'name: split'; out_lacks 'name: rows'
# Scans by index: tiles of few segments have blocks of their own, unless their order of combination must not depend on timing.
printf 'kind: scan\ninputs: {k: "u8[n]", x: "f32[n]"}\nby: k\nbins: 256\nmap: x\noperator: add\noutputs: {y: "f32[n]"}\n' >cumsum.yaml
run explain cumsum.yaml --arch=sm_90 --size n=100000; exits 0; out_has 'case few_shared (scan.bins) takes'; out_has 'cdiv(n, [0-9]*)'
{ cat cumsum.yaml; echo 'determinism: run'; } >steady.yaml
run explain steady.yaml --arch=sm_90 --size n=100000; exits 0; out_has 'case few (scan.bins) takes'; out_lacks few_shared
run explain steady.yaml --arch=sm_90 --set strategy=scan.bins --set parts=0; exits 2; err_has 'the problem asks for determinism'
run explain cumsum.yaml --arch=sm_90 --set strategy=scan.bins --set parts=3; exits 2; err_has 'a segment has one block'
run explain "$specs/running_count.yaml" --arch=sm_90 --size m=20 --size n=5000 --size k=100; exits 0; out_has 'case few_shared (scan.bins) takes'
run explain "$specs/running_count.yaml" --arch=sm_90 --size m=2000 --size n=5000 --size k=100; exits 0; out_has 'case few (scan.bins) takes'
run explain "$specs/running_count.yaml" --arch=sm_90 --set strategy=scan.bins --size m=2000 --size n=5000 --size k=100; exits 0; out_has 'case few (scan.bins) takes'
run run "$specs/group_sum.yaml" --arch=sm_90 --device cpu --size n=30000 --size k=700 --verify --simt=seed:1,race,uninit,guard; exits 0; out_has verified
# A plan that lists steps lists the buffers that they need.
run "$specs/group_sum.yaml" --arch=sm_90 --emit=plan -o full.plan; exits 0
sed '/buffers:/,/region:/d' full.plan >short.plan
run "$specs/group_sum.yaml" --plan=short.plan -o -; exits 1; err_has 'and the plan lists none'
# Reductions by index: tables of a row where rows are many; as many bins as tables; names of before.
run explain "$specs/row_histogram.yaml" --arch=sm_90 --size m=2000 --size n=4096; exits 0; out_has 'case rows (reduce.bins) takes'; out_has 'plan 1 launch,'
run explain "$specs/row_histogram.yaml" --arch=sm_90 --set parts=1 --size m=2 --size n=5; exits 0; out_has 'case rows_unaligned (reduce.bins) takes'
printf 'kind: reduce\ninputs: {x: "u8[n]"}\nby: x\nmap: 1\noperator: add\nassume: {k: {max: 16}}\noutputs: {s: "i32[k]"}\n' >sixteen.yaml
run run sixteen.yaml --arch=sm_90 --device cpu --size n=30000 --size k=3 --verify --simt=seed:1,race,uninit,guard; exits 0; out_has verified
run explain "$specs/histogram.yaml" --set strategy=reduce.bins_global; exits 2; err_has 'reduce.bins with bins: 0'
run "$specs/sum.yaml" --arch=sm_90 --set combine=foo -o -; exits 2; err_has '5 is called tree_leaders'; err_has '0 is called shuffle'
run "$specs/sum.yaml" --variant=reduce.gather@threads=100 -o -; exits 2
run "$specs/sum.yaml" --variant=nonsense@ -o -; exits 2; err_has "nonsense"
run "$specs/sum.yaml" --variant=reduce.gather@threads -o -; exits 2; err_has 'is no variant'

echo "$count commands, $failures failures"
[ "$failures" -eq 0 ]

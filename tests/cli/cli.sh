#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli.sh PTXGEN - black-box tests of the command line: exit statuses, what goes where, no file that is half written.
. "$(dirname "$0")/commands.sh"

cat > dot.yaml <<'SPEC'
kind: reduce
inputs:
  x: f32[n]
  y: f32[n]
map: x * y
operator: add
outputs:
  dot: f32
SPEC
cat > scale.yaml <<'SPEC'
kind: reduce
inputs: {x: 'i32[n]'}
params: {k: i32, c: {type: i32, value: 5}}
operator: add
outputs: {y: {type: 'i32[n]', value: x * k + c}, s: i32}
SPEC
cat > wrong.yaml <<'SPEC'
kind: reduce
inputs:
  x: f32[n]
operator: ad
output:
  s: f32
SPEC
printf 'kind: [\n' > broken.yaml

# Help and version.
run --help; exits 0; out_has '^usage: ptxgen'; out_has 'explain'; err_empty
run --version; exits 0; out_has '^ptxgen [0-9]'
run; exits 2; out_empty; err_has usage
for c in explain run variants bench tune; do
    run $c; exits 2; out_empty; err_has "error: '$c' takes one spec"
done
run check; exits 2; out_empty; err_has "error: 'check' takes specs"
run compile; exits 2; out_empty; err_has 'error: no spec is named'
for c in compile check explain run schema devices variants bench tune cache reference new help complete; do
    run help $c; exits 0; out_has "^usage: ptxgen $c"; err_empty
    run $c --help; exits 0; out_has "^usage: ptxgen $c"; out_lacks '^usage: .*  '; err_empty
done
run run --help; out_has '--verify'; out_has 'random'
run check --help; if grep -q -e --verify out; then complain 'check has no --verify'; fi

# Usage errors.
run --no-such-option dot.yaml; exits 2; out_empty; err_has 'no option'
run --emti=ptx dot.yaml; exits 2; err_has 'did you mean --emit'
run --emit=pxt dot.yaml; exits 2; err_has 'did you mean ptx'
run dot.yaml --emit; exits 2; err_has 'needs a value'
run dot.yaml other.yaml; exits 2; err_has 'other.yaml'
run dot.yaml --split=yes; exits 2; err_has 'takes no value'
run dot.yaml --set tile; exits 2; err_has 'TUNABLE=VALUE'
run dot.yaml --set no_such=1; exits 2
run dot.yaml --arch=sm_1; exits 2
run dot.yaml --ptx=x; exits 2
run dot.yaml --color=blue; exits 2
run dot.yaml --emit=ptx,plan -o -; exits 2; err_has 'directory'
run dot.yaml --size m=3; exits 2
run schema dot.yaml; exits 2
run reference nothing; exits 2
run run dot.yaml; exits 2; err_has "size 'n'"
run run dot.yaml --size n=1x; exits 2
run run dot.yaml --size n=-1; exits 2
run run dot.yaml --size n=4 --input q=iota; exits 2; err_has "no input 'q'"
run run dot.yaml --size n=4 --input x=iota --input x=iota; exits 2; err_has 'twice'
run run dot.yaml --size n=4 --input x=const:abc --input y=iota; exits 2; err_has abc
run run dot.yaml --size n=4 --device=quantum; exits 2
run run scale.yaml --size n=4; exits 2; err_has "param 'k'"
run run scale.yaml --size n=4 --param k=1.5; exits 2
run run scale.yaml --size n=4 --param k=3000000000; exits 2; err_has 'range'
run tune dot.yaml; exits 2; out_empty
absent dot.ptx

# Wrong specs: located, all of them, and no file.
run wrong.yaml; exits 1; out_empty; err_has 'wrong.yaml:4:11:'; err_has 'wrong.yaml:5:1:'; absent wrong.ptx; absent wrong.json
run broken.yaml -o broken.ptx; exits 1; err_has 'broken.yaml:'; absent broken.ptx
run no-such.yaml; exits 1; err_has 'no-such.yaml'
run wrong.yaml --diagnostics=json; exits 1; err_has '"code"'; err_has '"line"'; err_has '"column"'
run check dot.yaml; exits 0; out_has 'no errors'
{ cat dot.yaml; echo 'strategy: {name: reduce.blok}'; } > pinned.yaml
run pinned.yaml --arch=sm_90; exits 1; err_has "pinned.yaml:.*: error: unknown strategy 'reduce.blok'"
run dot.yaml --arch=sm_90 --set strategy=reduce.blok; exits 2; err_has "unknown strategy 'reduce.blok'"
run check dot.yaml wrong.yaml scale.yaml; exits 1; out_has 'dot.yaml'; out_has 'scale.yaml'; err_has 'wrong.yaml'
run check wrong.yaml --color=always; exits 1
if ! grep -q "$(printf '\033')" err; then complain 'no colour'; fi
run check wrong.yaml --color=auto
if grep -q "$(printf '\033')" err; then complain 'colour in a file'; fi

# Explanations.
run explain PTXG-3002; exits 0; out_has 'PTXG-3002'
run explain PTXG-0000; exits 2
run explain dot.yaml --size n=2^20; exits 0; out_has 'reduce'
run schema; exits 0; out_has '"'

# Products.
run dot.yaml; exits 0; out_empty; exists dot.ptx; exists dot.json
cp dot.ptx first.ptx
run dot.yaml -o -; exits 0; out_has '.version'
cmp -s out first.ptx || complain 'standard output differs from the file'
run dot.yaml; cmp -s dot.ptx first.ptx || complain 'the same input gives other bytes'
run dot.yaml -o other.ptx; exits 0; exists other.ptx; absent other.json
run dot.yaml --emit=ptx --emit=plan,problem,manifest -o products; exits 0
for f in dot.ptx dot.plan dot.problem dot.json; do exists products/$f; done
run dot.yaml --emit=ptx,plan -o other.ptx; exits 2; err_has 'directory'
run dot.yaml --emit=plan -o my.plan; exits 0
run dot.yaml --plan my.plan -o -; exits 0
cmp -s out first.ptx || complain 'the plan read back gives other PTX'
run dot.yaml --plan no-such.plan -o -; exits 1
run dot.yaml --plan my.plan --arch=sm_90; exits 2
run "$specs/column_sum.yaml" --arch=sm_90 --emit=plan -o layout.plan; exits 0
sed -i 's/shift0: 2/shift0: 3/' layout.plan
run "$specs/column_sum.yaml" --plan layout.plan -o -; exits 1; err_has 'no such layout of columns'
run "$specs/scan_channels.yaml" --arch=sm_90 --emit=plan -o layout.plan; exits 0
sed -i 's/shift0: 3/shift0: 2/' layout.plan
run "$specs/scan_channels.yaml" --plan layout.plan -o -; exits 1; err_has 'without look-back'
run dot.yaml --split -o split/; exits 0
ls split | grep -q '^dot\..*\.ptx$' || complain 'no PTX per case'
run dot.yaml -o no/such/directory/dot.ptx; exits 1; err_has 'cannot write'
ls -A | grep -q 'XXXXXX\|ptx\.' && complain 'a temporary file is left'

# Running.
host() { run run "$@" --device cpu; }
host dot.yaml --size n=1000 --verify; exits 0; out_has '^dot = '; out_has verified; err_empty
[ "$(head -n 1 out)" = 'random data, as no --input is given: x, y = random:1' ] || complain 'the first line does not say that the data is random'
host dot.yaml --size n=8 --json; exits 0; out_has '"inputs_given": false, "inputs": {"x": "random:1", "y": "random:1"}'
host dot.yaml --size n=8 --input x=iota --input y=iota --json; exits 0; out_has '"inputs_given": true, "inputs": {"x": "iota", "y": "iota"}'
host dot.yaml --size n=8 --input x=iota; exits 2; out_empty; err_has "dot.yaml: the input 'y' has no data: give --input y=FILE.npy"
host dot.yaml --size n=1e3 --input x=iota --input y=const:2; exits 0; out_has '^dot = 999000$'; err_empty
host dot.yaml --size n=1e12; exits 3; err_has 'not enough memory for .x.'; out_empty
host dot.yaml --size n=0 --verify; exits 0; out_has '^dot = 0$'
host dot.yaml --size n=1Ki --input x=random:7 --input y=random:8 --json --verify; exits 0; out_has '"verified": true'; out_has '"n": 1024'
cp out first
host dot.yaml --size n=1Ki --input x=random:7 --input y=random:8 --json --verify; cmp -s out first || complain 'other bytes on the second run'
host dot.yaml --size n=777 --unaligned 1 --simt=seed:3,race --verify; exits 0; out_has verified
host dot.yaml --size n=7 --simt=no_such_mode; exits 2
host scale.yaml --size n=3 --input x=iota --param k=10; exits 0; out_has '\[5, 15, 25\]'; out_has '^s = 3$'
host scale.yaml --size n=1000 --input x=iota --param k=1; exits 0; out_has 'max 1004'
host scale.yaml --size n=3 --input x=iota --param k=1 --output y=- ; exits 0; out_has '\[5, 6, 7\]'

# Files in and out.
host scale.yaml --size n=4 --input x=iota --param k=2 --output y=y.npy; exits 0; exists y.npy
if grep -q '^y' out; then complain 'an output that went to a file is printed'; fi
host scale.yaml --input x=y.npy --param k=1 --param c=0; exits 0; out_has '\[5, 7, 9, 11\]'; out_has '^s = 32$'
host scale.yaml --size n=5 --input x=y.npy --param k=1; exits 1; err_has 'is 4, but n is already 5'
host dot.yaml --input x=y.npy --input y=iota; exits 1; err_has 'spec says f32'
host dot.yaml --input x=no-such.npy --input y=iota; exits 1; err_has 'no-such.npy'
host dot.yaml --input x=dot.yaml --input y=iota; exits 1; err_has 'not an .npy file'
head -c 130 y.npy > cut.npy
host scale.yaml --input x=cut.npy --param k=1; exits 1; err_has 'shorter'
PTXGEN_LIBCUDA=$work/no-such-driver run run dot.yaml --size n=4 --device cuda; exits 3
PTXGEN_LIBCUDA=$work/no-such-driver run devices; exits 0; out_has '^cpu'

[ -c /dev/full ] && {
    "$ptxgen" --help > /dev/full 2> err
    status=$?; command='ptxgen --help > /dev/full'; exits 1; err_has 'cannot write'
}

# What `assume` promises is checked by every launch; so are sizes that the program was made for.
cat > assume.yaml <<'SPEC'
kind: reduce
inputs: {x: 'i32[m, n]'}
operator: add
over: n
assume: {n: {equals: 64}, m: {min: 2, max: 9, multiple_of: 3}}
outputs: {s: 'i32[m]'}
SPEC
run run assume.yaml --size m=6 --size n=64 --device cpu --verify; exits 0; out_has 'verified'

# An output that is shorter than the space is written where it has the point, and nowhere else.
for kind in scan reduce; do
    printf 'kind: %s\ninputs: {x: "f32[m, n]"}\nover: n\noperator: add\noutputs: {r: "f32[m]", y: {type: "f32[m, n-1]", value: x}}\n' $kind > shorter.yaml
    run run shorter.yaml --size m=3 --size n=70 --device cpu --verify; exits 0; out_has 'verified'
done
printf 'kind: stencil\ninputs: {x: "f32[n]"}\noutputs: {y: {type: "f32[n-1]", value: "x[1] - x"}}\n' > shorter.yaml
run run shorter.yaml --size n=1000 --device cpu --verify; exits 0; out_has 'verified'
run run assume.yaml --size m=6 --size n=65 --device cpu; exits 1; out_empty; err_has '`assume` promises that n is equal to 64'
for m in 0 7 12; do
    run run assume.yaml --size m=$m --size n=64 --device cpu; exits 1
    err_has '`assume` promises that m is at least 2, at most 9, a multiple of 3'
done
run assume.yaml --emit=manifest -o -; exits 0; out_has 'promises that n is equal to 64'
run assume.yaml --emit=header -o -; exits 0; out_has 'promises that m is at least 2'
printf 'kind: reduce\ninputs: {x: "i32[n]", t: "f32[k]"}\nmap: at(t, x)\noperator: add\noutputs: {r: f32}\n' > places.yaml
run run places.yaml --size n=100 --size k=0 --device cpu; exits 1; out_empty; err_has 'places.yaml: error: at() reads an array and needs that k is at least 1'
run run places.yaml --size n=0 --size k=1 --device cpu --verify; exits 0; out_has 'verified'
# With `contract`, an operator's products are not rounded before a sum takes them: (1 + 2^-12)^2 - 1 keeps 2^-24.
cat > fused.yaml << 'EOF'
kind: reduce
contract: true
inputs: {x: "f32[n]"}
map: {p: x, s: x}
operator: {state: {p: f32, s: f32}, combine: {p: a.p * b.p, s: a.p * b.p - 1.0}}
outputs: {p: {type: f32, value: r.p}, s: {type: f32, value: r.s}}
EOF
host fused.yaml --size n=2 --input x=const:1.000244140625 --verify; exits 0; out_has '^s = 0.00048834'; out_has 'verified'
sed 's/contract: true/contract: false/' fused.yaml > rounded.yaml
host rounded.yaml --size n=2 --input x=const:1.000244140625 --verify; exits 0; out_has '^s = 0.00048828'; out_has 'verified'
run assume.yaml --emit=plan -o assume.plan; exits 0
sed -i '/^checks:/,/^cases:/{/^cases:/!d}' assume.plan
run run assume.yaml --plan assume.plan --size m=6 --size n=65 --device cpu; exits 1; err_has 'promises that n'
run dot.yaml --size n=512 --emit=header -o -; exits 0; out_has 'this was compiled for n = 512 alone'

# Pictures: what reads and writes what, the loop dashed, and the condition; of a spec without stages, too.
arrow() { grep -q "^    $1 -> $2;\$" out || complain "no arrow from $1 to $2"; }
dashed() { grep -q "^    \"array $1\" -> \"array $2\" \[style=dashed" out || complain "no dashed arrow from $1 to $2"; }
cat > until.yaml <<'SPEC'
fuse: false
inputs: {x: "f32[n]"}
params: {steps: i32}
stages:
  until: {kind: map, outputs: {y: {type: "f32[n]", value: x}}}
  fold: {kind: reduce, map: y, operator: max, outputs: {z: {type: "f32[n]", value: x}, big: {type: f32, value: r}}}
outputs: [z]
iterate: {steps: steps, feedback: {x: z}, until: big < 1.0}
SPEC
run until.yaml --emit=dot -o -; exits 0; err_empty
arrow '"array x"' '"stage until"'; arrow '"stage until"' '"array y"'; arrow '"array y"' '"stage fold"'
arrow '"stage fold"' '"array big"'; arrow '"array big"' '"until"'; dashed z x
out_has 'label="y\\nf32\[n\]"'; out_has 'label="until\\n(big < 1.0)"'; out_has 'label="until, at most steps times"'
[ "$(grep -c 'ptxgen_' out)" -eq 0 ] || complain 'arrays of the condition are drawn'
printf 'kind: stencil\ninputs: {u: "f32[n]"}\noutputs: {v: {type: "f32[n]", value: "u[1] + u[-1]"}}\niterate: {steps: 7, feedback: {u: v}}\n' > one.yaml
run one.yaml --emit=dot; exits 0; cp one.dot out
arrow '"array u"' '"stage one"'; arrow '"stage one"' '"array v"'; dashed v u; out_has 'label="one, 7 times"'

# One stage, as a spec of its own.
run run until.yaml --stage fold --size n=1000 --device cpu --verify; exits 0; out_has 'verified'; out_has 'big ='
run explain until.yaml --stage fold --size n=1000 --html=fold.html; exits 0; exists fold.html
run until.yaml --stage fol --emit=plan -o -; exits 2; err_has 'the stages of until.yaml that run are until, fold, until_'
run one.yaml --stage fold --emit=plan -o -; exits 2; err_has 'one.yaml has no stages'
# Those that are part of others are specs of their own, too: without what is part of them in turn.
printf 'inputs: {x: "f32[n]"}\nstages:\n  half: {kind: map, outputs: {h: {type: "f32[n]", value: x / 2}}}\n  square: {kind: map, outputs: {q: {type: "f32[n]", value: h * h}}}\n  all: {kind: reduce, map: q, operator: add, outputs: {s: f32}}\noutputs: [s]\n' > fused.yaml
run fused.yaml --stage square --emit=problem -o -; exits 0; out_has '^input h: '; out_has 'value = (h \* h)'; err_has 'note: in the program, stage square is part of all'
run run fused.yaml --stage half --size n=1000 --device cpu --verify; exits 0; out_has 'verified'
run fused.yaml --stage sqare --emit=plan -o -; exits 2; err_has 'that run are all; part of these are half, square; did you mean .square'
run variants until.yaml --limit 2; exits 0; out_has '^# stage until: '; out_has '^# stage fold: '; out_lacks '# stage until_'
run explain until.yaml --html=whole.html --size n=9; exits 0; exists whole.html

# Each output has its own counts: those of its stage, in each step.
sed -i 's/outputs: \[z\]/outputs: [z, big]/' until.yaml
run run until.yaml --size n=10 --param steps=3 --input x=const:1.0 --device cpu --verify --json; exits 0
out_has '"z": {.*"compared": 30,.*"big": {.*"compared": 3,.*"all_stages": {"verified": true, "compared": 66,'

# `step` of a single loop makes it a program; a param of this name does not.
printf 'kind: map\ninputs: {x: "i64[n]"}\noutputs: {y: {type: "i64[n]", value: x * 2 + step}}\niterate: {steps: 4, feedback: {x: y}}\n' > one.yaml
run run one.yaml --size n=3 --input x=const:1 --device cpu --verify; exits 0; out_has 'y: i64\[3\] = \[27, 27, 27\]'
sed -i 's/^inputs/params: {step: i64}\ninputs/' one.yaml
run run one.yaml --size n=3 --param step=1 --input x=const:1 --device cpu; exits 0; out_has 'y: i64\[3\] = \[31, 31, 31\]'

# A file per case of each stage.
sed 's/until: {kind: map/halve: {kind: map/' until.yaml > halves.yaml
run halves.yaml --split --emit=ptx -o stages/; exits 0; run halves.yaml --emit=ptx; exits 0
ls stages/halves.halve.*.ptx stages/halves.fold.*.ptx stages/halves.until.global.ptx > /dev/null 2>&1 || complain 'not a file per case of each stage'
[ "$(cat stages/*.ptx | grep -c '^.visible .entry')" -eq "$(grep -c '^.visible .entry' halves.ptx)" ] || complain 'not each kernel in one file'

echo "cli: $count commands, $failures failures"
[ "$failures" -eq 0 ]

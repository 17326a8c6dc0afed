#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_help.sh PTXGEN - what helps to find the way: mistyped commands, order of words, standard input, new specs, completion.
. "$(dirname "$0")/commands.sh"
PTXGEN_LIBCUDA=/no/such/library
PTXGEN_CACHE=off
export PTXGEN_LIBCUDA PTXGEN_CACHE
sum=$specs/sum.yaml

# Words that are no command, and no file: the message names them.
run frobnicate; exits 2; out_empty; err_has "'frobnicate' is neither a command nor a file"; err_lacks '<string>'
run chekc "$sum" --verify; exits 2; err_has "did you mean 'check'"
run no-such.yaml; exits 1; err_has 'no-such.yaml: error: cannot be read: No such file'; err_lacks '<string>'
run run no/such; exits 1; err_has 'no/such: error: cannot be read: '; err_lacks '<string>'
cp "$sum" spec; run spec --emit=plan -o -; exits 0; out_has '^ptxgen_plan'
run help; exits 0; out_has 'commands:'
run help run; exits 0; out_has '--verify'
run help rnu; exits 2; err_has "did you mean 'run'"
run --size n=8 --device cpu run "$sum" --input=x=iota; exits 0; out_has 'sum = 28'
run --json help; exits 2
run explain 2207; exits 0; cp out numbered
run explain PTXG-2207; exits 0; cmp -s out numbered || complain 'the number alone gives another text'
run explain ptxg-2207; exits 0
run explain 9998; exits 2; err_has 'PTXG-9998'

# A spec from standard input, also where it is read by several threads.
piped() { "$ptxgen" "$@" < "$sum" > out 2> err; status=$?; command="ptxgen $* < sum.yaml"; count=$((count + 1)); }
piped - --emit=plan -o -; exits 0; out_has '^problem: stdin'
piped run - --size n=8 --input x=iota --device cpu; exits 0; out_has 'sum = 28'
piped variants - --limit 3 --compile --arch=sm_90 --size n=1e6; exits 0; out_has variants
command='ptxgen check - < wrong'; echo 'kind: nothing' | "$ptxgen" check - > out 2> err; status=$?; exits 1; err_has '^stdin:1:7: error'

# Several products never make a directory that is called like a file.
run "$sum" --emit=ptx,header -o out.ptx; exits 2; absent out.ptx; err_has 'DIRECTORY/'
run "$sum" --emit=ptx,header -o ./products; exits 0; exists products/sum.h
run "$sum" --emit=ptx,header -o v1.2/; exits 0; exists v1.2/sum.ptx
run "$sum" --split -o sum.ptx; exits 2; absent sum.ptx

# Without a driver: where else it can be run.  A cache that cannot be used is told once.
run run "$sum" --size n=8 --device cuda; exits 3; err_has '--device cpu'
run tune "$sum" --size n=8; exits 3; err_has '--device cpu'
PTXGEN_CACHE=/dev/null/cache run check "$specs/mss.yaml" "$sum" --prover=off; exits 0
[ "$(grep -c '/dev/null/cache' err)" -eq 1 ] || complain 'an unusable cache is not told once'
PTXGEN_CACHE=$work/no/such run check "$sum" --prover=off; exits 0; err_empty
PTXGEN_CACHE=off

# GPUs by names as people write them; one that is not known lists those that are.
run explain "$sum" --gpu=H100PCIe --size n=2^20; exits 0; out_has 'H100 PCIe'
run explain "$sum" --gpu=rtx4090 --size n=2^20; exits 0; out_has 'RTX 4090'
run explain "$sum" --gpu=H1000 --size n=2^20; exits 2; err_has 'known are .*A100.*RTX 5090'
run variants "$sum" --gpu=foo; exits 2; err_has 'known are .*A100'

# New specs compile, run, and give no cause for a warning; a file that is there is not replaced.
for kind in reduce scan stencil map stages; do
    run new $kind -o $kind.yaml; exits 0; out_empty; exists $kind.yaml
    run new $kind; exits 0; cmp -s out $kind.yaml || complain 'the file differs from standard output'
    run check $kind.yaml --prover=off; exits 0; err_empty
    run run $kind.yaml --device cpu --size n=70 "--size=$(case $kind in st*) echo m ;; *) echo n ;; esac)=70" --verify; exits 0; out_has verified
done
run new scan -o scan.yaml; exits 2; err_has 'exists'
run new stencl; exits 2; err_has "did you mean 'stencil'"

# Completion: what the program offers, and the same through the shells that there are.
offers() { wanted=$1; shift; run complete -- "$@"; [ "$(cut -f1 out | tr '\n' ' ')" = "$wanted" ] || complain "offers '$(cut -f1 out | tr '\n' ' ')' instead of '$wanted'"; }
offers 'run ' ru
offers '--verify --version ' run x.yaml --ver
offers '--emit=plan ' x.yaml --emit=pl
offers '--emit=ptx,plan ' --emit=ptx,pl
offers 'plan ' x.yaml --emit pl
offers '' run --size n
offers 'cpu cuda ' --device cpu run --device c
offers 'path stats clear ' cache ''
offers 'scan stencil stages ' new s
offers 'explain ' help exp
offers '' run x.ya
completions=$here/../../completions
PATH=$(dirname "$ptxgen"):$PATH
shell() { "$@" > out 2> err; status=$?; command=$1; count=$((count + 1)); exits 0; [ "$(tr -s '\n' ' ' < out)" = 'run --verify --version plan clear ' ] || complain "offers '$(tr '\n' ' ' < out)'"; }
missing=
for name in bash zsh fish; do command -v $name > /dev/null || missing="$missing $name"; done
case $missing in *bash*) ;; *)
    shell bash --norc -c ". '$completions/ptxgen.bash'; compopt() { :; }
        try() { COMP_LINE=\$1 COMP_POINT=\${#1}; _ptxgen; printf '%s\n' \"\${COMPREPLY[@]}\"; }
        try 'ptxgen ru'; try 'ptxgen run --ver'; try 'ptxgen x.yaml --emit=pl'; try 'ptxgen cache c'" ;;
esac
case $missing in *zsh*) ;; *)
    shell zsh -fc "compadd() { eval \"print -l -- \\\${\${@[-1]}}\"; }; compset() { :; }; _files() { :; }
        try() { words=(\"\$@\"); CURRENT=\$#words; . '$completions/_ptxgen' | sed 's/^--emit=//'; }
        try ptxgen ru; try ptxgen run --ver; try ptxgen x.yaml --emit=pl; try ptxgen cache c" ;;
esac
case $missing in *fish*) ;; *)
    shell fish --no-config -c ". '$completions/ptxgen.fish'
        for line in 'ptxgen ru' 'ptxgen run --ver' 'ptxgen x.yaml --emit=pl' 'ptxgen cache c'
            complete -C \$line | string replace -r '\t.*' '' | string replace -r '^--emit=' ''
        end; true" ;;
esac
[ -z "$missing" ] || echo "cli_help: the completions of$missing were not tried: these shells are missing"

echo "cli_help: $count commands, $failures failures"
[ "$failures" -eq 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_doors.sh PTXGEN - what comes from outside through files and options: no end, no permission, links, pipes, limits.
. "$(dirname "$0")/commands.sh"
needs mkfifo timeout ldd

sanitized() { ldd "$ptxgen" | grep -q libasan; }
limit() { sanitized || ulimit -v "$1"; }
unset GLIBC_TUNABLES # what they reserve counts
PTXGEN_LIBCUDA=/no/such/library
export PTXGEN_LIBCUDA

cat > sum.yaml <<'SPEC'
kind: reduce
inputs: {x: 'f32[n]'}
operator: add
outputs: {s: f32}
SPEC
# Commands that once did not end are given time and memory.
bounded()
{
    (limit 4000000; exec timeout 20 "$ptxgen" "$@") > out 2> err < /dev/null
    status=$?
    command="ptxgen $*"
    count=$((count + 1))
}

# Inputs without an end.
bounded run sum.yaml --device cpu --input x=/dev/zero; exits 1; err_has 'not an .npy file'
mkfifo pipe.npy
{ printf '\223NUMPY\001\000\066\000'; printf "%-53s\n" "{'descr': '<f4', 'fortran_order': False,'shape':(3,)}"; cat /dev/zero; } > pipe.npy &
writer=$!
bounded run sum.yaml --device cpu --input x=pipe.npy; exits 0; out_has 's = 0'
kill $writer 2> /dev/null
{ printf '\223NUMPY\002\000\377\377\377\377'; cat /dev/zero; } > pipe.npy &
writer=$!
bounded run sum.yaml --device cpu --input x=pipe.npy; exits 1; err_has 'header is too long'
kill $writer 2> /dev/null
{ printf '\223NUMPY\001\000\066\000'; printf "%-53s\n" "{'descr':'<f4','fortran_order':False,'shape':(1<<40,)}"; } > huge.npy
bounded run sum.yaml --device cpu --input x=huge.npy; exits 1; err_has 'tuple'
{ printf '\223NUMPY\001\000\106\000'; printf "%-69s\n" "{'descr':'<f4','fortran_order':False,'shape':(1099511627776,)}"; } > huge.npy
bounded run sum.yaml --device cpu --input x=huge.npy; exits 1; err_has 'do not fit memory'
bounded run sum.yaml --device cpu --size n=5 --input x=huge.npy; exits 1; err_has 'n is already 5'

bounded /dev/zero -o -; exits 1; err_has 'File too large'
bounded sum.yaml --plan=/dev/zero -o -; exits 1; err_has 'File too large'
bounded sum.yaml --tuning=/dev/zero -o -; exits 1; err_has 'File too large'

# A limit that is too low for LLVM is told, and does not end the process.
if sanitized; then
    echo "cli_doors: AddressSanitizer reserves more memory than any limit leaves: compiling under a limit is not tried"
else
    (limit 250000; exec "$ptxgen" sum.yaml -o -) > out 2> err < /dev/null
    status=$?; command='ulimit -v 250000; ptxgen sum.yaml'; count=$((count + 1)); exits 3; out_empty; err_has 'PTXG-4003'
    (limit 165000; exec "$ptxgen" sum.yaml -o -) > out 2> err < /dev/null
    status=$?; command='ulimit -v 165000; ptxgen sum.yaml'; count=$((count + 1)); exits 1; out_empty; err_has 'PTXG-4004'
fi

# No array has fewer elements than none.
cat > offsets.yaml <<'SPEC'
kind: reduce
inputs: {x: 'f32[n]', off: 'u32[k]'}
segments: {offsets: off}
operator: add
outputs: {sum: 'f32[k-1]'}
SPEC
run run offsets.yaml --device cpu --size n=5 --size k=0; exits 1; err_has 'PTXG-5002'

# Two elements go to one place: the first launch says so, and the size that only the output has is asked for.
cat > twice.yaml <<'SPEC'
kind: map
inputs: {x: 'i32[n]'}
outputs: {y: {type: 'i32[k]', at: x / 2, value: x}}
SPEC
run run twice.yaml --device cpu --size n=4 --size k=4 --input x=iota --verify; exits 1; err_has "to place .0. of 'y', where the element"; err_has 'hint: an output with `at` says how elements meet: combine: add'
cat > twice2.yaml <<'SPEC'
kind: map
inputs: {x: 'i32[m, n]'}
outputs: {y: {type: 'i32[m, n]', at: [index(m), index(n) / 2], value: x}}
SPEC
run run twice2.yaml --device cpu --size m=1 --size n=4 --simt=seed:0; exits 1; err_has "writes the element .0, 1. to place .0, 0. of 'y'"
run run twice2.yaml --device cpu --size m=1 --size n=4 --simt=seed:0,guard; exits 1; err_has "to place .0, 0. of 'y'"
run run twice.yaml --device cpu --size n=4 --input x=iota; exits 2; err_has "the size 'k' is not known"

# A file that is replaced keeps its permissions, and a link stays one.
printf old > private.ptx
chmod 600 private.ptx
run sum.yaml -o private.ptx; exits 0
[ "$(stat -c %a private.ptx)" = 600 ] || complain "the mode became $(stat -c %a private.ptx)"
grep -q entry private.ptx || complain 'nothing was written'
mkdir elsewhere
printf old > elsewhere/target.ptx
ln -s elsewhere/target.ptx link.ptx
run sum.yaml -o link.ptx; exits 0
[ -L link.ptx ] || complain 'the link is gone'
grep -q entry elsewhere/target.ptx || complain 'the target of the link was not written'
ln -s elsewhere/none.ptx dangling.ptx
run sum.yaml -o dangling.ptx; exits 0
[ -L dangling.ptx ] && grep -q entry elsewhere/none.ptx || complain 'the target of a link to nothing was not written'
[ "$(ls elsewhere | wc -l)" -eq 2 ] || complain "left over: $(ls elsewhere)"
(umask 027; "$ptxgen" sum.yaml -o fresh.ptx)
[ "$(stat -c %a fresh.ptx)" = 640 ] || complain "a new file has mode $(stat -c %a fresh.ptx)"

# Options that name what is not there are errors, and wrong data is: exit status 1.
printf 'ptxgen_tuning: 1\nentries: 3\n' > bad.tuning
printf 'ptxgen_plan: 2\ncases: 3\n' > bad.plan
run sum.yaml --tuning=bad.tuning --emit=plan -o -; exits 1; err_has 'bad.tuning:1:'
run sum.yaml --plan=bad.plan --emit=plan -o -; exits 1; err_has 'bad.plan:'
cat > power.yaml <<'SPEC'
kind: reduce
inputs: {x: 'f32[n]'}
map: sin(x)
operator: add
outputs: {s: f32}
SPEC
run power.yaml --math-library=no-such.bc -o -; exits 1; out_empty; err_has 'no-such.bc'
run power.yaml --math-library=sum.yaml -o -; exits 1; out_empty; err_has 'bitcode'
run check sum.yaml --prover=/no/such/prover.so; exits 1; err_has '/no/such/prover.so'
run check sum.yaml --prover=off; exits 0
run sum.yaml --laws --prover=/no/such/prover.so --emit=plan -o -; exits 1; err_has '/no/such/prover.so'

# Names.
{ printf 'name: '; head -c 5000 /dev/zero | tr '\0' a; echo; cat sum.yaml; } > long.yaml
run long.yaml -o -; exits 1; out_empty; err_has 'name'
# Arguments of a header: words and types of C and C++, what belongs to the compiler, macros, and what renaming would give.
cat > words.yaml <<'SPEC'
kind: reduce
inputs: {int: "f32[n]", int_: "f32[n]", _Bool: "f32[n]", I: "f32[n]"}
params: {char8_t: f32, uint8_t: f32, a__b: f32}
map: int + int_ + _Bool + I + char8_t + uint8_t + a__b
operator: add
outputs: {s: f32}
SPEC
run words.yaml --emit=header -o words.h; exits 0
{
    printf '#include <complex.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n'
    printf 'typedef int words_program, CUresult; typedef void *CUstream;\n'
    sed -n '/^static inline CUresult words_launch(/,/;$/p; /here ends/q' words.h
} > words.c
grep -q 'words_launch' words.c || complain 'no function to launch'
for compiler in 'cc -std=c99 -Wall -Wno-unused-function' 'cc -std=c2x -Wno-unused-function' 'c++ -std=c++20 -x c++'; do
    sed 's/^#include <complex.h>//' words.c > words1.c
    case $compiler in c++*) source=words1.c ;; *) source=words.c ;; esac
    command -v "${compiler%% *}" > /dev/null || { echo "cli_doors: names were not tried with $compiler: it is missing"; continue; }
    $compiler -fsyntax-only "$source" > out 2> err || complain "$compiler refuses the names"
done
[ "$(grep -oE 'float \*?[A-Za-z0-9_]+' words.c | sort -u | wc -l)" -eq 8 ] || complain 'two arguments have one name'


echo "cli_doors: $count commands, $failures failures"
[ "$failures" -eq 0 ]

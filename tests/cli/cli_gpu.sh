#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_gpu.sh PTXGEN - the command line beside a GPU, on the driver that only records: devices, run, bench, native, cache.
. "$(dirname "$0")/commands.sh"
needs python3
PTXGEN_LIBCUDA=$(dirname "$ptxgen")/tests/libfake_cuda.so
[ -f "$PTXGEN_LIBCUDA" ] || { echo "no $PTXGEN_LIBCUDA"; exit 77; }
PTXGEN_CACHE=$work/cache
TMPDIR=$work/tmp
export PTXGEN_LIBCUDA PTXGEN_CACHE TMPDIR
mkdir "$TMPDIR"
json() { python3 -m json.tool < out > /dev/null 2>&1 || complain 'standard output is no JSON'; }

cp "$specs/dot.yaml" .

# Devices.
run devices; exits 0; out_has '^cuda:0 .*Fake GPU 0, sm_90, 132 multiprocessors, 16.0 GiB, driver for CUDA 13.0, PTX up to 9.0'
run devices --json; exits 0; json; out_has '"ptx": 90'

# The GPU's own architecture: where it is asked for, and where code runs.
run dot.yaml --arch=native -o -; exits 0; out_has '^.target sm_90'
run dot.yaml --arch=native --device cuda:7; exits 2
run run dot.yaml --size n=100 --device cuda; exits 0; out_has '^dot = '
PTXGEN_LIBCUDA=/no/such/library run dot.yaml --arch=native -o -; exits 3; err_has 'name an architecture'

# Measuring: the recording driver's clock says 2.5 ms for everything.
run bench dot.yaml --size n=1000 --no-verify; exits 0; out_has '^stream '; out_has '^graph '; out_has 'n = 1000, case'
run bench dot.yaml --size n=1000 --json --samples 3 --no-verify; exits 0; json; out_has '"mode": "graph"'; out_has '"bytes": 8004'
run bench dot.yaml --size n=1000 --no-verify --no-graph; exits 0; out_lacks '^graph '
run bench dot.yaml --size n=1000; exits 4; err_has "verification failed" # this driver computes nothing
run explain dot.yaml --size n=1000 --json; exits 0; json; out_has '"resources_from": "driver"'; out_has '"registers": 32'; out_has '"measured_stream_us": [0-9]'
run bench dot.yaml --size n=1000 --samples 0; exits 2
run bench dot.yaml --size n=1000 --device cpu; exits 2
run bench dot.yaml; exits 2; err_has 'n'
run bench; exits 2
if command -v flock >/dev/null; then # programs that share a GPU measure in turn
    (flock 9; : >held; sleep 1; : >released) 9>turn &
    while [ ! -e held ]; do :; done
    PTXGEN_GPU_LOCK=turn run bench dot.yaml --size n=1000 --no-verify; exits 0
    [ -e released ] || complain 'bench did not wait for its turn'
    wait
    PTXGEN_GPU_LOCK=turn run tune dot.yaml --size n=1000 --limit 1 --reference=default --tuning=off --json; exits 0
fi
PTXGEN_LIBCUDA=/no/such/library run bench dot.yaml --size n=1000; exits 3; err_has 'no CUDA driver'

# The cache holds what ran.
run cache path; exits 0; out_has "^$work/cache\$"
run cache stats; exits 0; out_has '^6 entries'
run cache stats --json; exits 0; json; out_has '"entries": 6'
PTXGEN_CACHE=off XDG_CACHE_HOME=$work run cache clear; exits 0; out_has 'the cache is off: nothing is cleared'
run cache clear; exits 0; out_empty
run cache stats; exits 0; out_has '^0 entries'
run run dot.yaml --size n=100 --device cuda --cache=off; exits 0
run cache stats; out_has '^0 entries'
run run dot.yaml --size n=100 --device cuda --cache="$work/other"; exits 0
run cache stats --cache="$work/other"; out_has '^6 entries'
PTXGEN_CACHE=off run cache stats; exits 0; out_has '(off)'
run cache; exits 2
run cache empty; exits 2; err_has 'path, stats or clear'

# Machine code, where there is an assembler; a clear word where there is none.
PTXGEN_PTXAS=off PTXGEN_NVJITLINK=/nowhere run dot.yaml --emit=cubin -o dot.cubin
exits 3; err_has 'ptxas of a CUDA toolkit'
[ ! -e dot.cubin ] || complain 'there is a file dot.cubin'
linker=$(dirname "$ptxgen")/tests/libfake_nvjitlink.so
PTXGEN_PTXAS=off PTXGEN_NVJITLINK=$linker run dot.yaml --emit=cubin --arch=sm_90 -o dot.cubin; exits 0
[ "$(cat dot.cubin)" = -arch=sm_90 ] || complain 'not what the linker made'
rm dot.cubin
PTXGEN_PTXAS=off PTXGEN_NVJITLINK=$linker run dot.yaml --emit=cubin --arch=sm_75 -o dot.cubin; exits 1; err_has 'no such architecture'
[ ! -e dot.cubin ] || complain 'there is a file dot.cubin'
cat > "$work/ptxas" <<'FAKE'
#!/bin/sh
case $2 in */program.ptx) ;; *) exit 9 ;; esac
grep -q '^.target sm_75' "$2" && exit 1
echo "$1" > "$4"
FAKE
printf '#!/bin/sh\nexit 1\n' > "$work/fatbinary"
chmod +x "$work/ptxas" "$work/fatbinary"
PATH=$work:$PATH run dot.yaml --emit=cubin --arch=sm_90 -o dot.cubin; exits 0
[ "$(cat dot.cubin)" = -arch=sm_90 ] || complain 'not what the assembler wrote'
mkdir split
PATH=$work:$PATH run dot.yaml --emit=cubin,ptx --split --arch=sm_90 -o split/; exits 0
[ "$(ls split/*.ptx | wc -l)" -gt 1 ] || complain 'no PTX per case'
[ "$(ls split/*.ptx | wc -l)" -eq "$(ls split/*.cubin | wc -l)" ] || complain 'not a cubin per case'
rm dot.cubin
PATH=$work:$PATH run dot.yaml --emit=cubin --arch=sm_75 -o dot.cubin; exits 1; err_has 'could not assemble'
[ ! -e dot.cubin ] || complain 'there is a file dot.cubin'
PATH=$work:$PATH run dot.yaml --emit=header --with=cubin --arch=sm_90,sm_120 -o dot.h; exits 0
[ "$(grep -c '^static const uint64_t dot_code_' dot.h)" -eq 12 ] || complain 'not two images for each of six cases'
grep -q 'loaded where it fits: sm_120, sm_90, 150 bytes' dot.h || complain 'the comment does not say what is in it'
grep -q '^    0x6d733d686372612d, 0xa3039' dot.h || complain 'not what the assembler wrote' # "-arch=sm_90\n"
rm dot.h
cat > "$work/fatbinary" <<'FAKE'
#!/bin/sh
[ "$1 $3 $4" = '--create -64 --compress-all' ] || exit 9
case $5 in --image3=kind=elf,sm=120,file=/*) cat "${5##*file=}" "${5##*file=}" > "$2" ;; # larger
*) printf short > "$2" ;; esac
FAKE
chmod +x "$work/fatbinary"
PATH=$work:$PATH run dot.yaml --emit=header --with=cubin --arch=sm_90,sm_120 -o dot.h; exits 0
grep -q 'loaded where it fits: sm_120, sm_90, 108 bytes' dot.h || complain 'not what is shorter' # 6 * (13 + 5)
grep -q '^    0x74726f6873,$' dot.h || complain 'not what was compressed'
rm dot.h
printf '#!/bin/sh\nexit 1\n' > "$work/fatbinary"
for wrong in '--arch=sm_90,sm_120' '--with=cubin' '--with=fatbin --arch=sm_90' '--with=cubin --arch=native'; do
    # shellcheck disable=SC2086 # words
    PATH=$work:$PATH run dot.yaml --emit=header $wrong -o dot.h; exits 2; err_has "arch\|with"
    [ ! -e dot.h ] || complain 'there is a file dot.h'
done
PATH=$work:$PATH run dot.yaml --with=cubin --arch=sm_90 -o dot.ptx; exits 2; err_has 'emit=header'

# --keep: PTX and machine code of six cases, in products nothing more than without it.
run cache clear
PATH=$work:$PATH run dot.yaml --keep --emit=header --arch=sm_90 -o dot.h; exits 0
run cache stats; out_has '^12 entries'
grep -q '_code_' dot.h && complain 'machine code that nobody asked for'
rm dot.h
PATH=$work:$PATH run dot.yaml --keep --emit=plan --arch=sm_80 -o -; exits 0; out_has 'sm_80'
run cache stats; out_has '^22 entries' # five cases there
PATH=$work:$PATH run dot.yaml --keep --emit=header --with=cubin --arch=sm_90,sm_120 -o dot.h; exits 0; rm dot.h
run cache stats; out_has '^28 entries' # the six for sm_120
PATH=$work:$PATH run dot.yaml --keep --arch=sm_75 -o dot.ptx; exits 1; err_has 'could not assemble'
PTXGEN_PTXAS=off PTXGEN_NVJITLINK=$linker run dot.yaml --keep --arch=sm_90 -o dot.ptx; exits 3; err_has 'keep needs ptxas'
PATH=$work:$PATH run dot.yaml --keep --arch=sm_90 --cache=off -o dot.ptx; exits 1; err_has 'keep needs the disk cache'
[ ! -e dot.ptx ] || complain 'there is a file dot.ptx'

PTXGEN_PTXAS=off PTXGEN_NVJITLINK=/nowhere run dot.yaml --emit=header --with=cubin --arch=sm_90 -o dot.h
exits 3; err_has 'ptxas of a CUDA toolkit'
[ ! -e dot.h ] || complain 'there is a file dot.h'
[ -z "$(ls "$TMPDIR")" ] || complain 'temporary files are left'

echo "$((count - failures)) passed, $failures failed"
[ "$failures" -eq 0 ]

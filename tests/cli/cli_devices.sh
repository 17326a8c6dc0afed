#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_devices.sh PTXGEN - runs that several GPUs share, on a driver whose kernels copy at most, and an NCCL among threads.
. "$(dirname "$0")/commands.sh"
PTXGEN_LIBCUDA=$(dirname "$ptxgen")/tests/libfake_cuda.so
PTXGEN_LIBNCCL=$(dirname "$ptxgen")/tests/libfake_nccl.so
[ -f "$PTXGEN_LIBCUDA" ] || { echo "no $PTXGEN_LIBCUDA"; exit 77; }
[ -f "$PTXGEN_LIBNCCL" ] || { echo "no $PTXGEN_LIBNCCL"; exit 77; }
PTXGEN_CACHE=$work/cache
FAKE_CUDA_DEVICES=7
export PTXGEN_LIBCUDA PTXGEN_LIBNCCL PTXGEN_CACHE FAKE_CUDA_DEVICES

cat > copy.yaml <<'SPEC'
kind: map
inputs: {x: 'i32[n]'}
outputs: {y: {type: 'i32[n]', value: x}}
SPEC
cat > plane.yaml <<'SPEC'
kind: map
inputs: {x: 'i32[n,m]'}
outputs: {y: {type: 'i32[n,m]', value: x}}
SPEC

# Words that name no GPUs.
for wrong in '' ',' '0,' a cuda:0 -1 0,x 0.5 99999; do run run copy.yaml --size n=9 --devices "$wrong"; exits 2; err_has 'is not the number of a GPU'; done
run run copy.yaml --size n=9 --devices 0,2,0; exits 2; err_has 'GPU 0 is named twice'
run run copy.yaml --size n=9 --devices 0,7; exits 2; err_has 'device 7 does not exist: there are 7, counted from 0'; err_has 'ptxgen devices'
run run copy.yaml --size n=9 --devices; exits 2
run run copy.yaml --size n=9 --devices 0,1 --distributed; exits 2; err_has 'use one'
run run copy.yaml --size n=9 --devices 0,1 --device cuda; exits 2; err_has 'leave out --device'
run run copy.yaml --size n=9 --devices 0,1 --simt=race; exits 2; err_has 'host executor'
for pin in '--set threads=64' --tuning=off --arch=sm_90; do
    # shellcheck disable=SC2086 # words
    run run copy.yaml --size n=9 --devices 0,1 $pin; exits 2; err_has 'leave out --plan, --variant, --set'
done

# What is missing, or fails.
PTXGEN_LIBCUDA=/no/such/library run run copy.yaml --size n=9 --devices 0,1; exits 3; err_has 'no CUDA driver'; err_has 'device cpu'
PTXGEN_LIBNCCL=/no/such/library run run copy.yaml --size n=9 --devices 0,1; exits 3; err_has 'need NCCL, which cannot be opened'; err_has 'PTXGEN_LIBNCCL'
PTXGEN_LIBNCCL=$PTXGEN_LIBCUDA run run copy.yaml --size n=9 --devices 0,1; exits 3; err_has 'it has no ncclCommInitAll'
FAKE_NCCL_FAIL=1 run run copy.yaml --size n=9 --devices 0,1; exits 3; err_has 'cannot connect these GPUs: ncclCommInitAll: remote error'
FAKE_NCCL_DEAD=1 run run copy.yaml --size n=9 --devices 0,1; exits 3; err_has 'an exchange with the other ranks failed: ncclAllGather'
FAKE_CUDA_FAIL=cuMemAlloc run run copy.yaml --size n=9 --devices 0,1; exits 3

# What cannot be split is refused at its place, once.
run run "$specs/scan_flags.yaml" --size n=100 --devices 0,1; exits 1; err_has 'scan_flags.yaml:12:3: error: segments between flags'
[ "$(grep -c 'segments between' err)" -eq 1 ] || complain 'it is said more than once'
run run copy.yaml --size n=9 --devices 0,1 --shard k; exits 1; err_has 'no dimension called k'

# Parts of all kinds: even and uneven, fewer elements than GPUs, none; where the GPUs' order is another one.
for n in 1001 7 2 0; do
    for devices in 0 0,1 2,1,0 6,5,4,3 0,1,2,3,4,5,6; do
        FAKE_CUDA_COPIES=1 run run copy.yaml --size n=$n --devices "$devices" --verify; exits 0; out_has "verified: $n value"
        FAKE_CUDA_COPIES=1 run run copy.yaml --size n=$n --devices "$devices" --unaligned 1 --verify; exits 0; out_has 'verified'
        FAKE_CUDA_COPIES=1 FAKE_CUDA_BLOCK=16 run run copy.yaml --size n=$n --devices "$devices" --shard-block 16 --verify; exits 0; out_has "verified: $n value"
    done
done
# Rows, and columns, which are no rows of memory; in files as on one GPU.
FAKE_CUDA_COPIES=2 run run plane.yaml --size n=10 --size m=7 --device cuda --output y=one.npy; exits 0
for shard in n m; do
    for devices in 0,1 0,1,2; do
        FAKE_CUDA_COPIES=2 run run plane.yaml --size n=10 --size m=7 --devices "$devices" --shard "$shard" --output y=all.npy --verify
        exits 0; out_has 'verified: 70 values'
        cmp -s one.npy all.npy || complain 'another file than that of one GPU'
        rm -f all.npy
    done
done
FAKE_CUDA_COPIES=1 FAKE_CUDA_WRONG=1 run run copy.yaml --size n=9 --devices 0,1 --verify; exits 4; err_has 'y\[5\] is'
# Each GPU computes its part, in order.
FAKE_CUDA_COPIES=1 FAKE_CUDA_LOG=$work/log run run copy.yaml --size n=100 --devices 1,0,2; exits 0
[ "$(grep -c '^launch' log)" -eq 3 ] || complain 'not a launch on each GPU'
[ "$(sed -n 's/^launch.* \([0-9a-f]* 64 0 0 0 0 [0-9a-f]*\)$/\1/p' log | sort | tr '\n' ' ')" = "0 64 0 0 0 0 22 22 64 0 0 0 0 21 43 64 0 0 0 0 21 " ] ||
    complain "not the parts: $(cat log)"

# States travel, and results are on all GPUs with the same bits.
FAKE_CUDA_COPIES=0 run run "$specs/first.yaml" --size n=200 --devices 0,1 --verify; exits 0; out_has 'verified: 1 value'
# Programs, stage by stage.
cat > copies.yaml <<'SPEC'
inputs: {x: 'i32[n,m]'}
stages:
  one: {kind: map, outputs: {y: {type: 'i32[n,m]', value: x}}}
  two: {kind: map, outputs: {z: {type: 'i32[n,m]', value: y}}}
outputs: [z]
iterate: {steps: 3, feedback: {x: z}}
SPEC
for shard in n m; do
    for devices in 0 0,1 2,1,0; do
        FAKE_CUDA_COPIES=2 run run copies.yaml --size n=10 --size m=7 --devices "$devices" --shard "$shard" --verify
        exits 0; out_has 'verified: 210 values'
    done
done
FAKE_CUDA_COPIES=2 FAKE_CUDA_WRONG=1 run run copies.yaml --size n=10 --size m=7 --devices 0,1 --verify
exits 4; err_has 'note: stage two, step 0:'; err_has 'z\[[0-9, ]*\] is'
FAKE_CUDA_COPIES=2 FAKE_NCCL_DEAD=1 run run copies.yaml --size n=10 --size m=7 --devices 0,1 --verify; exits 3; err_has 'an exchange'
FAKE_CUDA_COPIES=0 FAKE_CUDA_WRONG=1 run run "$specs/first.yaml" --size n=200 --devices 0,1 --verify; exits 4; err_has 'first has other bits on GPU 1 than on GPU 0'
run run "$specs/jacobi2d.yaml" --size n=40 --size m=5 --param steps=4 --devices 0,1,2; exits 0; out_has 'f32\[5, 40\]'
run run "$specs/sum.yaml" --size n=100 --devices 0,1 --json; exits 0; out_has '"device": "2 GPUs, Fake GPU 0"'

echo "$count commands, $failures failures"
[ "$failures" -eq 0 ]

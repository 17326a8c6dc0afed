#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_distributed.sh PTXGEN - runs that the ranks of mpirun share.  Without an MPI library, only what is refused is tested.
. "$(dirname "$0")/commands.sh"

run run "$specs/mss.yaml" --size n=100 --distributed --device cuda; exits 2; err_has 'host executor alone'
run run "$specs/mss.yaml" --size n=100 --distributed --set threads=64; exits 2; err_has 'leave out --plan, --variant and --set'
PTXGEN_LIBMPI=/no/such/library run run "$specs/mss.yaml" --size n=100 --distributed; exits 3; err_has 'no MPI library was found'

if ! command -v mpirun > /dev/null; then
    echo "cli_distributed: skipped: there is no mpirun"
    [ "$failures" -eq 0 ] && exit 77
    exit 1
fi
# Open MPI: more ranks than cores, as root, without reading memory of other processes; MPICH looks at none of these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
unset PTXGEN_LIBMPI

# ranks N ARGUMENTS...: as run(), with N ranks.
ranks()
{
    n=$1
    shift
    timeout 120 mpirun -n "$n" "$ptxgen" run "$@" > out 2> err < /dev/null
    status=$?
    command="mpirun -n $n ptxgen run $*"
    count=$((count + 1))
}

# Sanitizers take one number of ranks.
numbers=${PTXGEN_TEST_RANKS:-1 2 3 4 7}
# What several ranks write is what one process writes, where nothing rounds.
for spec in mss argmin interval_identity scan_mss scan_exclusive life column_first; do
    run run "$specs/$spec.yaml" --size n=301 --size m=29 --device cpu --param steps=3
    [ "$status" -eq 0 ] || run run "$specs/$spec.yaml" --size n=301 --size m=29 --device cpu
    [ "$status" -eq 0 ] || run run "$specs/$spec.yaml" --size n=301 --device cpu
    exits 0
    sed '/random data/d' out > alone
    more=${command#ptxgen run }
    for n in $numbers; do
        # shellcheck disable=SC2086
        ranks "$n" $more --distributed --verify; exits 0; out_has 'verified'
        sed '/random data/d; /^verified/d' out > shared
        cmp -s alone shared || complain "other results than alone"
    done
done

# Programs of stages, and a loop that ends by its condition.
for more in 'heat.yaml --size m=31 --size n=9 --param eps=0.02' \
    'hotspot.yaml --size m=31 --size n=9 --param steps=9 --param step_div_cap=0.1 --param rx=1 --param ry=1 --param rz=1 --param amb=0' \
    'kmeans.yaml --size n=40 --size k=3 --size f=2 --input x=iota --input c=iota' \
    'mri_q.yaml --size n=40 --size k=6'; do
    spec=$specs/apps/${more%% *}
    # shellcheck disable=SC2086
    run run "$spec" ${more#* } --device cpu; exits 0
    shard=
    [ "${more#mri_q}" = "$more" ] || shard='--shard n'
    sed '/random data/d' out > alone
    for n in $numbers; do
        # shellcheck disable=SC2086
        ranks "$n" "$spec" ${more#* } --device cpu --distributed $shard --verify; exits 0; out_has '^verified: [1-9]'
        sed '/random data/d; /^verified/d' out > shared
        cmp -s alone shared || complain "other results than alone"
    done
done
ranks 2 "$specs/apps/nbody.yaml" --size n=40 --size j=40 --distributed --shard n; exits 1; err_has 'error: stage pull: '
# An operator whose result depends on the grouping is told with the stage, by all numbers of ranks, and all ranks end.
cat > grouping.yaml <<'SPEC'
inputs: {x: 'i32[n]'}
stages:
  double: {kind: map, outputs: {y: {type: 'i32[n]', value: x * 2}}}
  less: {kind: reduce, map: y, operator: {state: i32, combine: a - b}, outputs: {r: i32}}
  add: {kind: map, inputs: [y, r], outputs: {z: {type: 'i32[n]', value: y + r}}}
outputs: [y, z]
iterate: {steps: 3, feedback: {x: z}}
SPEC
ranks 3 grouping.yaml --size n=60 --distributed --verify; exits 4; err_has 'note: stage less, step 0:'; err_has 'verification failed: r is'
[ "$(grep -c 'verification failed' err)" -eq 1 ] || complain 'it is said more than once'

# Blocks that are dealt to the ranks in turn.
for more in 'scan_exclusive.yaml --size n=301' 'scan_mss.yaml --size n=301' 'apps/kmeans.yaml --size n=40 --size k=3 --size f=2 --input x=iota --input c=iota'; do
    # shellcheck disable=SC2086
    run run "$specs/"$more --device cpu; exits 0
    sed '/random data/d' out > alone
    for n in $numbers; do
        # shellcheck disable=SC2086
        ranks "$n" "$specs/"$more --distributed --shard-block 16 --device cpu --verify; exits 0; out_has '^verified: [1-9]'
        sed '/random data/d; /^verified/d' out > shared
        cmp -s alone shared || complain "other results than alone"
    done
done
ranks 2 "$specs/jacobi2d.yaml" --size n=40 --size m=5 --param steps=4 --distributed --shard-block 16; exits 1; err_has 'neighbours along'
ranks 2 "$specs/sum.yaml" --size n=100 --distributed --shard-block 24; exits 2; err_has 'not a multiple of 16'
ranks 2 "$specs/sum.yaml" --size n=100 --distributed --shard-block 0; exits 2; err_has 'expected a number of elements'

# Another dimension; results in files; a refusal is located.
ranks 3 "$specs/jacobi2d.yaml" --size n=40 --size m=5 --param steps=4 --shard n --distributed --verify; exits 0; out_has 'verified: 200'
ranks 2 "$specs/sum.yaml" --size n=1000 --distributed --output sum=sum.npy; exits 0; exists sum.npy
ranks 2 "$specs/scan_flags.yaml" --size n=1000 --distributed; exits 1; err_has 'scan_flags.yaml:12:3: error: segments between flags'
ranks 2 "$specs/sum.yaml" --size n=1000 --distributed --shard k; exits 1; err_has 'no dimension called k'

echo "$count commands, $failures failures"
[ "$failures" -eq 0 ]

# SPDX-License-Identifier: Apache-2.0
# commands.sh - sourced by black-box tests of the command line, with the executable as $1: a folder of their own to work in,
# commands that are run and counted, and what may be asked of the last one.
case $1 in /*) ptxgen=$1 ;; *) ptxgen=$PWD/$1 ;; esac
NO_COLOR=1
export NO_COLOR
here=$(cd "$(dirname "$0")" && pwd)
specs=$here/../../specs
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1
failures=0
count=0

# needs TOOL...: without it the test is skipped, and says so.
needs()
{
    for tool; do
        command -v "$tool" > /dev/null || { echo "$(basename "$0"): skipped: there is no $tool"; exit 77; }
    done
}
# run ARGUMENTS...: leaves `status`, and the files out and err.
run()
{
    "$ptxgen" "$@" > out 2> err < /dev/null
    status=$?
    command="ptxgen $*"
    count=$((count + 1))
}
complain()
{
    failures=$((failures + 1))
    echo "FAIL: $command: $1"
    tail -n 5 out err | cut -c1-200
}
# verdict STATUS WHAT: for tests that judge by themselves; results() says how many were right and ends the test.
passed=0
verdict()
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failures=$((failures + 1))
        echo "FAIL $2"
    fi
}
results()
{
    echo "$passed passed, $failures failed"
    [ "$failures" -eq 0 ]
}
exits() { [ "$status" -eq "$1" ] || complain "exit status $status instead of $1"; }
out_has() { grep -q -e "$1" out || complain "standard output lacks: $1"; }
out_lacks() { if grep -q -e "$1" out; then complain "standard output has: $1"; fi; }
err_has() { grep -q -e "$1" err || complain "standard error lacks: $1"; }
err_lacks() { if grep -q -e "$1" err; then complain "standard error has: $1"; fi; }
out_empty() { [ ! -s out ] || complain "standard output is not empty"; }
err_empty() { [ ! -s err ] || complain "standard error is not empty"; }
exists() { [ -s "$1" ] || complain "no file $1"; }
absent() { [ ! -e "$1" ] || complain "there is a file $1"; }

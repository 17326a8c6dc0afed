#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fiber.sh SOURCE_DIR - the switch between stacks on this processor, by ucontext, and on aarch64 under an emulator.
# Exit status 77 (skipped) only after the first two have passed and where there is no cross compiler or emulator.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu

check()
{
    name=$1 compiler=$2 emulator=$3
    shift 3
    "$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror "$@" -I"$source/src" "$source/tests/unit/simt/fiber_check.c" "$source/src/simt/fiber.c" -o "$work/$name"
    $emulator "$work/$name" || { echo "$name: lost registers"; exit 1; }
}

check native "${CC:-cc}" ''
check ucontext "${CC:-cc}" '' -DFIBER_UCONTEXT=1
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    echo "no aarch64-linux-gnu-gcc and qemu-aarch64 here"
    exit 77
fi
check aarch64 aarch64-linux-gnu-gcc qemu-aarch64
echo "3 passed, 0 failed"

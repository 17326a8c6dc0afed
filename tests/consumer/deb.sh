#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# consumer/deb.sh FOLDER - uses the packages in it: installed where this is allowed and none is there yet, otherwise unpacked.
set -eu
folder=$(cd "${1:?usage: deb.sh FOLDER}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set -- "$folder"/libptxgen0_*.deb "$folder"/libptxgen-dev_*.deb "$folder"/ptxgen_*.deb
for package; do
    dpkg-deb --field "$package" Package Depends
    dpkg-deb --contents "$package" | grep "/usr/share/doc/$(dpkg-deb --field "$package" Package)/copyright" >/dev/null || {
        echo "$package has no licence"
        exit 1
    }
    dpkg-deb --extract "$package" "$work/unpacked"
done
dpkg-deb --field "$1" Depends | grep -q libllvm || { echo 'libptxgen0 does not depend on LLVM'; exit 1; }
dpkg-deb --field "$2" Depends | grep -q libptxgen0 || { echo 'libptxgen-dev does not depend on libptxgen0'; exit 1; }
if [ "$(id -u)" -eq 0 ] && ! dpkg-query -W libptxgen0 libptxgen-dev ptxgen 2>/dev/null | grep -q .; then
    trap 'rm -rf "$work"; dpkg --purge ptxgen libptxgen-dev libptxgen0 >&2' EXIT
    dpkg --install "$@"
    man=$(man -w ptxgen 2>/dev/null || :)
    echo "installed; manual page: ${man:-no man here}"
    ptxgen --version
    "$here/run.sh" --at /usr
else
    LD_LIBRARY_PATH=$work/unpacked/usr/lib "$here/run.sh" --at "$work/unpacked/usr"
fi

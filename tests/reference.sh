#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh PTXGEN - docs/reference.md is what `ptxgen reference` prints, and every message's code can be explained.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$1" reference > "$work/reference.md"
diff -u "$root/docs/reference.md" "$work/reference.md" || {
    echo 'reference: run ptxgen reference > docs/reference.md'
    exit 1
}
codes=$(sed -n 's/^### \(PTXG-[0-9]*\): .*/\1/p' "$work/reference.md")
[ "$(echo "$codes" | wc -l)" -gt 80 ]
for code in $codes; do
    "$1" explain "$code" > "$work/one" || { echo "reference: $code cannot be explained"; exit 1; }
    [ "$(wc -w < "$work/one")" -ge 12 ] || { echo "reference: $code has no explanation"; exit 1; }
done
echo "reference: $(echo "$codes" | wc -l) messages, all explained"

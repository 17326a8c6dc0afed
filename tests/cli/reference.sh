#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh PTXGEN - docs/reference.md is what `ptxgen reference` prints; every strategy that it lists has a section in
# docs/strategies.md, every message's code can be explained, and every option is in docs/cli.md and in the
# sections of the manual page that `ptxgen reference manual` prints.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$1" reference > "$work/reference.md"
diff -u "$root/docs/reference.md" "$work/reference.md" || {
    echo "reference: run ptxgen reference > docs/reference.md"
    exit 1
}
strategies=$(sed -n '/^## Strategies$/,/^## Tunables$/s/^| `\([a-z_.]*\)`.*/\1/p' "$work/reference.md")
[ "$(echo "$strategies" | wc -l)" -gt 15 ]
for strategy in $strategies; do
    grep -q "^##* .*$strategy" "$root/docs/strategies.md" || echo "reference: $strategy has no section in docs/strategies.md"
done > "$work/missing"
cat "$work/missing"
[ ! -s "$work/missing" ]
codes=$(sed -n 's/^### \(PTXG-[0-9]*\): .*/\1/p' "$work/reference.md")
[ "$(echo "$codes" | wc -l)" -gt 80 ]
for code in $codes; do
    "$1" explain "$code" > "$work/one" || { echo "reference: $code cannot be explained"; exit 1; }
    [ "$(wc -w < "$work/one")" -ge 24 ] || { echo "reference: $code has no explanation"; exit 1; }
done
"$1" reference manual | sed 's/\\//g' > "$work/manual"
for option in $(sed -n '/^## Commands$/,$s/^| \(`-.`, \)*`--\([a-z-]*\).*/\2/p' "$work/reference.md" | sort -u); do
    grep -q -e "--$option" "$root/docs/cli.md" || echo "reference: --$option is not in docs/cli.md"
    grep -q -e "--$option\b" "$work/manual" || echo "reference: --$option is not in the manual page"
done > "$work/missing"
cat "$work/missing"
[ ! -s "$work/missing" ]
echo "reference: $(echo "$codes" | wc -l) messages, all explained"

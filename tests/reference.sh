#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh PTXGEN - docs/reference.md is what `ptxgen reference` prints of the language; every strategy that it lists has a
# section in docs/strategies.md, and every message's code can be explained.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$1" reference > "$work/reference.md"
sed '/^## Strategies$/,$d' "$work/reference.md" > "$work/language.md"
diff -u "$root/docs/reference.md" "$work/language.md" || {
    echo "reference: run ptxgen reference | sed '/^## Strategies\$/,\$d' > docs/reference.md"
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
echo "reference: $(echo "$codes" | wc -l) messages, all explained"

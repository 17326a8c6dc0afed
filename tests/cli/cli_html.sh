#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli_html.sh PTXGEN - the page of `explain --html`: well-formed, self-contained, and with everything in it.
case $1 in /*) ptxgen=$1 ;; *) ptxgen=$PWD/$1 ;; esac
specs=$(cd "$(dirname "$0")/../../specs" && pwd)
NO_COLOR=1
PTXGEN_LIBCUDA=/no/such/library
export NO_COLOR PTXGEN_LIBCUDA
command -v python3 > /dev/null || { echo 'cli_html: skipped: there is no python3'; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1

cat > check.py << 'EOF'
# The page, and what must be in it: ids of sections, and least numbers of points and of lines in the outline of the PTX.
import re, sys, xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
head = "<!DOCTYPE html>\n"
assert text.startswith(head), "no document type"
root = tree.fromstring(text[len(head):])
elements = list(root.iter())
ids = [e.get("id") for e in elements if e.get("id")]
assert len(ids) == len(set(ids)), "an id stands twice"
for e in elements:
    assert e.tag not in ("script", "link", "img", "iframe", "object", "embed"), e.tag
    assert not any(k in e.attrib for k in ("src", "srcset", "data")), e.attrib
    assert e.get("href", "#").startswith("#") and (e.get("href", "#") == "#" or e.get("href")[1:] in ids), e.get("href")
style = "".join(e.text for e in elements if e.tag == "style")
assert "url(" not in style and "@import" not in style and "prefers-color-scheme" in style
for want in sys.argv[2].split(","):
    assert want in ids, "no section " + want
assert len(text.encode()) <= 300000, "%d bytes" % len(text.encode())
points = [e for e in elements if e.tag == "circle"]
assert len(points) >= int(sys.argv[3]), "%d points" % len(points)
assert all(0 <= float(p.get("cx")) <= 960 and 0 <= float(p.get("cy")) <= 420 for p in points), "a point is outside"
outline = [e for e in elements if e.tag == "li"]
assert len(outline) >= int(sys.argv[4]), "%d lines in the outline" % len(outline)
for want in sys.argv[5:]:
    assert want in "".join(root.itertext()), "no " + want
EOF
failures=0
fail()
{
    failures=$((failures + 1))
    echo "FAIL: $1"
}
page() # FILE IDS POINTS OUTLINE TEXT...
{
    python3 check.py "$@" 2> err || fail "$1: $(tail -n 1 err)"
}

"$ptxgen" explain "$specs/sum.yaml" --arch=sm_90 --size n=2^26 --html a.html > out 2> err || fail "explain: $(cat err)"
[ -s out ] && fail 'the page is also printed'
page a.html verdict,picture,decision,cases,variants,spec,plan,ir,ptx 250 10 'case large (reduce.gather) takes' 'operator: add' 'ptxgen_plan: 2' \
    '.visible .entry sum_large' 'define ' 'predicted' 'on sm_90' 'time of a launch' 'strategy; its variants' 'chosen: 6' 'within 0.1 % of the least' '1024 threads'
grep -q '<path class="mark"' a.html || fail 'the chosen variant is not marked'
grep -q '<b>operator</b>: add' a.html && grep -q '<i>// ' a.html || fail 'the code has no colours'
grep -q 'The fastest' a.html && fail 'one of many ties is called the fastest'
# The architecture is the plan's, however it was named; and a program of 3 MB is a page all the same.
"$ptxgen" explain "$specs/scan_rows.yaml" --gpu=H200 --html big.html 2> err || fail "explain: $(cat err)"
page big.html verdict,decision,cases,spec,plan,ir,ptx 0 2 'on sm_90' 'the rest is left out'
# Characters of XML in a spec, no sizes: no plot.
cat > odd.yaml << 'EOF'
doc: "<b> & 'quotes' \"here\" \u0001"
kind: stencil
inputs: {x: 'f32[n]'}
outputs: {y: {type: 'f32[n]', value: 'if x[1] < x[-1] and x > 0.0 then x else x[1]'}}
EOF
"$ptxgen" explain odd.yaml --html b.html 2> err || fail "explain: $(cat err)"
page b.html spec,verdict,decision,cases,plan,ptx 0 2 '<b> &'
# A program: its stages as a graph, the loop, the memory between them, and each stage as a spec of its own.
"$ptxgen" explain "$specs/apps/kmeans.yaml" --gpu=H200 --size n=494025 --size f=34 --size k=5 --html k.html > out 2> err || fail "explain: $(cat err)"
[ -s out ] && fail 'the page of a program is also printed'
page k.html verdict,stages,loop,memory,spec,assign-stage,assign-verdict,assign-picture,assign-decision,assign-cases,assign-variants,assign-plan,assign-ir,assign-ptx,move-cases,move-ptx,keep-plan,until-verdict \
    250 10 '4 stages, one after the other: predicted' 'limit' 'All stages, at most steps times, or until (moved < eps)' 'The next step reads next as c; it has two memories' \
    'mean: move to keep' '680 bytes at' 'kmeans_move' 'on sm_90' 'Stage until'
"$ptxgen" explain "$specs/apps/kmeans.yaml" --gpu=H200 --size n=494025 --size f=34 --size k=5 --json > k.json 2> err || fail "explain: $(cat err)"
python3 - << 'EOF' || fail "the figures of k.html are not those of its stages"
import json, re, xml.etree.ElementTree as tree
stages = json.load(open("k.json"))["stages"]
page = tree.fromstring(open("k.html", encoding="utf-8").read().split("\n", 1)[1])
text = "".join(page.itertext())
us = float(re.search(r"predicted ([0-9.]+) µs a step", text)[1])
assert abs(us - sum(s["at"]["predicted_us"] for s in stages)) < 0.01 * len(stages), us
read, written = map(int, re.search(r"together read (\d+) bytes, and write (\d+)", text).groups())
each = re.findall(r"reads (\d+) bytes, writes (?:at most )?(\d+)", text)
assert len(each) == 4 and (read, written) == tuple(sum(int(e[i]) for e in each) for i in (0, 1)), (read, written, each)
svg = next(e for e in page.iter() if e.get("class") == "graph")
kinds = {e.get("class"): 0 for e in svg.iter() if e.tag in ("rect", "path")}
for e in svg.iter():
    if e.get("class") in kinds:
        kinds[e.get("class")] += 1
# x, c, member and next; mean, size and moved; four stages; what they read and write, without the flag of the condition
assert kinds == {"array": 4, "between": 3, "stage": 4, "edge": 13, "edge again": 1}, kinds
_, _, wide, high = map(float, svg.get("viewBox").split())
boxes = [tuple(float(e.get(k)) for k in ("x", "y", "width", "height")) for e in svg.iter("rect")]
for i, (x, y, w, h) in enumerate(boxes):
    assert 0 <= x and x + w <= wide and 0 <= y and y + h <= high, (x, y)
    for u, v, p, q in boxes[:i]:
        assert x >= u + p or u >= x + w or y >= v + q or v >= y + h, "two boxes overlap"
EOF
"$ptxgen" explain "$specs/apps/heat.yaml" --html heat.html 2> err || fail "explain: $(cat err)"
page heat.html verdict,stages,loop,spec,sweep-stage,sweep-decision,sweep-ptx,until-stage 0 2 '2 stages; no time is predicted' 'The next step reads next as u'
"$ptxgen" explain "$specs/apps/conjugate_gradient.yaml" --html cg.html 2> err || fail "explain: $(cat err)"
page cg.html verdict,stages,loop,fusion,spec 0 2 'stays a stage: ' 'is part of '
"$ptxgen" explain "$specs/apps/heat.yaml" --html x.html --journal t.journal 2> err && fail 'no journal of a program'
grep -q 'cannot read t.sweep.journal: No such file' err || fail "no journal of a program: $(cat err)"
printf 'ptxgen-tune 1\t0\ndefault\tok\t12.5\t31\t\nstencil.global@x=1\tslow\t50.5\t3\t\n' > t.sweep.journal
"$ptxgen" explain "$specs/apps/heat.yaml" --html heat.html --journal t.journal 2> err || fail "explain: $(cat err)"
page heat.html sweep-variants 1 2 'measured by ptxgen tune' 'the default: 12.50'
# Measured variants, and a disassembler.
{
    printf 'ptxgen-tune 1\t0\n'
    for k in 1 2 3 4; do printf 'reduce.block@threads=%s\tslow\t%s0.5\t3\t\n' $k $k; done
    printf 'default\tok\t12.5\t31\t\nreduce.block@threads=9\tfailed\t0.0\t0\tno\nreduce.gather@x=1\tok\t9000\t1\t\nreduce.blo'
} > t.journal
mkdir bin
printf '#!/bin/sh\n[ "$1" = -sass ] && [ -s "$2" ] && echo "a machine <code>"\n' > bin/cuobjdump
chmod +x bin/cuobjdump
PATH=$work/bin:$PATH "$ptxgen" explain "$specs/sum.yaml" --html c.html --journal t.journal 2> err || fail "explain: $(cat err)"
if [ -n "$(command -v ptxas)" ] || [ -x /usr/local/cuda/bin/ptxas ]; then sass=,sass; else sass=; fi
page c.html "variants,ptx$sass" 5 2 'measured by ptxgen tune' 'the default: 12.50' ${sass:+'a machine <code>'}
# cuobjdump does not work without nvdisasm beside it: then that is asked itself.
printf '#!/bin/sh\nexit 1\n' > bin/cuobjdump
printf '#!/bin/sh\n[ "$1" = -c ] && [ -s "$2" ] && echo "another machine code"\n' > bin/nvdisasm
chmod +x bin/nvdisasm
PATH=$work/bin:$PATH "$ptxgen" explain "$specs/sum.yaml" --html c2.html 2> err || fail "explain: $(cat err)"
[ -z "$sass" ] || grep -q 'another</b> machine code' c2.html || fail 'nvdisasm is not asked'
# A journal of whatever origin: names are text, and what is no outcome is passed over.
{
    printf 'ptxgen-tune 1\t0\n'
    printf '<script>alert(1)</script>@x=1\tok\t5.0\t1\t\n</text><script/>\tok\t6.0\t1\t\n&amp@x=1\tok\t7.0\t1\t\n'
    printf 'reduce.block@threads=64\tok\tinf\t1\t\nreduce.block@threads=128\tok\t1e400\t1\t\nreduce.block@items=1\tok\tnan\t1\t\n'
    printf 'reduce.block@threads=1\tok\t-1\t1\t\nreduce.block@threads=2\tok\t2.0\t-7\t\n'
    printf 'reduce.block@threads=3\tok\t3.5\t1\t\nreduce.block@threads=4\tok\t4.5\t1\t<script>\n'
} > evil.journal
"$ptxgen" explain "$specs/sum.yaml" --html evil.html --journal evil.journal 2> err || fail "explain: $(cat err)"
grep -q '8 lines are ignored' err || fail "nothing is said of the lines: $(cat err)"
page evil.html variants,ptx 2 2
[ "$(grep -c '<circle' evil.html)" -eq 2 ] || fail 'a line that is no outcome has a point'
"$ptxgen" explain "$specs/sum.yaml" --html d.html --journal odd.yaml 2> err && fail 'another file is taken for a journal'
[ -e d.html ] && fail 'a page in spite of an error'
"$ptxgen" explain "$specs/sum.yaml" --html /no/such/directory/e.html 2> err && fail 'no error'

# What a browser sees, where one is named.
if [ -n "${PTXGEN_CHROMIUM:-}" ]; then
    "$PTXGEN_CHROMIUM" --headless --no-sandbox --disable-gpu --dump-dom "file://$work/a.html" > dom 2> err || fail 'the browser failed'
    for want in 'id="ptx"' '<circle' 'class="chosen"' 'class="mark"'; do grep -q "$want" dom || fail "the browser has no $want"; done
fi
echo "$failures failures"
[ "$failures" -eq 0 ]

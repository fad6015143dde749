# SPDX-License-Identifier: LGPL-2.1-or-later
# Pictures of recorded stages, and the HTML report.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command python3
    mkdir -m 0700 -p "$HS_STATE/traces"
}

# hostile STAGE [FLAG…] >TRACE: prints a trace of files and applications with hostile names, one per
# second.
hostile() {
    python3 - "$@" <<'END'
import json, sys
paths = ["x</script><script>alert(1)", "\u202egpj.sh", "]]>&amp;'\"", "a%0Ab%1B[31m%FF", "日本", "/".join(["y" * 249] * 16)]
nodes, parent, name = {(): 0}, [0], [""]
for path in paths:
    parts = tuple(path.split("/"))
    for i in range(len(parts)):
        if parts[:i + 1] not in nodes:
            nodes[parts[:i + 1]] = len(parent)
            parent.append(nodes[parts[:i]])
            name.append(parts[i])
rows = [nodes[tuple(path.split("/"))] for path in paths]
n = len(paths)
json.dump({"format": "headstart-trace", "version": 1, "stage": sys.argv[1], "flags": sys.argv[2:], "boot_id": "0" * 32,
           "kernel": "", "distribution": "", "uid": -1, "start_realtime_usec": 1760000000000000,
           "start_boottime_usec": 0, "duration_usec": (n + 1) * 1000000, "policy": "off", "process_source": "proc",
           "n_unknown_application": 0, "n_unresolved": 0, "n_own": 0, "n_overflows": 0,
           "volumes": [{"uuid": "u", "fstype": "ext4", "subvolume": "", "mountpoint": "/", "device": "sda", "scheduler": "none",
                        "device_class": "hdd", "rotational": True, "size_bytes": 0, "metadata_source": "none", "metadata": []}],
           "paths": {"parent": parent, "name": name},
           "files": {"path_delta": [b - a for a, b in zip([0, *rows], rows)], "volume": [0] * n, "directory": [0] * n, "inode_delta": [1] * n,
                     "size_bytes": [4096] * n, "mtime_nsec_delta": [0] * n, "resident": [[0, 4096]] * n},
           "applications": list(range(n)),
           "lifetimes": {"application": list(range(n)), "pid": [1] * n, "uid": [0] * n,
                         "start_usec": [i * 1000000 for i in range(n)], "end_usec": [-1] * n},
           "accesses": {"at_usec_delta": [1000000] * n, "file_delta": [0] + [1] * (n - 1), "application": list(range(n)),
                        "kind": [1] * n}}, sys.stdout)
END
}

@test "plot: draws the newest trace, and an older one next to it, well-formed with hostile names" {
    need_command xmllint
    hostile boot control >"$HS_STATE/traces/20251009T085320-boot.json"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    run --separate-stderr -0 hs plot boot
    [ -z "$stderr" ]
    xmllint --noout - <<<"$output"
    [[ $output == *"&gt;&lt;script&gt;alert(1)"* && $output == *'\u{202e}gpj.sh'* && $output == *"日本"* ]]
    [[ $output != *"<script"* && $output != *$'\u202e'* ]]
    [[ $output == *"The time of the replay was not recorded."* && $output != *"Replay was off"* ]]
    run -0 hs plot boot --compare=control
    xmllint --noout - <<<"$output"
    [[ $output == *"Replay was off."* && $output == *'id="timeline-2-title"'* ]]
    run -0 hs plot "$HS_STATE/traces/20251009T085320-boot.json" -o "$HS_TMP/plot.svg"
    [ -z "$output" ]
    xmllint --noout "$HS_TMP/plot.svg"
    # The picture names applications.
    [ "$(stat -c %a "$HS_TMP/plot.svg")" = 600 ]
}

@test "plot: a trace that cannot be drawn costs one clear line" {
    refused 1 "no trace of a boot" plot boot
    refused 2 "no such stage: 'lunch'" plot lunch
    refused 1 "/nowhere/trace.json" plot /nowhere/trace.json
    echo '{' >"$HS_TMP/bad.json"
    refused 1 "bad.json: " plot "$HS_TMP/bad.json"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    refused 1 "no trace of a boot without replay" plot boot --compare=control
    refused 1 "nowhere" plot boot --output=/nowhere/x.svg
    rm -r "$HS_STATE"
    refused 1 "nothing was recorded yet" plot boot
}

# --- the report ------------------------------------------------------------------------------------------------

AXE=axe-core@4.14.1

# Sets axe to the file of axe-core, from npm.
need_axe() {
    need_command chromium npm
    grep -q __asan_init "$HEADSTART" && skip "the sanitizers are libraries, and do not change the page"
    (cd "$HS_TMP" && timeout 60 npm pack --silent $AXE && tar -xzf axe-core-*.tgz) >"$HS_TMP/npm" 2>&1 ||
        skip "npm cannot fetch $AXE"
    axe=$HS_TMP/package/axe.min.js
}

# Makes a state: a history, hostile traces, and the model that was learned from them.
make_state() {
    "$BATS_TEST_DIRNAME/check-benefit" make 1 300 >"$HS_STATE/history.jsonl"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    hostile login >"$HS_STATE/traces/20251010T085420-login.json"
    hs learn --quiet
}

@test "report: an independent computation gives every figure" {
    local seed n
    for seed in 1 2; do
        for n in 0 1 20 150 1700; do
            "$BATS_TEST_DIRNAME/check-benefit" make $seed $n >"$HS_STATE/history.jsonl"
            hs report -o "$HS_TMP/report.html"
            "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/report.html"
        done
    done
    # The check fails for a wrong figure.
    sed -E 's/value="[^"]*" data-figure="boot.saved_low"/value="0.5" data-figure="boot.saved_low"/' \
        "$HS_TMP/report.html" >"$HS_TMP/wrong.html"
    run ! "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/wrong.html"
}

@test "report: the page is well-formed and needs no other file, with hostile names of files" {
    need_command xmllint
    make_state
    run --separate-stderr -0 hs report
    [ -z "$stderr" ]
    printf '%s\n' "$output" >"$HS_TMP/report.html"
    xmllint --noout "$HS_TMP/report.html"
    [[ $output == *"/x&lt;/script&gt;&lt;script&gt;alert(1)"* && $output == *'\u{202e}gpj.sh'* ]]
    [[ $output != *"<script"* && $output != *$'\u202e'* && $output != *"http:"*"//"*".css"* ]]
    run -1 grep -oE '(src|href)="[^#"]+"|url\(|@import' "$HS_TMP/report.html"
    [ "$(stat -c %s "$HS_TMP/report.html")" -lt 500000 ]
    # Every id is unique, and every reference finds its id.
    run -0 python3 - "$HS_TMP/report.html" <<'END'
import re, sys
page = open(sys.argv[1]).read()
ids = re.findall(r' id="([^"]*)"', page)
assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
used = [i for v in re.findall(r' (?:aria-labelledby|aria-describedby)="([^"]*)"', page) for i in v.split()]
used += re.findall(r' href="#([^"]*)"', page)
assert used and set(used) <= set(ids), set(used) - set(ids)
END
    /usr/bin/python3 -c 'import html5lib' 2>/dev/null || skip "needs python3-html5lib"
    /usr/bin/python3 -c 'import html5lib, sys; html5lib.HTMLParser(strict=True).parse(open(sys.argv[1], encoding="utf-8"))' \
        "$HS_TMP/report.html"
}

@test "report: in Chromium, at three widths, in light and dark, axe-core finds nothing and the page does not scroll sideways" {
    need_axe
    make_state
    hs report -o "$HS_TMP/report.html"
    "$HS_SOURCE/tests/page/check" "$axe" "$HS_TMP/report.html"
    # The check fails for a picture without a name and for a table that is too wide.
    sed 's/ role="img" aria-labelledby="[^"]*"/ role="img"/; s|<main |<div style="width:2000px">x</div><main |; s|<title [^>]*>[^<]*</title>||g' \
        "$HS_TMP/report.html" >"$HS_TMP/bad.html"
    run -1 "$HS_SOURCE/tests/page/check" "$axe" "$HS_TMP/bad.html"
    echo "$output"
    [[ $output == *"axe: "* && $output == *"pixels wide"* ]]
}

@test "report: a state that is missing or cannot be used costs one clear line" {
    rm -r "$HS_STATE"
    refused 1 "nothing was recorded yet" report
    mkdir -m 0700 -p "$HS_STATE/traces"
    refused 1 "/nowhere/x.html" report -o /nowhere/x.html
    echo '{' >"$HS_STATE/model.json"
    run --separate-stderr -0 hs report
    assert_one_error_line "$stderr"
    [[ $output == *"It is too early to say"* ]]
}

# SPDX-License-Identifier: LGPL-2.1-or-later
# Pictures of recorded stages.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command python3
    mkdir -m 0700 -p "$HS_STATE/traces"
}

teardown() {
    hs_teardown
}

# hostile STAGE [FLAG…] >TRACE: prints a trace of files and applications with hostile names, one per
# second.
hostile() {
    python3 - "$@" <<'END'
import json, sys
# The path of the first is /x</script>…
names = ["script><script>alert(1)", "\u202egpj.sh", "]]>&amp;'\"", "a%0Ab%1B[31m%FF", "日本", "x" * 255]
n = len(names)
json.dump({"format": "headstart-trace", "version": 1, "stage": sys.argv[1], "flags": sys.argv[2:], "boot_id": "0" * 32,
           "kernel": "", "distribution": "", "uid": -1, "start_realtime_usec": 1760000000000000,
           "start_boottime_usec": 0, "duration_usec": (n + 1) * 1000000, "policy": "off", "process_source": "proc",
           "n_unknown_application": 0, "n_unresolved": 0, "n_own": 0, "n_overflows": 0,
           "volumes": [{"uuid": "u", "fstype": "ext4", "subvolume": "", "mountpoint": "/", "device": "sda", "scheduler": "none",
                        "device_class": "hdd", "rotational": True, "size_bytes": 0, "metadata_source": "none", "metadata": []}],
           "paths": {"parent": [0] * (n + 2) + [n + 1], "name": ["", *names[1:], "-", "x<", names[0]]},
           "files": {"path_delta": [n + 2] + [-n - 1] + [1] * (n - 2), "volume": [0] * n, "directory": [0] * n, "inode_delta": [1] * n,
                     "size_bytes": [4096] * n, "mtime_nsec_delta": [0] * n, "resident": [[0, 4096]] * n},
           "applications": list(range(n)),
           "lifetimes": {"application": list(range(n)), "pid": [1] * n, "uid": [0] * n,
                         "start_usec": [i * 1000000 for i in range(n)], "end_usec": [-1] * n},
           "accesses": {"at_usec_delta": [1000000] * n, "file_delta": [0] + [1] * (n - 1), "application": list(range(n)),
                        "kind": [1] * n}}, sys.stdout)
END
}

@test "plot: the newest trace, an older one beside it, well-formed with hostile names" {
    need_command xmllint
    hostile boot control >"$HS_STATE/traces/20251009T085320-boot.json"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    run --separate-stderr -0 hs plot boot
    [ -z "$stderr" ]
    xmllint --noout - <<<"$output"
    [[ $output == *"&gt;&lt;script&gt;alert(1)"* && $output == *'\u{202e}gpj.sh'* && $output == *"日本"* ]]
    [[ $output != *"<script"* && $output != *$'\u202e'* ]]
    [[ $output == *"When replay read what was not recorded."* && $output != *"Replay was off"* ]]
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

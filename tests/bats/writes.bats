# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests how many bytes headstart writes for a boot and a login.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
}

# Makes as many files as the boot (500) and the login (1,050) of an XFCE desktop read. 29 of them
# are the user's own. The names are drawn from a fixed seed. Writes the lists of paths to
# $HS_TMP/boot and $HS_TMP/login.
desktop() {
    hs_filesystem ext4 512
    python3 - "$HS_MNT" "$HS_TMP" <<'END'
import os, random, sys

root, lists = sys.argv[1:]
draw = random.Random(1)
syllables = [a + b for a in "bcdfglmnprstx" for b in "aeiou"]
content = draw.randbytes(1 << 20)


def word():
    return "".join(draw.choices(syllables, k=draw.randint(2, 5)))


def make(stage, n, places, owner=0):
    paths = []
    for _ in range(n):
        path = draw.choice(places) % (word(), word())
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "wb") as f:
            f.write(content[:draw.randint(1, 40) * 4096])
        os.chown(root + path, owner, owner)
        paths.append(path)
    with open(f"{lists}/{stage}", "a") as f:
        f.write("".join(f"{p}\n" for p in paths))


system = ["/usr/lib/x86_64-linux-gnu/lib%s-%s.so.0", "/usr/lib/systemd/system/%s-%s.service", "/usr/bin/%s-%s",
          "/etc/%s/%s.conf"]
make("boot", 500, system)
make("login", 1021, system + ["/usr/share/icons/%s/48x48/apps/%s.png", "/usr/share/fonts/truetype/%s/%s.ttf"])
make("login", 29, ["/home/user/.config/%s/%s.xml"], 1000)
END
    sync -f "$HS_MNT"
}

# trace_of STAGE UID SECONDS: prints a trace like that of the recorder, with random times and ranges
trace_of() {
    mapfile -t paths <"$HS_TMP/$1"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" "$1" "$3" "${paths[@]}" |
        python3 -c '
import json, random, sys
trace, draw = json.load(sys.stdin), random.Random(sys.argv[2])
trace["uid"] = int(sys.argv[1])
for r in trace["files"]["resident"]:
    if r and r[1] > 32768 and draw.random() < 0.4:
        hole = draw.randint(1, r[1] // 8192) * 4096
        r[:] = [0, 16384, hole, max(r[1] - 16384 - hole, 4096)]
a = trace["accesses"]
a["at_usec_delta"] = [draw.randint(20, 9000) for _ in a["kind"]]
json.dump(trace, sys.stdout, separators=(",", ":"))' "$2" "$3"
}

# recorded STAGE UID SECONDS: puts the trace that trace_of prints into the state directory
recorded() {
    trace_of "$@" | gzip -n >"$HS_STATE/traces/$(date -u -d "@$3" +%Y%m%dT%H%M%S)-$1.json"
}

# written COMMAND…: prints how many bytes the command writes into files of the state directory
written() {
    strace -f -y -e trace=write,pwrite64,writev,copy_file_range -o "$HS_TMP/strace" "$@" >/dev/null || return
    grep -F "<$HS_STATE/" "$HS_TMP/strace" | awk '{ bytes += $NF } END { print bytes + 0 }'
}

@test "a boot and a login of a desktop write less than 300 kB" {
    local traces plain learned planned
    need_strace
    desktop
    mkdir -p "$HS_STATE/traces"
    recorded boot -1 1793520000
    recorded login 1000 1793520030
    hs learn --quiet
    hs plan --quiet --root="$HS_MNT"
    [ -s "$HS_STATE/login@1000.pack" ]

    recorded boot -1 1793606400
    recorded login 1000 1793606430
    traces=$(cat "$HS_STATE"/traces/20261102*.json | wc -c)
    learned=$(written "$HEADSTART" --state="$HS_STATE" learn --quiet)
    planned=$(written "$HEADSTART" --state="$HS_STATE" plan --quiet --root="$HS_MNT")
    plain=$(zcat -f "$HS_STATE"/*.pack "$HS_STATE"/traces/20261102*.json "$HS_STATE/model.json" | wc -c)
    echo "# traces $traces, learn $learned, plan $planned bytes; the content has $plain" >&3
    [ "$plain" -gt 500000 ] # The fixture is as large as a desktop's files.
    [ "$learned" -gt 0 ]
    [ "$planned" -gt 0 ]
    [ $((traces + learned + planned)) -lt 300000 ]
}

# SPDX-License-Identifier: LGPL-2.1-or-later
# What an unprivileged user may prepare for root's commands: names that a terminal would interpret, and
# symlinks where output goes.

load helpers
bats_require_minimum_version 1.5.0

# An escape sequence, a line of its own, control characters of 8 bits as UTF-8 and as a byte, an
# override of the direction of text, markup, and a format of printf.
EVIL=$'a\nFAKE\e[31m\u009b31m\x9b31m\u202e<b>&"\'%n%s'
# The same as UTF-8, with a hidden character of four bytes
VALID=$'a\nFAKE\e[31m\u009b31m\u202e\U000e0041<b>&"\'%n%s'

setup() {
    hs_setup
    need_root
}

# Records, learns and plans a boot and a login that read hostile names.
hostile_machine() {
    local stage
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/$EVIL" "$HS_STATE/traces"
    cp "$(command -v cat)" "$HS_MNT/$EVIL/$EVIL"
    head -c 300000 /dev/urandom >"$HS_MNT/$EVIL/file"
    head -c 300000 /dev/urandom >"$HS_MNT/$VALID"
    sync -f "$HS_MNT"
    for stage in boot login session; do
        hs record --root="$HS_MNT" --stage=$stage --quiet -- "$HS_MNT/$EVIL/$EVIL" "$HS_MNT/$EVIL/file" \
            "$HS_MNT/$VALID" >/dev/null
    done
    hs learn --quiet
    hs plan --root="$HS_MNT" --quiet
}

# clean: succeeds if standard input is UTF-8, has no control character but tabs and newlines, and no
# line that the name begins.
clean() {
    python3 -c '
import sys, unicodedata
text = sys.stdin.buffer.read().decode()
bad = sorted({hex(ord(c)) for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t" or c in "\u202e\U000e0041"})
if bad or any(line.startswith("FAKE") for line in text.split("\n")):
    sys.exit("not clean: %s\n%s" % (bad, ascii(text)))'
}

@test "names reach no output with anything that a terminal, a page or a log interprets" {
    export LC_ALL=C.UTF-8
    hostile_machine
    local login json stream
    login=$(ls "$HS_STATE"/traces/*-login.json)
    # The arguments of a command are separated by "|".
    while IFS='|' read -ra command; do
        for json in off pretty; do
            hs "${command[@]}" --json=$json >"$HS_TMP/out" 2>"$HS_TMP/err" || true
            for stream in out err; do
                clean <"$HS_TMP/$stream" || {
                    echo "standard $stream of headstart ${command[*]@Q} --json=$json"
                    false
                }
            done
        done
    done <<END
show|$login
show|$HS_STATE/model.json
show|$HS_STATE/login.pack
plan|--root=$HS_MNT|--dry-run
replay|--root=$HS_MNT|--dry-run|--stage=login
relocate|--root=$HS_MNT|--force|--dry-run
refresh|--root=$HS_MNT
plot|login
plot|$login
explain
report
status|--root=$HS_MNT
history
doctor|--root=$HS_MNT
metrics
learn|--rebuild
END
    # Names in arguments and in errors.
    for command in show explain learn replay; do
        hs "$command" "$HS_MNT/$EVIL/$EVIL" >"$HS_TMP/out" 2>&1 || true
        clean <"$HS_TMP/out"
    done
    hs explain --root="$HS_MNT" "/$EVIL/file" >"$HS_TMP/out" 2>&1
    clean <"$HS_TMP/out"
    hs plot login "/$EVIL/$EVIL" >"$HS_TMP/out" 2>&1 || true
    clean <"$HS_TMP/out"
    cp "$HS_STATE/login.pack" "$HS_TMP/$EVIL.pack"
    "$HEADSTART_REPLAY" --root="$HS_MNT" "$HS_TMP/$EVIL.pack" >"$HS_TMP/out" 2>&1
    clean <"$HS_TMP/out"
    # JSON gives the bytes of a name back.
    hs show --json=short "$login" | jq -r '.files[].path' | python3 -c '
import os, sys, urllib.parse
names = [urllib.parse.unquote_to_bytes(line.rstrip("\n")) for line in sys.stdin]
assert b"/" + os.fsencode(sys.argv[1]) + b"/file" in names, names' "$EVIL"
    hs show --json=short "$login" | jq -e --arg name "/$VALID" 'any(.files[]; .path == $name)'
}

@test "no verb writes through a symlink, or into a directory, that somebody else has made in a sticky directory" {
    local sticky=$HS_TMP/sticky verb argument place daemon refused=0
    need_binary "$HS_BUILD/tests/tools/tool-mkpack"
    hs_filesystem ext4 64
    echo x >"$HS_MNT/file"
    hs record --root="$HS_MNT" --stage=boot --quiet -- cat "$HS_MNT/file" >/dev/null
    hs learn --quiet
    mkdir -m 1777 "$sticky"
    echo mine >"$HS_TMP/victim"
    mkdir "$HS_TMP/victims"
    ln -s "$HS_TMP/victim" "$sticky/link"
    ln -s "$HS_TMP/victims" "$sticky/directories"
    mkdir "$sticky/theirs"
    chown -h 4711 "$sticky"/*

    # Each verb that has --output=FILE, with the arguments that it needs. A new verb needs a line.
    for verb in $(hs --help | awk '/^  [a-z]+ / { print $1 }'); do
        hs "$verb" --help | grep -qE -- '--output=' || continue
        argument=()
        case $verb in
        record) argument=(--root="$HS_MNT" -- true) ;;
        merge) argument=("$HS_STATE/model.json") ;;
        plot) argument=(boot) ;;
        export | metrics | report) ;;
        *) false ;;
        esac
        echo "$verb"
        run -1 hs "$verb" --output="$sticky/link" "${argument[@]}"
        [[ $output == *"Permission denied"* ]]
        run -1 hs "$verb" --output="$sticky/directories/new" "${argument[@]}"
        [[ $output == *"Permission denied"* ]]
        # The same verb writes to a place that nobody else can prepare.
        hs "$verb" --output="$HS_TMP/own" "${argument[@]}"
        [ -s "$HS_TMP/own" ]
        refused=$((refused + 1))
    done
    [ "$refused" -ge 6 ]
    # The state directory of every verb that makes one, and of headstartd.
    for verb in learn import record; do
        case $verb in
        import) argument=("$HS_STATE/model.json") ;;
        record) argument=(--root="$HS_MNT" -- true) ;;
        *) argument=() ;;
        esac
        for place in directories directories/ directories/. directories/new theirs theirs/; do
            echo "$verb $place"
            run -1 "$HEADSTART" --state="$sticky/$place" "$verb" "${argument[@]}"
            [[ $output == *"Permission denied"* ]]
        done
    done
    hs_listen "$HS_TMP/notifications"
    NOTIFY_SOCKET=$HS_TMP/notify "$HEADSTARTD" --root="$HS_MNT" --state="$sticky/directories" \
        --run="$sticky/theirs" --stage=boot 2>"$HS_TMP/daemon.log" 3>&- &
    daemon=$!
    hs_defer hs_kill $daemon
    hs_wait 10 grep -q READY=1 "$HS_TMP/notifications"
    kill -TERM $daemon
    wait $daemon || true
    grep -q "$sticky/theirs cannot be used, continuing without it: Permission denied" "$HS_TMP/daemon.log"
    grep -v continuing "$HS_TMP/daemon.log" | grep -q 'Permission denied'
    # headstart-replay goes on without its report, and leaves the link.
    "$HS_BUILD/tests/tools/tool-mkpack" "$HS_TMP/pack" </dev/null
    "$HEADSTART_REPLAY" --status="$sticky/link" "$HS_TMP/pack"
    "$HEADSTART_REPLAY" --status="$sticky/directories/new" "$HS_TMP/pack"
    "$HEADSTART_REPLAY" --marker="$sticky/link" "$HS_TMP/pack"
    # The kernel protects only sticky directories (fs.protected_symlinks), and the marker follows no symlink.
    ln -s "$HS_TMP/victims/new" "$HS_TMP/marker"
    "$HEADSTART_REPLAY" --marker="$HS_TMP/marker" "$HS_TMP/pack"
    [ -z "$(find "$HS_TMP/victims" "$sticky/theirs" -mindepth 1)" ]
    [ "$(<"$HS_TMP/victim")" = mine ]
}

# SPDX-License-Identifier: LGPL-2.1-or-later
# These tests inject some failing calls, kills and errors of disks; tests/run --full injects many
# more (docs/reliability.md).

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_loop
    need_command mkfs.ext4
}

# Call sites are identified by unwinding the stack.
need_inject() {
    need_binary "$HS_BUILD/tests/faults/libfaults.so"
    grep -q __asan_init "$HEADSTART" || skip "programs without the sanitizers have no unwind tables"
}

# inject [OPTION…] SCENARIO: lets one call site in 24 fail, unless an option --every= says otherwise.
inject() {
    need_inject
    "$HS_SOURCE/tests/faults/inject" --build="$HS_BUILD" --every=24 "$@"
}

@test "faults: learn survives failing calls, and loses nothing" {
    need_inject
    # A run without time fails, and the next run continues.
    run -1 inject --keep="$HS_TMP/kept" --seconds=0 learn
    [[ $output == *" call sites were not tried "* ]] || {
        echo "$output"
        false
    }
    inject --keep="$HS_TMP/kept" learn
}

@test "faults: plan survives failing calls, and loses nothing" {
    inject plan
}

@test "faults: refresh survives failing calls, and loses nothing" {
    inject refresh
}

@test "faults: replay survives failing calls" {
    inject replay
}

@test "faults: status survives failing calls" {
    inject status
}

@test "faults: record survives failing calls, and loses nothing" {
    inject record
}

@test "faults: forget survives failing calls, and loses nothing of other users" {
    inject forget
}

@test "faults: the session cycle survives failing calls, and loses nothing" {
    inject --every=96 --errors=1 session
}

@test "faults: headstartd that follows systemd and logind survives failing calls, and loses nothing" {
    need_command dbus-daemon
    need_binary "$HS_BUILD/tests/tools/tool-fake-logind"
    inject --every=400 --errors=1 auto
}

@test "faults: headstart-init survives failing calls, and the boot goes on" {
    inject early
}

@test "faults: kills of every verb that writes the state, of replay and of headstartd lose nothing" {
    "$HS_SOURCE/tests/faults/kill" --build="$HS_BUILD" 30
}

@test "faults: a state that is half written is found" {
    local file
    run_check() {
        python3 -B - "$HS_SOURCE/tests/faults" "$HS_BUILD" "$HS_TMP/half" <<'END'
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import world
class There:
    programs, environment, root = world.Programs(sys.argv[2]), None, "/"
    verb = world.World.verb
try:
    world.check_state(There(), pathlib.Path(sys.argv[3]), {"history.jsonl"})
except world.Broken as e:
    sys.exit(str(e))
END
    }
    mkdir -m 700 "$HS_TMP/half"
    umask 077
    line='{"version":1,"stage":"boot","flags":[],"policy":"off","usage":"none","start_realtime_usec":1789000000000000}'
    # A last line that is not complete is permitted.
    printf '%s\n%s' "$line" "${line:0:40}" >"$HS_TMP/half/history.jsonl"
    echo '{"devices":[]}' >"$HS_TMP/half/devices.json"
    run -0 run_check
    for file in history.jsonl history.1.jsonl launches.jsonl devices.json; do
        [ ! -e "$HS_TMP/half/$file" ] || mv "$HS_TMP/half/$file" "$HS_TMP/kept"
        printf '{"version":1,"sta\n' >"$HS_TMP/half/$file"
        run -1 run_check
        [[ $output == "$file"* ]]
        # A line that is complete, but that headstart refuses.
        printf '{"version":1}\n' >"$HS_TMP/half/$file"
        [[ $file == devices.json ]] || run -1 run_check
        printf '%s\n%s' "$line" "${line:0:40}" >"$HS_TMP/half/$file"
        [[ $file == history.jsonl ]] || run -1 run_check
        rm "$HS_TMP/half/$file"
        [ ! -e "$HS_TMP/kept" ] || mv "$HS_TMP/kept" "$HS_TMP/half/$file"
    done
    rm "$HS_TMP/half/history.jsonl"
    run -1 run_check
    [[ $output == "history.jsonl is lost" ]]
}

@test "faults: a loop device that another program detaches is named, and is not detached again" {
    run -1 python3 -B - "$HS_SOURCE/tests/faults" "$HS_TMP/image" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import world
with open(sys.argv[2], "wb") as f:
    f.truncate(1 << 20)
with world.loop_device(sys.argv[2]) as loop:
    pass
try:
    with world.loop_device(sys.argv[2]) as loop:
        world.run("losetup", "--detach", loop)
        world.run("false")
except world.Broken as e:
    sys.exit(f"{e} ({e.__cause__})".replace(loop, "LOOP"))
END
    [[ $output == "another program detached LOOP from image while it was in use (Command '['false']' "* ]]
    [ -z "$(losetup --associated "$HS_TMP/image")" ]
}

@test "faults: power cuts while headstart records, learns, plans and refreshes lose nothing" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    need_command dbus-daemon
    need_binary "$HS_BUILD/tests/bench/disksim" "$HS_BUILD/tests/tools/tool-fake-logind"
    "$HS_SOURCE/tests/faults/powercut" --build="$HS_BUILD" --cuts=16
}

@test "faults: power cuts while relocate moves files lose nothing" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    need_binary "$HS_BUILD/tests/bench/disksim"
    "$HS_SOURCE/tests/faults/powercut" --build="$HS_BUILD" --cuts=12 --relocate
}

@test "faults: a disk whose reads hang, fail, come late or in part holds no boot beyond the deadline" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    need_binary "$HS_BUILD/tests/bench/disksim" "$HS_BUILD/tests/tools/tool-mkpack"
    # The margin is larger than the default, because the machine that runs the tests may be busy. It
    # is smaller than the time that a late read takes beyond the deadline, so a boot that waits for
    # such a read still fails the test.
    hs_own_cache # it drops caches
    "$HS_SOURCE/tests/faults/lying-disk" --build="$HS_BUILD" --margin=0.9 --quick
}

@test "load: 500,000 opens of four users in six seconds displace no file of a fifth user or of root" {
    need_binary "$HS_BUILD/tests/tools/tool-open-files"
    need_memory_limits
    "$HS_SOURCE/tests/faults/load-events" --build="$HS_BUILD" 500000 6
}

@test "load: a model of 8,000 files of twenty users stays within the memory of the units" {
    need_memory_limits
    "$HS_SOURCE/tests/faults/load-files" --build="$HS_BUILD" 8000
}

@test "load: 60 boots and logins leave a bounded state" {
    "$HS_SOURCE/tests/faults/load-boots" --build="$HS_BUILD" 60
}

@test "security: every test that docs/security.md names exists" {
    local line file name n=0
    while IFS= read -r line; do
        file=${line#*\`} file=${file%%\`*}
        name=${line#*: } name=${name% |}
        case $file in
        *.bats) grep -qF "@test \"$name" "$HS_SOURCE/tests/bats/$file" ;;
        *.c) grep -qF "cmocka_unit_test($name)" "$HS_SOURCE"/tests/unit/*/"$file" ||
            grep -qwF -e "TEST($name)" "$HS_SOURCE"/tests/unit/*/"$file" ;;
        esac || {
            echo "$file has no test: $name"
            false
        }
        n=$((n + 1))
    done < <(grep -oE '`[a-z-]+\.(bats|c)`: .* \|$' "$HS_SOURCE/docs/security.md")
    [ "$n" -ge 80 ]
    # Every promise names a test.
    run -1 grep -nE '^\| ' <(grep -vE '^\| (promise|---) |`[a-z-]+\.(bats|c)`: .* \|$' "$HS_SOURCE/docs/security.md")
}

# SPDX-License-Identifier: LGPL-2.1-or-later
# Failing calls, kills and lying disks, a few of each; tests/run --full tries all (docs/reliability.md).

load helpers

setup() {
    hs_setup
    need_loop
    need_command mkfs.ext4
}

teardown() {
    hs_teardown
}

# inject SCENARIO: one call site in 24 fails. Call sites are found by unwinding the stack.
inject() {
    need_binary "$HS_BUILD/tests/faults/libfaults.so"
    grep -q __asan_init "$HEADSTART" || skip "programs without the sanitizers have no unwind tables"
    "$HS_SOURCE/tests/faults/inject" --build="$HS_BUILD" --every=24 "$@"
}

@test "faults: learn survives failing calls, and loses nothing" {
    inject learn
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

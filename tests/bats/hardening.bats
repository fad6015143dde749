# SPDX-License-Identifier: LGPL-2.1-or-later
# The programs are built with the protections that compiler and linker offer. The tests read this
# from the ELF files.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_command readelf nm
    PROGRAMS=("$HEADSTART" "$HEADSTARTD" "$HEADSTART_REPLAY" "$HS_BUILD/src/evaluate/headstart-evaluate"
        "$HS_BUILD/src/early/headstart-init" "$HS_BUILD/src/bus/headstart-bus"
        "$HS_BUILD/src/daemon/is-login")
}

# option NAME: prints the value of a build option of meson.
option() {
    meson introspect --buildoptions "$HS_BUILD" | jq -r --arg n "$1" '.[] | select(.name == $n).value'
}

# fails PROGRAM WHAT: prints the failed check, and fails
fails() {
    echo "$(basename "$1"): $2"
    return 1
}

@test "these tests check every installed program" {
    local built checked
    built=$(jq -r '.[] | select(.installed and .type == "executable").name' "$HS_BUILD/meson-info/intro-targets.json" | sort)
    checked=$(basename -a "${PROGRAMS[@]}" | sort)
    [ "$built" = "$checked" ]
}

@test "position-independent, relocations read-only after the start, no executable stack" {
    local p
    for p in "${PROGRAMS[@]}"; do
        readelf --file-header --wide "$p" | grep -q 'Type: *DYN ' || fails "$p" "not position-independent"
        readelf --dynamic --wide "$p" >"$HS_TMP/dynamic"
        grep -q '(FLAGS_1).* PIE' "$HS_TMP/dynamic" || fails "$p" "no PIE"
        # Full RELRO: all symbols are bound at the start, then the global offset table becomes
        # read-only.
        grep -q '(FLAGS_1).* NOW' "$HS_TMP/dynamic" || fails "$p" "bound lazily"
        readelf --program-headers --wide "$p" >"$HS_TMP/headers"
        grep -q 'GNU_RELRO' "$HS_TMP/headers" || fails "$p" "no RELRO"
        grep -q 'GNU_STACK.* RW ' "$HS_TMP/headers" || fails "$p" "executable stack"
        run ! grep -qE 'TEXTREL|RPATH|RUNPATH' "$HS_TMP/dynamic"
    done
}

@test "stack protector and fortified functions" {
    [ "$(option optimization)" != 0 ] || skip "_FORTIFY_SOURCE needs optimization"
    local p
    for p in "${PROGRAMS[@]}"; do
        # A statically linked program contains the functions itself. This proves less, because libc
        # calls some of them, too.
        if readelf --dynamic "$p" | grep -q '(NEEDED)'; then
            nm --dynamic "$p" | sed -n 's/.* U //p'
        else
            nm "$p" | sed -n 's/.* T //p'
        fi >"$HS_TMP/symbols"
        grep -q '^__stack_chk_fail' "$HS_TMP/symbols" || fails "$p" "no stack protector"
        # is-login calls no function that could be fortified.
        [[ $p == */is-login ]] || grep -qE '^__[a-z]+_chk(@|$)' "$HS_TMP/symbols" || fails "$p" "nothing fortified"
    done
}

@test "every object: stack clash protection, branch protection, _FORTIFY_SOURCE=3" {
    local flag
    jq -r '.[] | select(.file | test("src/")) | .command' "$HS_BUILD/compile_commands.json" >"$HS_TMP/commands"
    [ "$(wc -l <"$HS_TMP/commands")" -gt 50 ]
    local flags=(-fstack-protector-strong -fstack-clash-protection)
    [ "$(uname -m)" = x86_64 ] && flags+=(-fcf-protection=full)
    [ "$(uname -m)" = aarch64 ] && flags+=(-mbranch-protection=standard)
    [ "$(option optimization)" = 0 ] || flags+=(-D_FORTIFY_SOURCE=3)
    for flag in "${flags[@]}"; do
        run -1 grep -nvF -e " $flag " "$HS_TMP/commands"
    done
}

@test "x86-64: functions begin with endbr64" {
    [ "$(uname -m)" = x86_64 ] || skip "not x86-64"
    need_command objdump
    local p
    for p in "${PROGRAMS[@]}"; do
        objdump --disassemble=main "$p" | grep -A 1 '<main>:' | grep -q endbr64 ||
            fails "$p" "main() without endbr64"
    done
}

# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests that the units, the files that meson installs, and the packages agree. Also tests what the
# sandboxes of the units allow.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    cd "$HS_SOURCE" || return
}

@test "systemd-analyze verify finds no fault in the units" {
    need_command systemd-analyze
    local dir=$HS_TMP/units u
    mkdir "$dir"
    for u in "$HS_BUILD"/units/headstart-*.{service,timer,path}; do
        # Copies the units as they are installed, but with the programs of the build tree.
        sed -e "s|=/[^ ]*/headstartd|=$HEADSTARTD|" \
            -e "s|=/[^ ]*/headstart-replay |=$HEADSTART_REPLAY |" \
            -e "s|=/[^ ]*/headstart-bus$|=$HS_BUILD/src/bus/headstart-bus|" \
            -e "s|=/[^ ]*/is-login |=$HS_BUILD/src/daemon/is-login |" -e "s|=/[^ ]*/headstart |=$HEADSTART |" "$u" >"$dir/$(basename "$u")"
    done
    need_binary "$HEADSTART" "$HEADSTARTD" "$HEADSTART_REPLAY"
    SYSTEMD_UNIT_PATH=$dir: run systemd-analyze verify --man=no "$dir"/*
    echo "$output"
    [ "$status" -eq 0 ]
    # Faults of the machine's own units do not count: only lines that name headstart do.
    ! grep -i headstart <<<"$output" || false
    # Each number is the highest exposure that the unit may have: ten times the value on systemd's
    # scale of 0 to 10.
    for u in record:35 replay-boot:20 replay-login:20 replay-user@:20 learn:20 plan:20 refresh:20 bus:18; do
        run systemd-analyze security --offline=yes --threshold="${u#*:}" "$dir/headstart-${u%:*}.service"
        sed -n '$s/^[^[:alnum:]]*/# /p' <<<"$output" >&3
        [ "$status" -eq 0 ]
    done
}

@test "the commands of a unit end before its start would time out" {
    local u line waits limit
    run -0 grep -lE '^Exec(Condition|StartPre)=' "$HS_BUILD"/units/headstart-*.service
    for u in "${lines[@]}"; do
        limit=$(sed -n 's/^TimeoutStartSec=\([0-9]*\)s$/\1/p' "$u")
        waits=0
        while read -r line; do
            # is-login has a limit of its own.
            if [[ $line == *=/*/is-login\ * ]]; then
                waits=$((waits + $(sed -n 's/^#define ANSWER_USEC (\([0-9]*\) .*/\1/p' "$HS_SOURCE/src/daemon/is-login.c")))
                continue
            fi
            [[ $line =~ =[-+]*timeout\ ([0-9]+)\  ]]
            waits=$((waits + BASH_REMATCH[1]))
        done < <(grep -E '^Exec(Condition|StartPre)=' "$u")
        ((waits > 0 && waits < limit))
    done
}

@test "no command of a unit runs outside the sandbox of the unit" {
    # "+" and "!" lift parts of it (systemd.service(5)).
    run -0 grep -hE '^Exec[A-Za-z]*=' "$HS_BUILD"/units/headstart-*.service
    run -1 grep -E '^[A-Za-z]*=[-:@|]*[+!]' <<<"$output"
}

@test "the sandboxes of units hide no file that headstart must find" {
    local u
    for u in "$HS_BUILD"/units/headstart-*.service; do
        # RestrictSUIDSGID= makes openat2(2) fail, and ProtectKernelModules= hides the modules. ProtectHome=
        # mounts /home again, so that its files are not the recorded ones. If /home is a symlink to a directory
        # below an automount, ProtectHome= and the directives of the second pattern trigger this automount
        # (docs/decisions.md).
        ! grep -E '^(RestrictSUIDSGID|ProtectKernelModules|ProtectHome)=' "$u" || false
        ! grep -E '^ProtectSystem=strict|^[A-Z][A-Za-z]*Paths=.*/home' "$u" || false
        grep -q '^ReadOnlyPaths=/ -/run -/dev$' "$u"
    done
}

@test "every unit can be switched off on the kernel command line and has a time limit" {
    local u
    for u in "$HS_BUILD"/units/headstart-*.{service,timer,path}; do
        if [[ $u == */headstart-bus.service ]]; then
            # headstart-bus also answers while headstart is switched off. Only a call on the bus
            # starts it.
            ! grep -qE '^\[Install\]|^Condition' "$u" || false
            grep -qx "BusName=$(sed -n 's/^Name=//p' data/dbus/org.headstart1.service)" "$u"
            grep -qx "SystemdService=${u##*/}" data/dbus/org.headstart1.service
            run -1 grep -rl headstart-bus "$HS_BUILD"/units/headstart-[!b]* data/90-headstart.preset
        else
            grep -q '^ConditionKernelCommandLine=!headstart=0$' "$u"
            grep -q '^ConditionPathExists=!/etc/headstart/disabled$' "$u"
        fi
        [[ $u == *.service ]] || continue
        grep -q '^TimeoutStartSec=' "$u"
        grep -q '^TimeoutStopSec=' "$u"
        grep -q '^CapabilityBoundingSet=' "$u"
        grep -q '^ReadOnlyPaths=/ -/run -/dev$' "$u"
        grep -q '^SystemCallFilter=' "$u"
        # By default a target is ordered after the units that it wants, so the target's job waits
        # for their start. With the two settings below, the target does not wait for the unit.
        if grep -qE '^WantedBy=(graphical|multi-user)\.target$' "$u"; then
            grep -q '^DefaultDependencies=no$' "$u"
            grep -q '^Type=idle$' "$u"
        fi
    done
    # Every unit that the preset enables has an [Install] section.
    while read -r _ u; do
        grep -q '^\[Install\]' "$HS_BUILD/units/$u"
    done < <(grep ^enable data/90-headstart.preset)
}

@test "a greeter that starts after the first login, as at a screen lock, starts no replay" {
    local name
    name=$(sed -n 's/^#define HAD_LOGIN *"\(.*\)"$/\1/p' src/daemon/recording-stage.c)
    [ -n "$name" ]
    grep -qx "ConditionPathExists=!/run/headstart/$name" "$HS_BUILD/units/headstart-replay-login.service"
    # A user who logs in later still has a replay.
    run -1 grep "/$name" "$HS_BUILD/units/headstart-replay-user@.service"
    grep -qx "ConditionPathExists=|/var/lib/headstart/login.pack" "$HS_BUILD/units/headstart-replay-user@.service"
}

@test "directives that units share are stated once, in units/snippets" {
    # Three consecutive directives that two sources have in common belong in a snippet.
    run -0 awk '
        FNR == 1 { a = b = "" }
        !/^[A-Z][A-Za-z]*=/ { next }
        a != "" && seen[a, b, $0]++ == 1 { print FILENAME ": " a ", " b ", " $0 }
        { a = b; b = $0 }' units/*.in units/snippets/*
    echo "$output"
    [ -z "$output" ]
    # Every snippet is used, and no installed unit contains a mark that should have been expanded.
    local snippet
    for snippet in units/snippets/*; do
        grep -rqx "@include $(basename "$snippet")@" units
    done
    run -1 grep -E '@[A-Z]+@|@include' "$HS_BUILD"/units/headstart-*.{service,timer,path}
}

@test "a unit's source with an unknown snippet, name or program is refused" {
    mkdir "$HS_TMP/snippets" "$HS_TMP/calls"
    echo '@include self@' >"$HS_TMP/snippets/self"
    printf '# a comment\nread program other\nopenat other\n' >"$HS_TMP/calls/seen"
    printf 'always: exit # a comment\nread: pread64\nopenat open: open openat\n' >"$HS_TMP/calls/equivalents"
    local text
    for text in '@include nothing@' '@include Bad@' '@include self@' 'X=@NOTHING@' '@calls nothing@' '@calls Bad@'; do
        echo "$text" >"$HS_TMP/in"
        run ! units/expand "$HS_TMP/in" "$HS_TMP/out" "$HS_TMP/snippets" "$HS_TMP/d" A=b
        [ ! -e "$HS_TMP/out" ]
    done
    echo 'X=@A@ a@b.c' >"$HS_TMP/in"
    run -0 units/expand "$HS_TMP/in" "$HS_TMP/out" "$HS_TMP/snippets" "$HS_TMP/d" A=b
    [ "$(<"$HS_TMP/out")" = 'X=b a@b.c' ]
    printf '@calls %s@\n' program other >"$HS_TMP/in"
    run -0 units/expand "$HS_TMP/in" "$HS_TMP/out" "$HS_TMP/snippets" "$HS_TMP/d"
    diff "$HS_TMP/out" - <<<$'SystemCallFilter=exit pread64 read\nSystemCallFilter=exit open openat pread64 read'
    grep -q "$HS_TMP/calls/seen $HS_TMP/calls/equivalents" "$HS_TMP/d"
}

@test "meson install with DESTDIR is complete" {
    need_command meson
    local d=$HS_TMP/dest prefix f
    DESTDIR=$d run meson install -C "$HS_BUILD" --no-rebuild --quiet
    echo "$output"
    [ "$status" -eq 0 ]
    prefix=$(meson introspect --buildoptions "$HS_BUILD" | jq -r '.[] | select(.name == "prefix").value')
    for f in bin/headstart libexec/headstart/headstartd libexec/headstart/headstart-{replay,evaluate} \
        lib/systemd/system/headstart-{record,learn,replay-boot,replay-login}.service \
        lib/systemd/system/headstart-learn.{timer,path} lib/systemd/system-preset/90-headstart.preset \
        lib/systemd/catalog/headstart.catalog lib/systemd/system/headstart-bus.service \
        share/dbus-1/system-services/org.headstart1.service share/dbus-1/system.d/org.headstart1.conf share/man/man7/headstart.journal-fields.7 \
        lib/tmpfiles.d/headstart.conf lib/headstart/headstart.conf \
        share/man/man8/headstart{,d,-replay}.8 share/man/man5/headstart.conf.5 \
        share/man/man8/headstart-{replay-boot,learn}.service.8 share/man/man8/headstart-refresh.timer.8 \
        share/bash-completion/completions/headstart libexec/headstart/rebuild-initrd \
        share/zsh/site-functions/_headstart share/fish/vendor_completions.d/headstart.fish \
        share/initramfs-tools/{hooks,scripts/local-bottom}/headstart \
        lib/dracut/modules.d/95headstart/{module-setup.sh,headstart.sh} \
        lib/initcpio/{install,hooks}/headstart \
        share/headstart/hooks/initrd/headstart-record.service; do
        [ -e "$d$prefix/$f" ] || {
            echo "missing: $f"
            find "$d" -type f
            return 1
        }
    done
}

@test "journal: the catalog, the man page and the sent entries agree" {
    need_command journalctl
    local root=$HS_TMP/root id sent described
    mkdir -p "$root/usr/lib/systemd/catalog"
    cp data/headstart.catalog "$root/usr/lib/systemd/catalog"
    run -0 journalctl --root="$root" --update-catalog
    diff <(journalctl --root="$root" --list-catalog | cut -d' ' -f1 | sort) \
        <(sed -n 's/.* = "\([0-9a-f]\{32\}\)",$/\1/p' src/base/journal.c | sort)
    for id in $(sed -n 's/.*\[\(JOURNAL_[A-Z_]*\)\] = "\([0-9a-f]\{32\}\)",$/\1:\2/p' src/base/journal.c); do
        # Finds the fields of the entry in the function that sends it.
        sent=$(grep -rhA8 "journal_entry_begin(&e, ${id%:*}," src | sed '/journal_log(\|journal_take(/,$d' |
            grep -oE 'HEADSTART_[A-Z_]+' | sort -u)
        [ -n "$sent" ]
        described=$(sed -n "/^-- ${id#*:}/,/^-- [^${id:0-32:1}]/p" data/headstart.catalog | sed '1!{/^-- /,$d}' |
            grep -oE '@HEADSTART_[A-Z_]+@' | tr -d @ | sort -u)
        [ -z "$(comm -13 <(echo "$sent") <(echo "$described"))" ]
        diff <(echo "$sent") <(sed -n "/^${id#*:}/,/^\.TP\|^\.SH/p" docs/man/headstart.journal-fields.7 |
            grep -oE 'HEADSTART_[A-Z_]+' | sort -u)
    done
    diff <(grep -rhoE '"HEADSTART_[A-Z_]+"' src/daemon src/replay src/cli | tr -d '"' | grep -v '^HEADSTART_SYSTEM_ROOT$' | sort -u) \
        <(sed -n '/^\.SH FIELDS/,/^\.SH SEE/p' docs/man/headstart.journal-fields.7 | grep -oE 'HEADSTART_[A-Z_]+' | sort -u)
}

@test "temporary files of a power cut are gone after the next boot" {
    need_command systemd-tmpfiles
    local d=$HS_TMP/root/var/lib/headstart f
    mkdir -p "$d/traces" "$HS_TMP/root/run"
    for f in model.json model.json.512.tmp login@1000.pack login@1000.pack.7.tmp boot.pack.bad \
        traces/20261121T211831-boot.json traces/20261121T211831-boot.json.99.tmp; do
        : >"$d/$f"
    done
    run systemd-tmpfiles --root="$HS_TMP/root" --remove "$PWD/data/headstart.tmpfiles"
    [ "$(find "$d" -name '*.tmp' | wc -l)" -eq 3 ] # Without --boot they stay: a running process may be writing them.
    run systemd-tmpfiles --root="$HS_TMP/root" --boot --remove "$PWD/data/headstart.tmpfiles"
    (cd "$d" && find . -type f | sort) >"$HS_TMP/left"
    diff "$HS_TMP/left" - <<'END'
./boot.pack.bad
./login@1000.pack
./model.json
./traces/20261121T211831-boot.json
END
}

# --- packages ----------------------------------------------------------------------------------

# installed OPTION…: prints what meson install installs with prefix /usr, one path per line
installed() {
    local d=$HS_TMP/dest
    run meson setup --prefix=/usr -Dtests=false "$@" "$HS_TMP/build" "$HS_SOURCE"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    # Nothing needs to be compiled for the list of installed files.
    meson introspect --installed "$HS_TMP/build" | jq -r '.[]' | sort
}

@test "the RPM's list of files contains everything that is installed, and nothing else" {
    need_command meson jq
    local f pattern covered found
    local -a patterns
    installed -Dinitrd=dracut >"$HS_TMP/installed"
    [ "$(wc -l <"$HS_TMP/installed")" -gt 20 ]
    mapfile -t patterns < <(sed -n '/^%files/,/^%changelog/p' data/packaging/rpm/headstart.spec |
        grep '^%{' | sed -e 's,%{_bindir},/usr/bin,' -e 's,%{_libexecdir},/usr/libexec,' \
            -e 's,%{_prefix},/usr,' -e 's,%{_datadir},/usr/share,' -e 's,%{_mandir},/usr/share/man,' \
            -e 's,%{_unitdir},/usr/lib/systemd/system,' -e 's,%{_tmpfilesdir},/usr/lib/tmpfiles.d,' \
            -e 's,%{_presetdir},/usr/lib/systemd/system-preset,' -e 's,/$,/*,')
    [ "${#patterns[@]}" -gt 8 ]
    while read -r f; do
        covered=no
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053 # a pattern
            [[ $f == $pattern ]] && covered=yes
        done
        [ "$covered" = yes ] || { echo "not in %files: $f"; return 1; }
    done <"$HS_TMP/installed"
    for pattern in "${patterns[@]}"; do
        found=no
        while read -r f; do
            # shellcheck disable=SC2053
            [[ $f == $pattern ]] && found=yes
        done <"$HS_TMP/installed"
        [ "$found" = yes ] || { echo "not installed: $pattern"; return 1; }
    done
}

@test "all packages enable the same units as the preset, and their scripts are valid shell" {
    local preset f
    preset=$(sed -n 's/^enable //p' data/90-headstart.preset | sort)
    diff <(sed -n 's/^%global units //p' data/packaging/rpm/headstart.spec | tr ' ' '\n' | sort) - <<<"$preset"
    for f in preset disable; do
        diff <(sed -e ':a;/\\$/{N;s/\\\n//;ba}' data/packaging/arch/headstart.install |
            sed -n "s/.*systemctl.* $f //p" | tr -s ' ' '\n' | grep ^headstart- | sort) - <<<"$preset"
    done
    for f in data/packaging/debian/headstart.{postinst,postrm,prerm}; do
        sh -n "$f"
    done
    bash -n data/packaging/arch/PKGBUILD
    bash -n data/packaging/arch/headstart.install
}

@test "the Debian package is not removed while init= names headstart-init" {
    local prerm=data/packaging/debian/headstart.prerm
    echo 'root=/dev/sda2 init=/usr/libexec/headstart/headstart-init quiet' >"$HS_TMP/cmdline"
    HEADSTART_CMDLINE=$HS_TMP/cmdline run -1 sh $prerm remove
    [[ $output == *"first remove init=/usr/libexec/headstart/headstart-init from the kernel command line"* ]]
    HEADSTART_CMDLINE=$HS_TMP/cmdline run -0 sh $prerm upgrade
}

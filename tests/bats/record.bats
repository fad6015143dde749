# SPDX-License-Identifier: LGPL-2.1-or-later
# headstartd on real filesystems: what is recorded, of whom, and what happens when something is
# missing.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTARTD" "$HEADSTART"
    need_command jq python3
    HS_RUN=$HS_TMP/run
}

# --- the recorder ------------------------------------------------------------------------------

# recorder_start [OPTION…]: starts headstartd on HS_MNT and returns when it records. Sets RECORDER.
# Its log is in recorder.log, its notifications in recorder.notify.
recorder_start() {
    hs_listen "$HS_TMP/recorder.notify"
    # shellcheck disable=SC2086 # RECORDER_PREFIX is words
    NOTIFY_SOCKET=$HS_TMP/notify ${RECORDER_PREFIX:-} "$HEADSTARTD" --root="$HS_MNT" \
        --state="$HS_STATE" --stage=boot "$@" 2>"$HS_TMP/recorder.log" 3>&- &
    RECORDER=$!
    hs_defer hs_kill $RECORDER
    hs_wait 10 recorder_says READY=1
}

recorder_says() {
    grep -q "$1" "$HS_TMP/recorder.notify" && return 0
    kill -0 "$RECORDER" 2>/dev/null || {
        echo "# headstartd has ended: $(cat "$HS_TMP/recorder.log")" >&2
        return 0
    }
    return 1
}

# recorder_stop [STATUS]: ends the recorder, which must exit with this status (default: 0). With
# status 0 it sets TRACE to the only trace of a boot, and SHOWN to a file that contains this trace as
# `headstart show` prints it.
recorder_stop() {
    kill -TERM "$RECORDER"
    local status=0
    wait "$RECORDER" || status=$?
    cat "$HS_TMP/recorder.log"
    [ "$status" -eq "${1:-0}" ]
    [ "${1:-0}" -eq 0 ] || return 0
    show_trace
}

# recorder_stop_large: ends the stage boot of a recorder of boot and login first, because after SIGTERM a recorder
# has only eight seconds (stop-limit.c).
recorder_stop_large() {
    kill -USR1 "$RECORDER"
    hs_wait 20 recorder_says "STATUS=Recording login"
    recorder_stop
}

show_trace() {
    TRACE=$(echo "$HS_STATE"/traces/*-boot*.json)
    SHOWN=$HS_TMP/shown.json
    "$HEADSTART" show --json=short "$TRACE" >"$SHOWN"
}

# shown JQ-EXPRESSION [ARGUMENT…]: checks that the expression is true of the content of SHOWN.
shown() {
    local expression=$1
    shift
    jq -e "$@" "$expression" "$SHOWN" >/dev/null || {
        echo "# not so: $expression" >&2
        jq -c '{flags, n_unresolved, n_own, applications: [.applications[].path],
                files: [.files[] | [.path, .application]]}' "$SHOWN" | head -c 4000 >&2
        return 1
    }
}

# of FILE APPLICATION: checks that the trace has the file and that the application opened it first.
of() {
    # shellcheck disable=SC2016
    shown 'any(.files[]; .path == $f and .application == $a)' --arg f "$1" --arg a "$2"
}

# --- a tree with programs of its own -----------------------------------------------------------

# script NAME INTERPRETER [LINE…]: makes an executable script in the tree.
script() {
    local name=$1 interpreter=$2
    shift 2
    { echo "#!$interpreter"; printf '%s\n' "$@"; } >"$HS_MNT/bin/$name"
    chmod +x "$HS_MNT/bin/$name"
}

inside() {
    chroot "$HS_MNT" "$@"
}

# --- who opened what ---------------------------------------------------------------------------

make_tree() {
    hs_programs dash cat env true sleep
    local i
    for i in elf script nested env fork gone later; do
        echo data >"$HS_MNT/data/$i"
    done
    script plain /bin/dash 'read -r x </data/script'
    script nested /bin/plain2
    script plain2 /bin/dash
    script env '/bin/env dash' 'read -r x </data/env'
    mv "$HS_MNT/bin/env" "$HS_MNT/bin/env-script"
    cp -L "$(type -P env)" "$HS_MNT/bin/env"
    : >"$HS_MNT/dev/null"
    # forker is a shell that leaves a child behind at the moment when it becomes another program.
    script forker /bin/dash '(read -r x </data/fork) & exec /bin/true'
}

applications_are_right() {
    inside /bin/cat /data/elf
    inside /bin/plain
    inside /bin/env-script
    inside /bin/nested
    inside /bin/forker
    inside /bin/dash -c '/bin/cat /data/gone; /bin/cat /data/later'
    recorder_stop
    of /data/elf /bin/cat
    of /data/script /bin/plain
    of /bin/true /bin/true
    of /data/gone /bin/cat
    shown '[.applications[].path] | index("/bin/nested")'
    shown '[.applications[].path] | index("/bin/plain2") == null'
    # The trace also contains libraries and the interpreter as files.
    shown 'any(.files[]; .path | test("libc\\.so"))'
    shown 'any(.files[]; .path == "/bin/dash")'
}

@test "applications: ELF, script, script of script, env, short-lived ones" {
    hs_filesystem ext4 64
    make_tree
    hs_cold
    recorder_start
    applications_are_right
    of /data/env /bin/env-script
    of /data/fork /bin/forker
    shown '.process_source == "connector" and .n_unknown_application == 0'
    shown '.flags == []'
    # Each run of a program has a lifetime, also the two runs of cat inside dash -c. No lifetime
    # ends before it begins.
    run jq '[.lifetimes.application[] as $a | .applications[$a]] | length' <(zcat -f "$TRACE")
    [ "$output" -ge 8 ]
    jq -e '[.lifetimes | [.start_usec, .end_usec] | transpose[] |
            .[1] == -1 or .[1] >= .[0]] | all' <(zcat -f "$TRACE")
    jq -e '.lifetimes.uid | all(. == 0)' <(zcat -f "$TRACE")
}

@test "applications without the proc connector: those with exec events are still found" {
    hs_filesystem ext4 64
    make_tree
    recorder_start --pretend=no-proc-connector
    applications_are_right
    shown '.process_source == "proc"'
    grep -q "no proc connector" "$HS_TMP/recorder.log"
}

@test "xfs, btrfs and a btrfs subvolume are recorded too" {
    local fs
    for fs in xfs btrfs subvolume; do
        case $fs in
        subvolume)
            need_filesystem btrfs
            hs_umount "$HS_MNT"
            mount "$HS_LOOP" "$HS_MNT"
            btrfs subvolume create "$HS_MNT/@" >/dev/null
            hs_umount "$HS_MNT"
            mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
            ;;
        *)
            hs_umount "$HS_MNT"
            hs_filesystem "$fs" 320
            ;;
        esac
        make_tree
        hs_umount "$HS_MNT"
        if [ "$fs" = subvolume ]; then
            mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
        else
            mount "$HS_LOOP" "$HS_MNT"
        fi
        recorder_start
        applications_are_right
        # shellcheck disable=SC2016
        shown '.volumes[0].fstype == $t and .volumes[0].uuid != "" and
               .volumes[0].metadata_source == "none"' --arg t "${fs/subvolume/btrfs}"
        if [ "$fs" = subvolume ]; then
            shown '.volumes[0].subvolume == "/@"'
        fi
        shown '[.files[] | select(.path == "/data/elf") | .resident[0][1]] == [5]'
        hs_kill "$RECORDER"
        rm -rf "$HS_STATE" "$HS_TMP/notify"
    done
}

# names_are_recorded_and_replayed: a boot opens a file, and looks up a symlink, a file and a directory next to it. All of
# them are in the trace and in the pack, but no other name, and no directory that users may write.
names_are_recorded_and_replayed() {
    rm -rf "$HS_STATE"
    hs_cold
    recorder_start
    cat "$HS_MNT/data/opened" "$HS_MNT/shared/opened" >/dev/null
    readlink "$HS_MNT/data/link" >/dev/null
    stat "$HS_MNT/data/status" "$HS_MNT/data/sub/of/deep" "$HS_MNT/shared/status" >/dev/null
    recorder_stop
    jq -c '[.files[] | select(.looked_up) | .path] | sort' "$SHOWN" >"$HS_TMP/names"
    [ "$(cat "$HS_TMP/names")" = \
        '["/data","/data/link","/data/status","/data/sub","/data/sub/of","/data/sub/of/deep"]' ] || return
    "$HEADSTART" --state="$HS_STATE" learn --quiet
    "$HEADSTART" --state="$HS_STATE" plan --root="$HS_MNT" --quiet
    "$HEADSTART" show --json=short "$HS_STATE/boot.pack" |
        jq -e '([.volumes[].files[].path] | index("data/link") and index("data/status") and
                   index("data/sub/of/deep") and (index("data/other") | not)) and
               ([.volumes[].files[] | select(.directory) | .listed] | length == 4 and all(not))'
    hs_cold
    run -0 "$HEADSTART_REPLAY" --root="$HS_MNT" --json "$HS_STATE/boot.pack"
    jq -e '.files >= 6 and .skipped == {}' <<<"$output"
}

@test "xfs and btrfs: names that were only looked up are recorded, and replay looks them up" {
    local fs
    for fs in xfs btrfs; do
        hs_umount "$HS_MNT"
        hs_filesystem "$fs" 320
        mkdir -p "$HS_MNT/data/sub/of" "$HS_MNT/shared"
        for f in opened status other sub/of/deep sub/of/other ../shared/opened ../shared/status; do
            echo "$f" >"$HS_MNT/data/$f"
        done
        ln -s opened "$HS_MNT/data/link"
        chmod 1777 "$HS_MNT/shared"
        find "$HS_MNT" -type f -exec touch -d '10 days ago' {} +
        hs_umount "$HS_MNT"
        mount "$HS_LOOP" "$HS_MNT"
        hs_attempts names_are_recorded_and_replayed
    done
}

@test "a btrfs subvolume: no event is lost, although each of them takes a descriptor" {
    local i
    need_filesystem btrfs
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    for ((i = 0; i < 500; i++)); do
        echo x >"$HS_MNT/f$i"
    done
    RECORDER_PREFIX="prlimit --nofile=64" recorder_start
    kill -STOP "$RECORDER"
    cat "$HS_MNT"/f* >/dev/null
    kill -CONT "$RECORDER"
    recorder_stop
    shown '[.files[].path | select(startswith("/f"))] | length == 500'
}

# trace_there: checks that a trace of a boot exists.
trace_there() {
    compgen -G "$HS_STATE/traces/*-boot*.json" >/dev/null
}

@test "a btrfs subvolume: a user who holds leases on files neither stops the recorder nor hides other files" {
    local holder
    need_filesystem btrfs
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    install -d -o 12345 "$HS_MNT/own"
    echo x >"$HS_MNT/other"
    recorder_start
    # The events are in the queue when the leases exist, and the recorder reads all of them when it ends.
    kill -STOP "$RECORDER"
    as_user 12345 '
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = [open("own/%d" % i, "w+") for i in range(100)]
for f in held:
    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
with open("own/ready", "w") as f:
    f.write("%d" % os.getpid())
time.sleep(600)
' 3>&- &
    hs_wait 10 test -s "$HS_MNT/own/ready"
    holder=$(cat "$HS_MNT/own/ready")
    hs_defer hs_kill "$holder"
    [ "$(grep -c "LEASE *ACTIVE *WRITE *$holder " /proc/locks)" -eq 100 ]
    cat "$HS_MNT/other" >/dev/null
    kill -TERM "$RECORDER"
    kill -CONT "$RECORDER"
    # The kernel waits up to 45 seconds for each lease.
    [ "$(cat /proc/sys/fs/lease-break-time)" -ge 45 ]
    hs_wait 5 trace_there
    wait "$RECORDER"
    show_trace
    shown '[.files[].path] | index("/other")'
}

@test "a btrfs subvolume can be unmounted right after a file on it was opened" {
    local i refused=0
    need_filesystem btrfs
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    echo x >"$HS_MNT/@/file"
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    mkdir "$HS_TMP/second"
    recorder_start
    unmounts_at_once() {
        refused=0
        for ((i = 0; i < 20; i++)); do
            hs_mount "$HS_LOOP" "$HS_TMP/second" subvol=@
            cat "$HS_TMP/second/file" >/dev/null
            # A queued event would hold the mount until the recorder's timer fires.
            sleep 0.005
            umount "$HS_TMP/second" || {
                refused=$((refused + 1))
                hs_umount "$HS_TMP/second"
            }
        done
        echo "$refused of 20 unmounts were refused"
        [ "$refused" -le 5 ]
    }
    # On a busy machine the recorder may not run at once.
    hs_attempts unmounts_at_once
    cat "$HS_MNT/file" >/dev/null
    recorder_stop
    shown 'any(.files[]; .path == "/file")'
}

@test "directories are recorded, and devices, sockets and symlinks are not" {
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/d/e" "$HS_MNT/gone"
    mkfifo "$HS_MNT/fifo"
    ln -s d "$HS_MNT/link"
    echo x >"$HS_MNT/becomes-fifo"
    echo x >"$HS_MNT/vanishes"
    echo x >"$HS_MNT/loop"
    echo x >"$HS_MNT/name with \"quotes\" and ü"
    printf x >"$HS_MNT/"$'not\xffutf8\n'
    recorder_start
    ls "$HS_MNT/link/" "$HS_MNT/d/e" "$HS_MNT/gone" >/dev/null
    cat "$HS_MNT/becomes-fifo" "$HS_MNT/vanishes" "$HS_MNT/loop" "$HS_MNT/name"* \
        "$HS_MNT/not"* >/dev/null
    : <>"$HS_MNT/fifo"
    rm "$HS_MNT/becomes-fifo" "$HS_MNT/vanishes" "$HS_MNT/loop"
    rmdir "$HS_MNT/gone"
    mkfifo "$HS_MNT/becomes-fifo"
    ln -s loop "$HS_MNT/loop"
    recorder_stop
    shown '[.files[] | select(.directory) | .path] | index("/d") and index("/d/e")'
    shown '[.files[].path] | (index("/fifo") or index("/becomes-fifo") or index("/vanishes") or
                              index("/loop") or index("/gone")) | not'
    shown '[.files[].path] | any(startswith("/name with \"quotes\"")) and any(startswith("/not"))'
    shown '.n_unresolved == 2'
}

@test "what was mounted on a file since it was opened is not taken for the file" {
    hs_filesystem ext4 64
    echo x >"$HS_MNT/file"
    echo x >"$HS_MNT/kept"
    head -c 1000 /dev/urandom >"$HS_MNT/other"
    recorder_start
    cat "$HS_MNT/file" "$HS_MNT/kept" >/dev/null
    # A user can mount a FUSE filesystem on a file, and a look at it could then hang.
    hs_defer umount "$HS_MNT/file"
    mount --bind "$HS_MNT/other" "$HS_MNT/file"
    recorder_stop
    shown '[.files[].path] | index("/kept") and (index("/file") | not)'
}

@test "btrfs: a path that leads through a symlink since the file was opened is not followed" {
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    mkdir "$HS_MNT/d" "$HS_MNT/other"
    for file in kept d/file other/file; do
        echo x >"$HS_MNT/$file"
    done
    recorder_start
    cat "$HS_MNT/d/file" "$HS_MNT/kept" >/dev/null
    # Of a subvolume the kernel reports descriptors, whose paths the recorder reads at once.
    sleep 1
    # Such a symlink could lead to an automount or a filesystem that hangs.
    mv "$HS_MNT/d" "$HS_MNT/moved"
    ln -s other "$HS_MNT/d"
    recorder_stop
    # The search for names that were looked up finds the file in its own directory.
    shown '[.files[] | select(.looked_up | not) | .path] | index("/kept") and (index("/other/file") | not)'
}

# hung_mount DIRECTORY: mounts a filesystem there that answers no request.
hung_mount() {
    local server
    "$BATS_TEST_DIRNAME/hung-filesystem" "$(type -P true)" "$1" >"$HS_TMP/hung" 3>&- &
    server=$!
    # When the server of the mount is gone, the mount answers with errors and can be unmounted.
    hs_defer umount -l "$1"
    hs_defer hs_kill $server
    hs_wait 10 grep -q mounted "$HS_TMP/hung"
    kill -USR1 $server
    hs_wait 10 grep -q hung "$HS_TMP/hung"
}

@test "xfs: a directory on which a filesystem that hangs has been mounted is not searched for names" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    hs_filesystem xfs 320
    mkdir "$HS_MNT/covered" "$HS_MNT/free"
    for file in covered/file free/file free/status; do
        echo x >"$HS_MNT/$file"
    done
    recorder_start
    cat "$HS_MNT/covered/file" "$HS_MNT/free/file" >/dev/null
    stat "$HS_MNT/free/status" >/dev/null
    hung_mount "$HS_MNT/covered"
    kill -TERM "$RECORDER"
    hs_wait 5 trace_there
    wait "$RECORDER"
    show_trace
    shown '[.files[] | select(.looked_up) | .path] | index("/free/status")'
    shown '[.files[] | select(.looked_up | not) | .path] | index("/free/file") and index("/covered/file")'
}

@test "a btrfs subvolume: what was mounted on a file or its directory since it was opened is not followed" {
    local file inodes
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    mkdir "$HS_MNT/d" "$HS_MNT/hidden" "$HS_MNT/other"
    for file in file kept other/file hidden/file d/program; do
        echo x >"$HS_MNT/$file"
    done
    recorder_start
    cat "$HS_MNT/file" "$HS_MNT/kept" "$HS_MNT/hidden/file" "$HS_MNT/d/program" >/dev/null
    # Of a subvolume the kernel reports descriptors, whose paths the recorder reads at once.
    sleep 1
    inodes=$(stat -c %i "$HS_MNT/file" "$HS_MNT/hidden/file" "$HS_MNT/d/program" | paste -sd,)
    hs_defer umount "$HS_MNT/file"
    mount --bind "$HS_MNT/other/file" "$HS_MNT/file"
    hs_defer umount "$HS_MNT/hidden"
    mount -t tmpfs none "$HS_MNT/hidden"
    echo y >"$HS_MNT/hidden/file"
    hung_mount "$HS_MNT/d"
    kill -TERM "$RECORDER"
    hs_wait 5 trace_there
    wait "$RECORDER"
    show_trace
    # The files are recorded, and not what hides them now.
    shown '[.files[] | select(.looked_up | not) | .path] | index("/kept") and (index("/other/file") | not)'
    shown '[.files[] | select(.path == "/file" or .path == "/hidden/file" or .path == "/d/program") | .inode] |
           sort == (['"$inodes"'] | sort)'
}

@test "a btrfs subvolume: the path of a file in another mount namespace is not taken for that path here" {
    hs_filesystem btrfs 320
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    mkdir "$HS_MNT/inside" "$HS_MNT/outside"
    echo x >"$HS_MNT/inside/file"
    echo x >"$HS_MNT/outside/file"
    recorder_start
    unshare --mount sh -c 'mount --bind "$1/inside" "$1/outside" && cat "$1/outside/file" >/dev/null' - "$HS_MNT"
    recorder_stop
    shown '[.files[] | select(.looked_up | not) | .path] | index("/inside/file") and (index("/outside/file") | not)'
}

@test "what was mounted on a program since it started is not taken for the program" {
    local name
    hs_filesystem ext4 64
    hs_programs dash
    mv "$HS_MNT/bin/dash" "$HS_MNT/bin/kept"
    cp "$HS_MNT/bin/kept" "$HS_MNT/bin/hidden"
    echo x >"$HS_MNT/other"
    for name in kept hidden; do
        mkfifo "$HS_MNT/go-$name"
        echo x >"$HS_MNT/data/$name"
        inside "/bin/$name" -c "read -r x </go-$name; read -r x </data/$name" 3>&- &
        hs_defer hs_kill $!
        hs_wait 10 pgrep -f "^/bin/$name -c read -r x </go-$name;"
    done
    recorder_start
    hs_defer umount "$HS_MNT/bin/hidden"
    mount --bind "$HS_MNT/other" "$HS_MNT/bin/hidden"
    for name in kept hidden; do
        echo x >"$HS_MNT/go-$name"
    done
    sleep 1
    recorder_stop
    of /data/kept /bin/kept
    shown '[.applications[].path] | index("/bin/hidden") | not'
    shown 'any(.files[]; .path == "/data/hidden" and .application == null)'
}

@test "a filesystem that is mounted later is recorded, and every filesystem can be unmounted" {
    hs_filesystem ext4 64
    local first=$HS_MNT
    mkdir "$HS_MNT/second"
    recorder_start
    truncate -s 64M "$HS_TMP/second.img"
    mkfs.ext4 -q "$HS_TMP/second.img"
    hs_loop "$HS_TMP/second.img"
    mkdir "$HS_TMP/aside"
    hs_mount "$HS_LOOP" "$HS_TMP/aside"
    echo x >"$HS_TMP/aside/file"
    umount "$HS_TMP/aside"
    hs_mount "$HS_LOOP" "$first/second"
    # The filesystem is marked when the recorder has seen the mount. No event reports that, so the
    # test waits until fdinfo shows the mark.
    hs_wait 10 marked "$RECORDER" "$first/second"
    cat "$first/second/file" >/dev/null
    # The filesystem is unmounted, and mounted again.
    umount "$first/second"
    hs_wait 10 not_marked "$RECORDER" "$HS_LOOP"
    mount "$HS_LOOP" "$first/second"
    hs_wait 10 marked "$RECORDER" "$first/second"
    cat "$first/second/file" >/dev/null
    recorder_stop
    shown '[.volumes[].mountpoint] | sort == ["/", "/second"]'
    shown 'any(.files[]; .path == "/second/file" and .n_accesses == 2)'
    shown '.n_unresolved == 0'
}

# marked PID TARGET: checks that the process's fanotify group has a mark on that filesystem
# (fdinfo).
marked() {
    local dev
    dev=$(stat -c %Hd:%Ld "$2")
    grep -hs "fanotify sdev:$(printf '%x' $((${dev%:*} << 20 | ${dev#*:})))" /proc/"$1"/fdinfo/* \
        >/dev/null
}

not_marked() {
    local dev
    dev=$(lsblk -no MAJ:MIN "$2" | tr -d ' ')
    ! grep -hs "fanotify sdev:$(printf '%x' $((${dev%:*} << 20 | ${dev#*:})))" /proc/"$1"/fdinfo/* \
        >/dev/null
}

# mark_of PID DEVICE: checks that the process's fanotify group has a mark on that filesystem, whatever subvolume of it is
# mounted.
mark_of() {
    local dev
    dev=$(findmnt --noheadings --first-only --output MAJ:MIN --source "$2" | tr -d ' ')
    grep -hs "fanotify sdev:$(printf '%x ' $((${dev%:*} << 20 | ${dev#*:})))" /proc/"$1"/fdinfo/* >/dev/null
}

# stopped_and_unmounted TARGET: stops the recorder and unmounts, which fails if an event is still queued.
stopped_and_unmounted() {
    kill -STOP "$RECORDER"
    umount "$1" && return
    kill -CONT "$RECORDER"
    return 1
}

@test "a filesystem that is unmounted and mounted again at once is recorded again" {
    local fs
    hs_filesystem ext4 64
    local first=$HS_MNT
    mkdir "$first/second"
    for fs in ext4 btrfs; do
        need_filesystem $fs
        truncate -s 320M "$HS_TMP/second.$fs"
        "mkfs.$fs" -q "$HS_TMP/second.$fs" >/dev/null
        hs_loop "$HS_TMP/second.$fs"
        hs_mount "$HS_LOOP" "$first/second"
        # The second mount shows a subvolume, so the recorder uses descriptor mode.
        [ $fs = ext4 ] || btrfs subvolume create "$first/second/@" >/dev/null
        [ $fs = ext4 ] || btrfs subvolume set-default "$first/second/@"
        echo x >"$first/second/file-$fs"
        [ $fs = ext4 ] || mv "$first/second/file-$fs" "$first/second/@"
        umount "$first/second"
        mount "$HS_LOOP" "$first/second"
        recorder_start
        mark_of "$RECORDER" "$HS_LOOP"
        cat "$first/second/file-$fs" >/dev/null
        # The recorder sees both changes at once. The mount has the same device and often the same ID as before.
        hs_wait 10 stopped_and_unmounted "$first/second"
        mount "$HS_LOOP" "$first/second"
        run -1 mark_of "$RECORDER" "$HS_LOOP"
        kill -CONT "$RECORDER"
        hs_wait 10 mark_of "$RECORDER" "$HS_LOOP"
        cat "$first/second/file-$fs" >/dev/null
        recorder_stop
        # shellcheck disable=SC2016
        shown 'any(.files[]; .path == $f and .n_accesses == 2)' --arg f "/second/file-$fs"
        rm -rf "$HS_STATE"
        umount "$first/second"
    done
}

@test "a program that runs from a filesystem that hangs does not stop the recorder" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    hs_filesystem ext4 64
    mkdir "$HS_MNT/net"
    echo x >"$HS_MNT/file"
    "$BATS_TEST_DIRNAME/hung-filesystem" "$(type -P sleep)" "$HS_MNT/net" >"$HS_TMP/hung" 3>&- &
    local server=$!
    # When the server of the mount is gone, the mount answers with errors and can be unmounted.
    hs_defer umount -l "$HS_MNT/net"
    hs_defer hs_kill $server
    hs_wait 10 grep -q mounted "$HS_TMP/hung"
    "$HS_MNT/net/program" 1000 3>&- &
    local program=$!
    hs_defer hs_kill $program
    hs_wait 10 runs_from $program "$HS_MNT/net/program"
    kill -USR1 $server
    hs_wait 10 grep -q hung "$HS_TMP/hung"
    recorder_start
    cat "$HS_MNT/file" >/dev/null
    recorder_stop
    shown '.flags == [] and any(.files[]; .path == "/file")'
    shown '[.files[].path] | index("/net/program") == null'
    # A mount that was detached is in no table of mounts.
    umount -l "$HS_MNT/net"
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    recorder_start
    cat "$HS_MNT/file" >/dev/null
    recorder_stop
    shown 'any(.files[]; .path == "/file")'
}

# served_disk UID [own]: mounts a filesystem with a file on HS_TMP/disk, whose content this user serves.
served_disk() {
    mkdir "$HS_TMP/content" "$HS_TMP/disk"
    echo x >"$HS_TMP/content/file"
    truncate -s 16M "$HS_TMP/served"
    mkfs.ext4 -q -d "$HS_TMP/content" "$HS_TMP/served"
    hs_serve_image "$HS_TMP/served" "$1" "$HS_TMP/disk" ${2:+"$2"}
}

# records_disk: records the opening of a file of served_disk, and of a file of another filesystem.
records_disk() {
    hs_filesystem ext4 64
    echo x >"$HS_MNT/file"
    recorder_start --root="$HS_TMP"
    cat "$HS_MNT/file" "$HS_TMP/disk/file" >/dev/null
    recorder_stop
    shown 'any(.files[]; .path == "/mnt/file")'
}

@test "a disk whose content a user serves is not recorded, because it could hang" {
    served_disk 1000
    records_disk
    shown '[.files[].path] | index("/disk/file") == null'
}

@test "a disk whose content a user serves is not recorded, if root may not read its file either" {
    served_disk 1000 own
    records_disk
    shown '[.files[].path] | index("/disk/file") == null'
}

# recorder_stop_while_hung COMMAND…: ends the recorder, which must write its trace while a disk hangs. The command then
# ends this. Until then a thread of the recorder hangs, for whose end the sanitizers wait.
recorder_stop_while_hung() {
    kill -TERM "$RECORDER"
    # headstartd would end itself after eight seconds, without a trace.
    hs_wait 6 compgen -G "$HS_STATE/traces/*-boot*.json"
    "$@"
    local status=0
    wait "$RECORDER" || status=$?
    cat "$HS_TMP/recorder.log"
    [ "$status" -eq 0 ]
    show_trace
}

# records_later_disk: lets the server of served_disk hang. Then mounts another filesystem, and checks that it is
# recorded. losetup(8) would hang meanwhile, so the loop device is attached before.
records_later_disk() {
    local late
    hs_filesystem ext4 16
    truncate -s 16M "$HS_TMP/late.image"
    mkfs.ext4 -q "$HS_TMP/late.image"
    hs_loop "$HS_TMP/late.image"
    late=$HS_LOOP
    mkdir "$HS_TMP/late"
    recorder_start --root="$HS_TMP"
    hs_serve_no_longer
    hs_mount "$late" "$HS_TMP/late"
    hs_wait 3 marked "$RECORDER" "$HS_TMP/late"
    echo x >"$HS_TMP/late/file"
    recorder_stop_while_hung hs_kill "$HS_SERVER"
    shown 'any(.files[]; .path == "/late/file")'
}

@test "while a disk whose content a user serves hangs, another disk is mounted and recorded" {
    served_disk 1000
    records_later_disk
}

@test "a disk whose file is on a filesystem that is not mounted here is not recorded" {
    served_disk 0
    umount -l "$HS_TMP/net"
    records_disk
    shown '[.files[].path] | index("/disk/file") == null'
}

@test "while a filesystem hangs that is not mounted here but has the file of a disk, others are recorded" {
    served_disk 0
    umount -l "$HS_TMP/net"
    records_later_disk
}

@test "a disk whose content root serves is recorded" {
    served_disk 0
    records_disk
    shown '[.files[].path] | index("/disk/file")'
}

# second_disk: mounts an ext4 on a simulated disk that can hang on HS_TMP/disk, beside the filesystem
# of hs_filesystem. DISKSIM_CONTROL is its control file.
second_disk() {
    hs_simulated_disk ssd on 64
    echo x >"$HS_MNT/file"
    mkdir "$HS_MNT/dir"
    for i in {1..20}; do
        mkdir "$HS_MNT/dir/$i"
        echo x >"$HS_MNT/dir/$i/file"
    done
    cp "$(type -P sleep)" "$HS_MNT/program"
    umount "$HS_MNT"
    mkdir "$HS_TMP/disk"
    hs_mount "$HS_LOOP" "$HS_TMP/disk"
    DISK_LOOP=$HS_LOOP
    DISKSIM_CONTROL=$HS_TMP/fuse/control
    hs_filesystem ext4 64
    echo x >"$HS_MNT/file"
}

# answers yes|no: lets the second disk hang or answer.
answers() {
    local fault=hang
    [ "$1" = no ] || fault=none
    echo "fault $fault" >"$DISKSIM_CONTROL"
}

@test "a disk that hangs while a stage is recorded keeps no file of another disk from the trace" {
    second_disk
    recorder_start --root="$HS_TMP"
    hs_wait 10 marked "$RECORDER" "$HS_TMP/disk"
    cat "$HS_MNT/file" "$HS_TMP"/disk/dir/*/file >/dev/null
    # The recorder has to look the files of the disk up again, and the disk does not answer.
    answers no
    hs_defer answers yes
    sync
    echo 3 >/proc/sys/vm/drop_caches
    recorder_stop_while_hung answers yes
    shown 'any(.files[]; .path == "/mnt/file")'
    shown '[.files[].path] | index("/disk/dir/20/file") == null'
}

@test "a disk that hangs while its UUID is read does not stop the recorder" {
    need_command mksquashfs
    grep -qw squashfs /proc/filesystems || skip "the kernel has no squashfs"
    second_disk
    umount "$HS_TMP/disk"
    # The kernel does not tell the UUID of a squashfs, so libblkid reads the device.
    mkdir "$HS_TMP/content" "$HS_TMP/other"
    mksquashfs "$HS_TMP/content" "$HS_TMP/squashfs" -quiet -no-progress
    dd if="$HS_TMP/squashfs" of="$DISK_LOOP" conv=fsync status=none
    hs_mount "$DISK_LOOP" "$HS_TMP/other"
    answers no
    hs_defer answers yes
    echo 3 >/proc/sys/vm/drop_caches
    recorder_start --root="$HS_TMP"
    cat "$HS_MNT/file" >/dev/null
    recorder_stop_while_hung answers yes
    shown 'any(.files[]; .path == "/mnt/file")'
}

@test "a disk that hangs delays a plan by seconds, and the plan has the files of other disks" {
    second_disk
    recorder_start --root="$HS_TMP"
    hs_wait 10 marked "$RECORDER" "$HS_TMP/disk"
    cat "$HS_MNT/file" "$HS_TMP"/disk/dir/*/file >/dev/null
    recorder_stop
    shown 'any(.files[]; .path == "/disk/dir/20/file")'
    run -0 "$HEADSTART" --state="$HS_STATE" --root="$HS_TMP" learn
    answers no
    hs_defer answers yes
    sync -f "$HS_STATE"
    echo 3 >/proc/sys/vm/drop_caches
    "$HEADSTART" --state="$HS_STATE" --root="$HS_TMP" plan >"$HS_TMP/plan.log" 2>&1 3>&- &
    local planner=$! status=0
    hs_defer hs_kill $planner
    hs_wait 8 pack_has "mnt/file"
    # Learning does not wait for the disk either.
    run -0 timeout 30 "$HEADSTART" --state="$HS_STATE" --root="$HS_TMP" learn
    answers yes
    wait "$planner" || status=$?
    cat "$HS_TMP/plan.log"
    [ "$status" -eq 0 ]
    ! pack_has "disk/dir/20/file" || false
}

# pack_has PATH: checks that the boot pack names a file whose path ends so.
pack_has() {
    "$HEADSTART" show --json=short "$HS_STATE/boot.pack" 2>/dev/null |
        jq -e --arg path "$1" '[.. | .path? // empty | strings] | any(endswith($path))' >/dev/null
}

# runs_from PID PATH: checks that the process executes that file.
runs_from() {
    [ "$(readlink "/proc/$1/exe")" = "$2" ]
}

@test "headstart's own accesses are left out and counted" {
    hs_filesystem ext4 64
    make_tree
    cp "$HEADSTART" "$HS_MNT/bin/headstart"
    echo x >"$HS_MNT/data/other"
    recorder_start
    "$HS_MNT/bin/headstart" show "$HS_MNT/data/elf" 2>/dev/null || true
    inside /bin/cat /data/other
    recorder_stop
    shown '[.files[].path] | (index("/bin/headstart") or index("/data/elf")) | not'
    shown '[.files[].path] | index("/data/other")'
    shown '.n_own >= 2'
}

# --- metadata ----------------------------------------------------------------------------------

# Makes a cold filesystem with many inodes in several groups, whose inode tables are read one block
# at a time.
metadata_tree() {
    hs_filesystem ext4 512 -N 65536 -b 4096 -O ^flex_bg
    (cd "$HS_MNT" && mkdir d{0..19} && for d in d*; do touch "$d"/f{0..199}; done)
    for d in "$HS_MNT"/d*; do echo data >"$d/f7"; done
    # The kernel must not read block bitmaps by itself at some moment after the mount: they would be
    # resident although no process needs them.
    # shellcheck disable=SC2034 # hs_cold uses it
    HS_COLD_OPTIONS=relatime,no_prefetch_block_bitmaps
    hs_cold
    echo 0 >"/sys/fs/ext4/$(basename "$HS_LOOP")/inode_readahead_blks"
}

# block_of INODE: prints the byte at which the block of the inode table with this inode lies.
block_of() {
    debugfs -R "imap <$1>" "$HS_LOOP" 2>/dev/null |
        sed -n 's/.*located at block \([0-9]*\),.*/\1/p' | awk '{ print $1 * 4096 }'
}

# metadata_has BYTE: checks that a recorded metadata range contains this byte.
metadata_has() {
    # shellcheck disable=SC2016
    shown 'any(.volumes[0].metadata[]; .[0] <= $b and $b < .[1])' --argjson b "$1"
}

@test "metadata by cachestat: contains the inode tables of files that were only looked up, and no data that was resident before" {
    "$HEADSTARTD" --help >/dev/null
    metadata_tree
    stat -c %s "$HS_MNT/d3/f0" >/dev/null # resident before the stage, so not a part of it
    recorder_start
    grep -q "no cachestat" "$HS_TMP/recorder.log" && skip "the kernel has no cachestat"
    stat -c %s "$HS_MNT"/d15/f{0..199} >/dev/null
    recorder_stop
    shown '.volumes[0].metadata_source == "cachestat"'
    shown '[.files[].path] | any(startswith("/d15/f")) | not'
    metadata_has "$(block_of "$(stat -c %i "$HS_MNT/d15/f0")")"
    metadata_has "$(block_of "$(stat -c %i "$HS_MNT/d15/f199")")"
    # The trace also contains the block of the directory itself.
    metadata_has "$(($(debugfs -R 'blocks d15' "$HS_LOOP" 2>/dev/null | awk '{ print $1 }') * 4096))"
    run ! metadata_has "$(block_of "$(stat -c %i "$HS_MNT/d3/f0")")"
    run ! metadata_has "$(block_of "$(stat -c %i "$HS_MNT/d11/f0")")"
}

# reclaim FILE [OFFSET [LENGTH]]: asks the kernel to reclaim these cached pages, as if memory were
# short. The kernel may refuse.
reclaim() {
    python3 - "$@" <<'EOF'
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
offset = int(sys.argv[2]) if len(sys.argv) > 2 else 0
length = int(sys.argv[3]) if len(sys.argv) > 3 else os.fstat(fd).st_size
pages = range(0, length, 4096)
with mmap.mmap(fd, length, offset=offset) as m:
    touched = sum(m[i] for i in pages)
    os.fsync(fd)
    m.madvise(21)  # MADV_PAGEOUT
EOF
}

@test "pages that were reclaimed before the stage ended still count as read" {
    metadata_tree
    head -c 400000 /dev/urandom >"$HS_MNT/gone"
    chmod 600 "$HS_MNT/gone"
    hs_cold
    recorder_start
    grep -q "no cachestat" "$HS_TMP/recorder.log" && skip "the kernel has no cachestat"
    stat -c %s "$HS_MNT"/d15/f{0..199} >/dev/null
    cat "$HS_MNT/gone" >/dev/null
    local block
    block=$(block_of "$(stat -c %i "$HS_MNT/d15/f0")")
    reclaim "$HS_MNT/gone"
    reclaim "$HS_LOOP" "$block" 4096
    run -0 "$HS_BUILD/tests/tools/tool-residency" "$HS_MNT/gone"
    [ "$output" = "0 bytes" ] || skip "the kernel does not reclaim on request: $output"
    recorder_stop
    shown '[.files[] | select(.path == "/gone") | .resident] == [[[0, 400000]]]'
    metadata_has "$block"
}

@test "derived metadata covers what cachestat finds" {
    metadata_tree
    local i
    read_all() {
        for i in 1 4 7 9 12; do
            ls "$HS_MNT/d$i" >/dev/null
            cat "$HS_MNT/d$i/f7" >/dev/null
        done
        # The journal takes the times of these accesses. Its blocks are written, not read.
        sync -f "$HS_MNT"
    }
    recorder_start
    grep -q "no cachestat" "$HS_TMP/recorder.log" && skip "the kernel has no cachestat"
    read_all
    recorder_stop
    jq -c '.volumes[0].metadata' "$SHOWN" >"$HS_TMP/found"
    hs_kill "$RECORDER"
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    hs_cold
    recorder_start --pretend=no-cachestat
    read_all
    recorder_stop
    shown '.volumes[0].metadata_source == "derived"'
    jq -c '.volumes[0].metadata' "$SHOWN" >"$HS_TMP/derived"
    # Every block that cachestat found is among the derived ones, and cachestat found at least ten.
    jq -ne --slurpfile f "$HS_TMP/found" --slurpfile d "$HS_TMP/derived" '
        ($f[0] | map(range(.[0]; .[1]; 4096))) as $blocks |
        ($blocks | length) >= 10 and
        all($blocks[]; . as $b | any($d[0][]; .[0] <= $b and $b < .[1]))' || {
        echo "# found $(cat "$HS_TMP/found")"
        echo "# derived $(cat "$HS_TMP/derived")"
        false
    }
}

# --- residency ---------------------------------------------------------------------------------

@test "resident ranges are the pages that were touched; --exact lowers read-ahead and restores it" {
    local kb before
    hs_filesystem ext4 64
    head -c 1M /dev/urandom >"$HS_MNT/file"
    head -c 10000 /dev/urandom >"$HS_MNT/odd"
    head -c 1M /dev/urandom >"$HS_MNT/untouched"
    hs_cold
    kb=/sys/block/$(basename "$HS_LOOP")/queue/read_ahead_kb
    before=$(cat "$kb")
    recorder_start --exact --run="$HS_RUN"
    [ "$(cat "$kb")" -eq 4 ]
    # The pages count even if the kernel reclaims them between the read and the end of the stage.
    python3 - "$HS_MNT" <<'PY'
import mmap, os, sys
for name, pages in (("file", (5, 200)), ("odd", (2,))):
    fd = os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY)
    m = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    m.madvise(mmap.MADV_RANDOM)
    for p in pages:
        m[p * 4096]
os.close(os.open(f"{sys.argv[1]}/untouched", os.O_RDONLY))
PY
    recorder_stop
    [ "$(cat "$kb")" -eq "$before" ]
    [ ! -e "$HS_RUN/read-ahead" ]
    shown '.flags == ["exact"]'
    shown '[.files[] | select(.path == "/file") | .resident] == [[[20480, 24576], [819200, 823296]]]'
    shown '[.files[] | select(.path == "/odd") | .resident] == [[[8192, 10000]]]'
    shown '[.files[] | select(.path == "/untouched") | .resident] == [[]]'
}

@test "read-ahead that a killed recorder left lowered is restored, unless another program has set it since" {
    local kb
    hs_filesystem ext4 64
    kb=/sys/block/$(basename "$HS_LOOP")/queue/read_ahead_kb
    echo 96 >"$kb"
    recorder_start --exact --run="$HS_RUN"
    [ "$(cat "$kb")" -eq 4 ]
    kill -KILL "$RECORDER"
    wait "$RECORDER" || true
    [ "$(cat "$kb")" -eq 4 ]
    run -0 "$HEADSTARTD" --restore --run="$HS_RUN"
    [ -z "$output" ]
    [ "$(cat "$kb")" -eq 96 ]
    [ ! -e "$HS_RUN/read-ahead" ]
    run -0 "$HEADSTARTD" --restore --run="$HS_RUN" # nothing left to do

    # The next start of headstartd also restores the read-ahead, even if it lowers nothing itself.
    rm -f "$HS_TMP/notify"
    recorder_start --exact --run="$HS_RUN"
    kill -KILL "$RECORDER"
    wait "$RECORDER" || true
    rm -f "$HS_TMP/notify"
    recorder_start --run="$HS_RUN"
    [ "$(cat "$kb")" -eq 96 ]
    recorder_stop

    # A value that another program has set stays.
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    recorder_start --exact --run="$HS_RUN"
    kill -KILL "$RECORDER"
    wait "$RECORDER" || true
    echo 48 >"$kb"
    run -0 "$HEADSTARTD" --restore --run="$HS_RUN"
    [ "$(cat "$kb")" -eq 48 ]
}

@test "a damaged record of read-ahead is set aside, and nothing is written elsewhere" {
    mkdir -p "$HS_RUN"
    echo 1 >"$HS_TMP/victim"
    printf '%s 128 1\n/sys/../%s 128 1\nrubbish\n' "$HS_TMP/victim" "$HS_TMP/victim" >"$HS_RUN/read-ahead"
    run -1 --separate-stderr "$HEADSTARTD" --restore --run="$HS_RUN"
    assert_one_error_line "$stderr"
    [ "$(cat "$HS_TMP/victim")" -eq 1 ]
    [ -e "$HS_RUN/read-ahead.bad" ]
    run -0 "$HEADSTARTD" --restore --run="$HS_RUN"
}

# --- stages and state --------------------------------------------------------------------------

@test "SIGUSR1 steps through the stages, and nothing is written while one runs" {
    hs_filesystem ext4 64
    echo x >"$HS_MNT/boot"
    echo x >"$HS_MNT/login"
    recorder_start --stage=boot,login
    cat "$HS_MNT/boot" >/dev/null
    [ ! -e "$HS_STATE" ]
    kill -USR1 "$RECORDER"
    hs_wait 10 recorder_says "STATUS=Recording login"
    cat "$HS_MNT/login" >/dev/null
    recorder_stop
    [ "$(stat -c %a "$HS_STATE" "$HS_STATE/traces" | sort -u)" = 700 ]
    [ "$(stat -c %a "$TRACE")" = 600 ]
    [ "$(find "$HS_STATE" -type f | wc -l)" -eq 2 ]
    shown '.stage == "boot" and ([.files[].path] | index("/boot") and (index("/login") | not))'
    "$HEADSTART" show --json=short "$HS_STATE"/traces/*-login.json >"$SHOWN"
    shown '.stage == "login" and ([.files[].path] | index("/login") and (index("/boot") | not))'
}

@test "the report of headstart-replay for this boot is in the trace" {
    hs_filesystem ext4 64
    mkdir -p "$HS_RUN"
    echo '{"stage":"boot","policy":"gate","outcome":"done"}' >"$HS_RUN/replay-boot.json"
    recorder_start --run="$HS_RUN"
    ls "$HS_MNT" >/dev/null
    recorder_stop
    shown '.flags == ["replayed"] and .policy == "gate"'
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    echo '{"stage":"boot","policy":"gate","outcome":"control"}' >"$HS_RUN/replay-boot.json"
    recorder_start --run="$HS_RUN"
    ls "$HS_MNT" >/dev/null
    recorder_stop
    shown '.flags == ["control"] and .policy == "off"'
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    # The replay may be unfinished.
    echo '{"stage":"boot","policy":"concurrent","outcome":"running"}' >"$HS_RUN/replay-boot.json"
    recorder_start --run="$HS_RUN"
    ls "$HS_MNT" >/dev/null
    recorder_stop
    shown '.flags == ["replayed"] and .policy == "concurrent"'
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    # A replay may also have been stopped before it began.
    echo '{"stage":"boot","policy":"concurrent","outcome":"stopped","files":0}' >"$HS_RUN/replay-boot.json"
    recorder_start --run="$HS_RUN"
    ls "$HS_MNT" >/dev/null
    recorder_stop
    shown '.flags == []'
    rm -rf "$HS_STATE" "$HS_TMP/notify"
    head -c 100 /dev/urandom >"$HS_RUN/replay-boot.json"
    recorder_start --run="$HS_RUN"
    ls "$HS_MNT" >/dev/null
    recorder_stop
    shown '.flags == []'
}

@test "the replay for one user is in the trace of that user's login" {
    local uid flags
    hs_filesystem ext4 64
    mkdir -p "$HS_RUN"
    echo '{"stage":"login","policy":"idle","outcome":"done"}' >"$HS_RUN/replay-login@1000.json"
    while read -r uid flags; do
        rm -rf "$HS_STATE" "$HS_TMP/notify"
        recorder_start --run="$HS_RUN" --stage=login --uid="$uid"
        ls "$HS_MNT" >/dev/null
        kill -TERM "$RECORDER"
        wait "$RECORDER"
        SHOWN=$HS_TMP/shown.json
        "$HEADSTART" show --json=short "$HS_STATE"/traces/*-login*.json >"$SHOWN"
        shown ".flags == $flags"
    done <<<'1000 ["replayed"]
        1001 []'
}

# open_while_stopped [OPTION…]: stops a recorder while 1,000 files are opened, on a kernel whose
# event queues hold 100 events unless they are unlimited.
open_while_stopped() {
    local limit
    hs_filesystem ext4 64
    touch "$HS_MNT"/f{0..999}
    limit=$(cat /proc/sys/fs/fanotify/max_queued_events)
    hs_defer sh -c "echo $limit >/proc/sys/fs/fanotify/max_queued_events"
    echo 100 >/proc/sys/fs/fanotify/max_queued_events
    recorder_start "$@"
    echo "$limit" >/proc/sys/fs/fanotify/max_queued_events
    kill -STOP "$RECORDER"
    cat "$HS_MNT"/f{0..999}
    kill -CONT "$RECORDER"
    recorder_stop
}

@test "an event queue that overflows makes the trace incomplete" {
    open_while_stopped --pretend=no-unlimited-queue
    shown '.flags == ["incomplete"] and .n_overflows >= 1'
    grep -q "incomplete" "$HS_TMP/recorder.log"
}

@test "the event queue has no bound: a recorder that is stopped for a while loses nothing" {
    open_while_stopped
    shown '.flags == [] and .n_overflows == 0'
    shown '[.files[] | select(.path | startswith("/f"))] | length == 1000'
}

# --- what one user can do to the others -----------------------------------------------------------

# as_user UID CODE [ARGUMENT…]: runs the Python code as that user in HS_MNT. The program enters
# HS_MNT as root, because other users cannot search the directories above HS_MNT.
as_user() {
    python3 -c '
import fcntl, os, signal, sys, time # now, because users may be unable to read Python
os.chdir(sys.argv[1])
uid = int(sys.argv[2])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
def touch(name, flags=0):
    os.close(os.open(name, os.O_RDONLY | flags))
'"$2" "$HS_MNT" "$1" "${@:3}"
}

# left_out UID JQ-EXPRESSION: checks that the expression is true of n_events, n_files and n_cut, by
# which the trace counts what it left out of that user's opens.
left_out() {
    # shellcheck disable=SC2016
    jq -e '(.left_out // {uid: []}) as $l | ($l.uid | index($u)) as $i |
           if $i == null then {n_events: 0, n_files: 0, n_cut: 0}
           else {n_events: $l.n_events[$i], n_files: $l.n_files[$i], n_cut: $l.n_cut[$i]} end |
           '"$2" --argjson u "$1" <(zcat -f "$TRACE") >/dev/null || {
        echo "# not so of $1: $2: $(jq -c .left_out <(zcat -f "$TRACE"))" >&2
        return 1
    }
}

@test "sparse files cost a call or two each, whatever their size" {
    need_strace
    hs_filesystem xfs 320
    # Ten files have the largest possible size, and 150 files have 16 TiB.
    truncate -s 9223372036854775807 "$HS_MNT"/huge{0..9}
    truncate -s 16T "$HS_MNT"/sparse{0..149}
    python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(fd, b"x" * 8192, 1 << 62)
os.fsync(fd)' "$HS_MNT/huge5"
    hs_cold
    RECORDER_PREFIX="strace -D -f -o $HS_TMP/strace" recorder_start --stage=boot,login
    grep -q "no cachestat" "$HS_TMP/recorder.log" && skip "the kernel has no cachestat"
    # The stage ends only after all files were sampled while it ran. At its end they are sampled
    # again.
    python3 -c '
import os, sys, time
for name in sys.argv[2:]:
    os.close(os.open(name, os.O_RDONLY))
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
os.pread(fd, 1, 1 << 62)' "$HS_MNT/huge5" "$HS_MNT"/*
    hs_wait 20 all_sampled
    kill -USR1 "$RECORDER"
    hs_wait 20 recorder_says "STATUS=Recording login"
    recorder_stop
    shown '.flags == []'
    shown '[.files[] | select(.path | test("sparse|huge"))] | length == 160'
    # The page that was read is found 4 EiB into the file, unless a reclaimer has taken it since.
    shown '[.files[] | select(.path == "/huge5") | .resident[][0]] | . == [4611686018427387904] or
           length == 0'
    # How many page ranges the budget of time cuts depends on the machine: every call goes through
    # strace here.
    left_out 0 '.n_files == 0'
    # The limit has room for three samples of 160 files, with several calls for each file.
    local calls
    calls=$(grep -cE '(cachestat|syscall_0x1c3|mincore)\(' "$HS_TMP/strace")
    echo "# $calls calls"
    [ "$calls" -ge 160 ]
    [ "$calls" -le 4000 ]
}

# Checks by the recorder's system calls so far whether it has sampled the files while the stage
# runs.
all_sampled() {
    [ "$(grep -cE '(cachestat|syscall_0x1c3)\(' "$HS_TMP/strace")" -ge 160 ]
}

# Prints how often the recorder has opened a file to see which of its pages are resident.
n_sampled() {
    grep -cE 'open(at)?\(.*O_NOATIME' "$HS_TMP/strace"
}

@test "files are sampled while a stage runs, but not if a pack is replayed" {
    need_strace
    hs_filesystem ext4 64
    mkdir -p "$HS_RUN"
    for i in {1..20}; do echo $i >"$HS_MNT/$i"; done
    sync -f "$HS_MNT"
    RECORDER_PREFIX="strace -D -f -o $HS_TMP/strace" recorder_start --run="$HS_RUN"
    cat "$HS_MNT"/[0-9]* >/dev/null
    all_files_sampled() { [ "$(n_sampled)" -ge 20 ]; }
    hs_wait 20 all_files_sampled
    recorder_stop
    rm -rf "$HS_STATE" "$HS_TMP/notify" "$HS_TMP/strace"

    echo '{"stage":"boot","policy":"gate","outcome":"running"}' >"$HS_RUN/replay-boot.json"
    RECORDER_PREFIX="strace -D -f -o $HS_TMP/strace" recorder_start --run="$HS_RUN"
    cat "$HS_MNT"/[0-9]* >/dev/null
    hs_wait 20 grep -q 'replay-boot\.json' "$HS_TMP/strace"
    [ "$(n_sampled)" -eq 0 ]
    recorder_stop
    # At the end of the stage the resident pages are found all the same.
    shown '.flags == ["replayed"] and ([.files[] | select(.resident != [])] | length > 0)'
}

@test "without cachestat the holes of sparse files are left out" {
    need_strace
    [ -x "$HS_BUILD/tests/tools/tool-without-syscall" ] || skip "not built: tool-without-syscall"
    hs_filesystem xfs 320
    truncate -s 9223372036854775807 "$HS_MNT/huge"
    truncate -s 16T "$HS_MNT"/sparse{0..49}
    python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(fd, b"x" * 8192, 1 << 62)
os.fsync(fd)' "$HS_MNT/huge"
    run -0 strace -o "$HS_TMP/strace" "$HS_BUILD/tests/tools/tool-without-syscall" cachestat ENOSYS \
        "$HS_BUILD/tests/tools/tool-residency" "$HS_MNT/huge"
    [ "$output" = "8192 bytes" ] || [ "$output" = "0 bytes" ] # 0 if another process has dropped caches
    [ "$(grep -c 'mincore(' "$HS_TMP/strace")" -le 5 ]
    RECORDER_PREFIX="strace -D -f -o $HS_TMP/strace $HS_BUILD/tests/tools/tool-without-syscall cachestat ENOSYS" \
        recorder_start
    cat "$HS_MNT/nothing" 2>/dev/null || true
    python3 -c '
import os, sys
for name in sys.argv[1:]:
    os.close(os.open(name, os.O_RDONLY))' "$HS_MNT"/*
    recorder_stop
    shown '[.files[] | select(.path | test("sparse|huge"))] | length == 51'
    [ "$(grep -cE '(mincore|lseek)\(' "$HS_TMP/strace")" -le 1000 ]
}

@test "one user's flood of opens is left out, and those of others are not" {
    hs_filesystem ext4 256 -N 16384
    mkdir "$HS_MNT/flood"
    # These are 500 files more than one user's share (TRACE_RECORD_USER_FILES_MAX).
    (cd "$HS_MNT/flood" && seq 15500 | xargs touch)
    for i in before after; do echo x >"$HS_MNT/root-$i"; echo x >"$HS_MNT/other-$i"; done
    recorder_start --stage=boot,login
    cat "$HS_MNT/root-before" >/dev/null
    as_user 23456 'touch("other-before")'
    # Each open must be an event of its own. The kernel merges events of one file that wait in the
    # queue, so consecutive opens are opens of different files.
    as_user 12345 '
os.chdir("flood")
names = os.listdir(".")
for i in range(60):
    for name in names:
        touch(name)'
    as_user 23456 'touch("other-after")'
    cat "$HS_MNT/root-after" >/dev/null
    recorder_stop_large
    shown '.flags == []'
    shown '[.files[].path] | index("/root-before") and index("/root-after") and
                             index("/other-before") and index("/other-after")'
    left_out 12345 '.n_events > 0 and .n_files >= 500 and .n_files < 600'
    shown '[.files[] | select(.path | startswith("/flood/"))] | length >= 14900'
    left_out 0 '.n_events == 0'
    left_out 23456 '.n_events == 0'
    jq -e '.accesses.at_usec_delta | length <= 255000' <(zcat -f "$TRACE") >/dev/null
    [ "$(grep -c "left out.*UID 12345" "$HS_TMP/recorder.log")" -eq 1 ]
}

@test "the trace of one user's login or session has nothing that other people open or run" {
    local stage uid
    hs_filesystem ext4 64
    hs_programs cat
    for uid in 0 1000 1001; do
        echo x >"$HS_MNT/data/of-$uid"
    done
    for stage in login session; do
        rm -rf "$HS_STATE" "$HS_TMP/notify"
        recorder_start --stage=$stage --uid=1000
        for uid in 0 1000 1001; do
            chroot --userspec="$uid:$uid" "$HS_MNT" /bin/cat "/data/of-$uid"
        done
        kill -TERM "$RECORDER"
        wait "$RECORDER"
        TRACE=$(echo "$HS_STATE"/traces/*-$stage*.json)
        SHOWN=$HS_TMP/shown.json
        "$HEADSTART" show --json=short "$TRACE" >"$SHOWN"
        shown '[.files[].path | select(startswith("/data/"))] | sort == ["/data/of-0", "/data/of-1000"]'
        jq -e '.lifetimes.uid | sort == [0, 1000]' <(zcat -f "$TRACE")
    done
}

@test "one user's flood does not displace a file that this user opened before another user did" {
    hs_filesystem ext4 256 -N 16384
    mkdir "$HS_MNT/flood"
    # These are 500 files more than one user's share (TRACE_RECORD_USER_FILES_MAX).
    (cd "$HS_MNT/flood" && seq 15500 | xargs touch)
    echo x >"$HS_MNT/wanted"
    local flood='
os.chdir("flood")
for name in sorted(os.listdir(".")):
    touch(name)'
    recorder_start --stage=boot,login
    # Two runs open each file of the flood, so that these files come before a file that one run opens.
    as_user 12345 "$flood"
    as_user 12345 "$flood
touch(\"../wanted\")"
    as_user 23456 'touch("wanted")'
    as_user 23456 'touch("wanted")'
    recorder_stop_large
    left_out 12345 '.n_files >= 500'
    shown '[.files[].path] | index("/wanted")'
    left_out 23456 '.n_files == 0'
}

@test "the subordinate UIDs of a user have one share together, that of the user" {
    hs_filesystem ext4 256 -N 16384
    mkdir "$HS_MNT/flood" "$HS_MNT/etc"
    # These are 500 files more than one user's share (TRACE_RECORD_USER_FILES_MAX).
    (cd "$HS_MNT/flood" && seq 15500 | xargs touch)
    echo 'user:x:12345:12345::/:/bin/sh' >"$HS_MNT/etc/passwd"
    echo 'user:200000:65536' >"$HS_MNT/etc/subuid"
    recorder_start --stage=boot,login
    for i in {0..9}; do
        as_user "$((200000 + i))" '
os.chdir("flood")
for name in sorted(os.listdir("."))[int(sys.argv[3])::10]:
    touch(name)' "$i"
    done
    recorder_stop_large
    left_out 12345 '.n_files >= 500 and .n_files < 600'
    left_out 200000 '.n_files == 0'
}

@test "30,000 paths of 4,000 bytes by one user: their share, and everybody else's files" {
    hs_filesystem ext4 256 -N 65536 -b 4096
    local deep='
os.chdir("user")
make = os.O_CREAT if sys.argv[3] == "make" else 0
for i in range(15):
    name = ("%02d" % i) * 125
    if make:
        os.mkdir(name)
    os.chdir(name)
for i in range(30000):
    touch("%0200d" % i, make)'
    mkdir -m 777 "$HS_MNT/user"
    as_user 12345 "$deep" make
    echo x >"$HS_MNT/root-after"
    echo x >"$HS_MNT/other-after"
    recorder_start --stage=boot,login
    as_user 12345 "$deep" open
    cat "$HS_MNT/root-after" >/dev/null
    as_user 23456 'touch("other-after")'
    recorder_stop_large
    shown '.flags == []'
    shown '[.files[].path] | index("/root-after") and index("/other-after")'
    # The share is 2 MiB of paths. Each file is opened once, so the files that were opened first
    # stay.
    shown '[.files[] | select(.path | startswith("/user/")) | .path | length] | add |
           . > 1500000 and . <= 2097152'
    left_out 12345 '.n_files > 29000'
    left_out 0 '.n_files == 0'
    left_out 23456 '.n_files == 0'
    [ "$(zcat -f "$TRACE" | wc -c)" -lt 1000000 ]
    [ "$(grep -c "left out.*UID 12345" "$HS_TMP/recorder.log")" -eq 1 ]
}

@test "many directories by one user do not fill the tree of paths for everybody" {
    hs_filesystem ext4 256 -N 90000 -b 1024
    # 75 files, each below 1,000 directories of its own: few files and few bytes, but 75,000 names.
    # One user may have 60,000 names (TRACE_RECORD_USER_NAMES_MAX). 400 such files would reach the
    # limit for all users (TRACE_RECORD_NAMES_MAX).
    local deep='
make = sys.argv[3] == "make"
os.chdir("user")
top = os.open(".", os.O_RDONLY)
for i in range(75):
    os.fchdir(top)
    name = chr(0x4e00 + i)
    for depth in range(1000):
        if make:
            os.mkdir(name)
        os.chdir(name)
        name = "d"
    touch("f", os.O_CREAT if make else 0)'
    mkdir -m 777 "$HS_MNT/user"
    as_user 12345 "$deep" make
    echo x >"$HS_MNT/root-after"
    echo x >"$HS_MNT/other-after"
    recorder_start --stage=boot,login
    as_user 12345 "$deep" open
    cat "$HS_MNT/root-after" >/dev/null
    as_user 23456 'touch("other-after")'
    recorder_stop_large
    shown '.flags == []'
    shown '[.files[].path] | index("/root-after") and index("/other-after")'
    left_out 12345 '.n_files > 10'
    left_out 23456 '.n_files == 0'
    jq -e '.paths.parent | length < 61000' <(zcat -f "$TRACE") >/dev/null
}

# --- missing features and privileges --------------------------------------------------------------

@test "CAP_NET_ADMIN is dropped when the proc connector is open" {
    hs_filesystem ext4 64
    local before
    before=$(sed -n 's/^CapEff:\s*//p' /proc/self/status)
    (((0x$before & 0x1000) != 0)) || skip "needs CAP_NET_ADMIN"
    hs_programs cat
    echo x >"$HS_MNT/data/file"
    # A thread of its own accesses the second filesystem, and another one watches for a stop. Each thread has
    # capabilities of its own.
    mkdir "$HS_MNT/second"
    truncate -s 64M "$HS_TMP/second.img"
    mkfs.ext4 -q "$HS_TMP/second.img"
    hs_loop "$HS_TMP/second.img"
    hs_mount "$HS_LOOP" "$HS_MNT/second"
    recorder_start
    local status set n=0
    for status in "/proc/$RECORDER/task"/*/status; do
        for set in CapEff CapPrm CapInh; do
            (((0x$(sed -n "s/^$set:\s*//p" "$status") & 0x1000) == 0))
        done
        n=$((n + 1))
    done
    [ "$n" -ge 3 ]
    chroot "$HS_MNT" /bin/cat /data/file
    recorder_stop
    shown '.process_source == "connector"'
    of /data/file /bin/cat
}

@test "without CAP_SYS_ADMIN or CAP_DAC_READ_SEARCH: one line, and no success" {
    need_command setpriv
    hs_filesystem ext4 64
    run -1 --separate-stderr hs_without sys_admin "$HEADSTARTD" --root="$HS_MNT" --state="$HS_STATE" \
        --stage=boot
    assert_one_error_line "$stderr"
    [[ $stderr == *CAP_SYS_ADMIN* ]]
    run -1 --separate-stderr hs_without dac_read_search,dac_override "$HEADSTARTD" --root="$HS_MNT" \
        --state="$HS_STATE" --stage=boot
    assert_one_error_line "$stderr"
    [[ $stderr == *CAP_DAC_READ_SEARCH* ]]
    [ ! -e "$HS_STATE" ]
}

@test "without CAP_FOWNER: one line, and the trace claims no residency" {
    need_command setpriv
    hs_filesystem ext4 64
    head -c 100K /dev/urandom >"$HS_MNT/other"
    chown 12345 "$HS_MNT/other"
    hs_cold
    RECORDER_PREFIX="setpriv --bounding-set -fowner --inh-caps -fowner" recorder_start
    "$HEADSTARTD" --version >/dev/null
    python3 -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY))' "$HS_MNT/other"
    recorder_stop
    [ "$(grep -c CAP_FOWNER "$HS_TMP/recorder.log")" -eq 1 ]
    shown '.flags | index("residency off")'
    shown '[.files[] | select(.path == "/other") | .resident] == [[]]'
}

@test "a kernel that hides residency is detected although it granted CAP_FOWNER" {
    # In a user namespace root has all capabilities, but not for the files of all users. The
    # recorder cannot work there. Therefore only its check of a single file is tested, outside a
    # user namespace and without the capabilities.
    need_command setpriv
    hs_filesystem ext4 64
    head -c 100K /dev/urandom >"$HS_MNT/other"
    chown 12345 "$HS_MNT/other"
    hs_cold
    [ -x "$HS_BUILD/tests/tools/tool-residency" ] || skip "not built: tool-residency"
    run -0 "$HS_BUILD/tests/tools/tool-residency" "$HS_MNT/other"
    [ "$output" = "0 bytes" ]
    run -1 --separate-stderr hs_without fowner,dac_override \
        "$HS_BUILD/tests/tools/tool-residency" "$HS_MNT/other"
    [[ $stderr == *"Operation not permitted"* ]]
}

@test "no local block-backed filesystem, no such root: one line" {
    need_root
    mkdir "$HS_TMP/tmpfs"
    mount -t tmpfs tmpfs "$HS_TMP/tmpfs"
    hs_defer umount "$HS_TMP/tmpfs"
    run -1 --separate-stderr "$HEADSTARTD" --root="$HS_TMP/tmpfs" --state="$HS_STATE" --stage=boot
    assert_one_error_line "$stderr"
    [[ $stderr == *"no local"* ]]
    run -1 --separate-stderr "$HEADSTARTD" --root="$HS_TMP/nowhere" --state="$HS_STATE" --stage=boot
    assert_one_error_line "$stderr"
}

@test "wrong usage of headstartd: exit status 2" {
    run -2 --separate-stderr "$HEADSTARTD" --stage=lunch
    assert_one_error_line "$stderr"
    run -2 --separate-stderr "$HEADSTARTD" --pretend=rain
    assert_one_error_line "$stderr"
    run -2 --separate-stderr "$HEADSTARTD" more
    assert_one_error_line "$stderr"
    run -2 "$HEADSTARTD" --frob
    run -0 "$HEADSTARTD" --help
    [[ $output == *--restore* ]]
    run -0 "$HEADSTARTD" --version
    [[ $output == "headstartd "[0-9]* ]]
}

@test "a kernel without fanotify: one line" {
    need_command setpriv
    # A seccomp filter simulates such a kernel.
    [ -x "$HS_BUILD/tests/tools/tool-without-syscall" ] || skip "not built: tool-without-syscall"
    hs_filesystem ext4 64
    run -1 --separate-stderr "$HS_BUILD/tests/tools/tool-without-syscall" fanotify_init ENOSYS \
        "$HEADSTARTD" --root="$HS_MNT" --state="$HS_STATE" --stage=boot
    assert_one_error_line "$stderr"
    [[ $stderr == *fanotify* ]]
}

@test "the unit does not fail if nothing can be recorded" {
    [ -x "$HS_BUILD/tests/tools/tool-without-syscall" ] || skip "not built: tool-without-syscall"
    run -0 --separate-stderr "$HS_BUILD/tests/tools/tool-without-syscall" fanotify_init ENOSYS \
        "$HEADSTARTD" --root="$HS_TMP" --state="$HS_STATE" --run="$HS_TMP/run" --stage=auto
    [[ $stderr == *"this kernel has no fanotify"* ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ ! -e "$HS_STATE" ]
    # There is no local disk below the root, as on a diskless machine.
    mkdir "$HS_TMP/memory"
    mount -t tmpfs tmpfs "$HS_TMP/memory"
    hs_defer umount "$HS_TMP/memory"
    run -0 --separate-stderr "$HEADSTARTD" --root="$HS_TMP/memory" --state="$HS_STATE" \
        --run="$HS_TMP/run" --stage=auto
    [[ $stderr == *"no local block-backed filesystem"* ]]
}

@test "a kernel without cachestat, or one that refuses it: metadata is derived" {
    local error
    [ -x "$HS_BUILD/tests/tools/tool-without-syscall" ] || skip "not built: tool-without-syscall"
    hs_filesystem ext4 64
    mkdir "$HS_MNT/d"
    for error in ENOSYS EPERM; do
        hs_cold
        RECORDER_PREFIX="$HS_BUILD/tests/tools/tool-without-syscall cachestat $error" recorder_start
        ls "$HS_MNT/d" >/dev/null
        recorder_stop
        [ "$(grep -c "no cachestat" "$HS_TMP/recorder.log")" -eq 1 ]
        shown '.volumes[0].metadata_source == "derived" and .volumes[0].metadata_bytes > 0'
        hs_kill "$RECORDER"
        rm -rf "$HS_STATE" "$HS_TMP/notify"
    done
}

@test "a full disk: one line, no success, and the earlier traces stay as they are" {
    hs_filesystem ext4 64
    mkdir "$HS_STATE"
    mount -t tmpfs -o size=256k tmpfs "$HS_STATE"
    hs_defer umount "$HS_STATE"
    touch "$HS_MNT"/file-{0..4999}
    recorder_start
    ls "$HS_MNT" >/dev/null
    recorder_stop
    local before
    before=$(sha256sum "$TRACE")
    rm -f "$HS_TMP/notify"
    head -c 240K /dev/zero >"$HS_STATE/ballast" || true
    recorder_start
    find "$HS_MNT" -type f -name 'file-*' -exec cat {} +
    recorder_stop 1
    [ "$(grep -c "No space left" "$HS_TMP/recorder.log")" -eq 1 ]
    [ "$(find "$HS_STATE/traces" -mindepth 1 | wc -l)" -eq 1 ]
    [ "$(sha256sum "$TRACE")" = "$before" ]
}

# --- names that are encrypted -----------------------------------------------------------------------

# encrypt DIRECTORY: encrypts an empty directory with an fscrypt key. Its filesystem must be an ext4
# with the feature `encrypt`.
encrypt() {
    python3 - "$1" <<'EOF'
import fcntl, os, struct, sys
ADD_KEY, SET_POLICY = 0xC0506617, 0x800C6613
fd = os.open(sys.argv[1], os.O_RDONLY)
key = bytearray(struct.pack("II32sIII28s", 2, 0, bytes(32), 64, 0, 0, bytes(28)) + bytes(range(64)))
fcntl.ioctl(fd, ADD_KEY, key)
fcntl.ioctl(fd, SET_POLICY, bytearray(struct.pack("BBBBBBBB16s", 2, 1, 4, 3, 0, 0, 0, 0, bytes(key[8:24]))))
EOF
}

@test "names of files with an fscrypt key are recorded only where the state directory has one" {
    hs_filesystem ext4 64 -O encrypt
    mkdir -p "$HS_MNT"/{home,state,bound}
    encrypt "$HS_MNT/home" || skip "fscrypt does not work here"
    encrypt "$HS_MNT/state"
    mkdir "$HS_MNT/home/mails-of-anna"
    echo secret | tee "$HS_MNT/home/letter-to-anna" >"$HS_MNT/home/diary-of-anna"
    cp /bin/true "$HS_MNT/home/program-of-anna"
    echo public >"$HS_MNT/readme"

    # systemd-homed mounts a home of its fscrypt backend again, at another place.
    recorder_start
    hs_mount "$HS_MNT/home" "$HS_MNT/bound" bind
    cat "$HS_MNT/home/letter-to-anna" "$HS_MNT/bound/diary-of-anna" "$HS_MNT/readme"
    ls "$HS_MNT/bound/mails-of-anna"
    "$HS_MNT/home/program-of-anna"
    recorder_stop
    shown 'any(.files[]; .path == "/readme")'
    run ! grep anna < <(find "$HS_STATE" -type f -exec zcat -f {} +)

    HS_STATE=$HS_MNT/state
    recorder_start
    cat "$HS_MNT/home/letter-to-anna" "$HS_MNT/readme"
    recorder_stop
    shown 'any(.files[]; .path == "/home/letter-to-anna") and any(.files[]; .path == "/readme")'
}

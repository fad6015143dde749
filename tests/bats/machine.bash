# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions for tests that boot a Debian system with its own systemd in a container. A test file runs `load
# machine` after `load helpers`. The system is on an ext4 of its own, with the build installed. Control groups are
# those of version 2, without the controllers that the host's version 1 hierarchies own. The kernel is the host's.

# machine_tree NAME: unpacks a tree of tests/vm (d12-text, d13-text) into a new filesystem on HS_MNT, and installs
# the build there. Call it without a subshell.
machine_tree() {
    local cache=${HEADSTART_VM_CACHE:-/var/cache/headstart-vm} tar
    need_command systemd-nspawn mmdebstrap nsenter meson
    [ -n "$(machine_hierarchy)" ] || skip "no control groups of version 2 here"
    tar=$(cd "$HS_SOURCE/tests/vm" && PYTHONDONTWRITEBYTECODE=1 python3 -c '
import pathlib, sys
from hsvm.trees import tree
print(tree(sys.argv[1], pathlib.Path(sys.argv[2])))' "$1" "$cache" | tail -n 1)
    hs_filesystem ext4 1500
    tar -xf "$tar" -C "$HS_MNT" --numeric-owner --exclude='./dev/*' --exclude='./boot/*' \
        --exclude='./usr/lib/modules/*' --exclude='./usr/share/doc/*'
    DESTDIR=$HS_MNT meson install -C "$HS_BUILD" --no-rebuild --quiet >/dev/null
    # The machine is a container, in which this condition would prevent the start of the units.
    sed -i '/^ConditionVirtualization=!container$/d' "$HS_MNT"/usr/{,local/}lib/systemd/system/headstart-* 2>/dev/null ||
        true
    echo uninitialized >"$HS_MNT/etc/machine-id"
}

# machine_hierarchy: prints the mount point of the control groups of version 2, or nothing if they
# are not mounted.
machine_hierarchy() {
    awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts
}

# machine_boot [OPTION…]: boots HS_MNT, with these options of systemd-nspawn, until its default target is
# reached. Sets MACHINE, the process ID of its PID 1.
machine_boot() {
    local name groups=() d
    name=headstart-$$-$BATS_TEST_NUMBER
    for d in "$(machine_hierarchy)" /sys/fs/cgroup/systemd; do
        [ -e "$d/cgroup.procs" ] || continue
        groups+=("$d/$name")
        mkdir "$d/$name"
        hs_defer machine_group_remove "$d/$name"
    done
    (
        for d in "${groups[@]}"; do
            echo "$BASHPID" >"$d/cgroup.procs"
        done
        # SYSTEMD_SECCOMP=0 because the filter of nspawn refuses system calls that are newer than
        # nspawn.
        SYSTEMD_SECCOMP=0 SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 exec systemd-nspawn --directory="$HS_MNT" --boot \
            --quiet --register=no --keep-unit --private-users=no --private-network --link-journal=no \
            --resolv-conf=off --timezone=off --console=read-only --machine="$name" \
            --bind="$HS_LOOP" --bind=/dev/autofs --setenv=SYSTEMD_LOG_SECCOMP=1 "$@"
    ) >"$HS_TMP/console" 2>&1 </dev/null 3>&- &
    MACHINE_NSPAWN=$!
    hs_defer machine_end
    if ! hs_wait 60 machine_leader || ! hs_wait 120 machine_is_up; then
        tail -n 40 "$HS_TMP/console"
        return 1
    fi
}

# Finds the child of systemd-nspawn that is PID 1 of the container. Another child sets the container up
# and ends.
machine_leader() {
    local pid
    for pid in $(pgrep -P "$MACHINE_NSPAWN"); do
        awk '$1 == "NSpid:" && NF > 2 && $NF == 1 { found = 1 } END { exit !found }' "/proc/$pid/status" \
            2>/dev/null || continue
        MACHINE=$pid
        return 0
    done
    return 1
}

# in_machine COMMAND…: runs the command in the container.
in_machine() {
    nsenter -t "$MACHINE" -m -u -i -n -p -C -- "$@"
}

machine_is_up() {
    in_machine systemctl is-active --quiet multi-user.target 2>/dev/null
}

machine_end() {
    kill -KILL "$MACHINE_NSPAWN" "$MACHINE" 2>/dev/null || true
    wait "$MACHINE_NSPAWN" 2>/dev/null || true
}

# machine_group_remove DIR: kills the processes that are left in the control group, and removes the
# group.
machine_group_remove() {
    local d i
    for ((i = 0; i < 100; i++)); do
        while read -r d; do
            while read -r pid; do
                [ "$pid" = 0 ] || kill -KILL "$pid" 2>/dev/null
            done <"$d/cgroup.procs"
            rmdir "$d" 2>/dev/null
        done < <(find "$1" -depth -type d 2>/dev/null)
        [ -e "$1" ] || return 0
        sleep 0.05
    done
    return 1
}

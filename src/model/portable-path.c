/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which paths are the same on every machine of a distribution (model.h). */

#include "model/model.h"

#include <string.h>

/* The directories of a distribution, and the paths in /etc that are the same on every machine with
 * all names below them. Elsewhere in /etc the administrator chooses the names, which reveal
 * networks, sites, keys and people. All other paths belong to the machine or to a user. */
static const char *const shared[] = {
        "/bin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/sbin",
        "/usr",
        "/var/cache/fontconfig",
        "/etc/.pwd.lock",
        "/etc/UPower",
        "/etc/X11",
        "/etc/alternatives",
        "/etc/anacrontab",
        "/etc/bash.bashrc",
        "/etc/bashrc",
        "/etc/ca-certificates.conf",
        "/etc/console-setup",
        "/etc/crontab",
        "/etc/crypttab",
        "/etc/dbus-1",
        "/etc/debian_version",
        "/etc/environment",
        "/etc/fonts",
        "/etc/fstab",
        "/etc/gai.conf",
        "/etc/gdm",
        "/etc/gdm3",
        "/etc/glvnd",
        "/etc/group",
        "/etc/gshadow",
        "/etc/gtk-2.0",
        "/etc/gtk-3.0",
        "/etc/gtk-4.0",
        "/etc/host.conf",
        "/etc/hostname",
        "/etc/hosts",
        "/etc/inputrc",
        "/etc/issue",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.preload",
        "/etc/libblockdev",
        "/etc/lightdm",
        "/etc/locale.alias",
        "/etc/locale.conf",
        "/etc/localtime",
        "/etc/login.defs",
        "/etc/machine-id",
        "/etc/mailcap",
        "/etc/mime.types",
        "/etc/modules",
        "/etc/motd",
        "/etc/nsswitch.conf",
        "/etc/os-release",
        "/etc/pam.d",
        "/etc/papersize",
        "/etc/passwd",
        "/etc/pipewire",
        "/etc/profile",
        "/etc/protocols",
        "/etc/pulse",
        "/etc/resolv.conf",
        "/etc/rsyslog.conf",
        "/etc/sddm.conf",
        "/etc/security",
        "/etc/services",
        "/etc/shadow",
        "/etc/shells",
        "/etc/ssl/openssl.cnf",
        "/etc/sysctl.conf",
        "/etc/timezone",
        "/etc/udisks2",
        "/etc/vconsole.conf",
        "/etc/vulkan",
        "/etc/wireplumber",
        "/etc/xdg",
};

/* Directories below one of `shared` that belong to the machine. */
static const char *const local[] = {"/usr/home", "/usr/local"};

/* Further names that are the same on every machine. They reveal nothing, but in these directories
 * the administrator, a service or a user chooses the names. A boot looks at most of them. */
static const char *const alone[] = {
        "/etc",
        "/etc/NetworkManager",
        "/etc/NetworkManager/NetworkManager.conf",
        "/etc/NetworkManager/conf.d",
        "/etc/NetworkManager/dispatcher.d",
        "/etc/NetworkManager/system-connections",
        "/etc/avahi",
        "/etc/avahi/avahi-daemon.conf",
        "/etc/avahi/hosts",
        "/etc/avahi/services",
        "/etc/binfmt.d",
        "/etc/cron.d",
        "/etc/cups",
        "/etc/cups/cups-files.conf",
        "/etc/cups/cupsd.conf",
        "/etc/default",
        "/etc/default/alsa",
        "/etc/default/anacron",
        "/etc/default/avahi-daemon",
        "/etc/default/bluetooth",
        "/etc/default/console-setup",
        "/etc/default/cron",
        "/etc/default/cryptdisks",
        "/etc/default/cups",
        "/etc/default/dbus",
        "/etc/default/grub",
        "/etc/default/hwclock",
        "/etc/default/im-config",
        "/etc/default/keyboard",
        "/etc/default/locale",
        "/etc/default/networking",
        "/etc/default/nss",
        "/etc/default/rsyslog",
        "/etc/default/smartmontools",
        "/etc/default/ssh",
        "/etc/default/sysstat",
        "/etc/default/ufw",
        "/etc/default/useradd",
        "/etc/headstart",
        "/etc/init.d",
        "/etc/init.d/README",
        "/etc/init.d/alsa-utils",
        "/etc/init.d/anacron",
        "/etc/init.d/apparmor",
        "/etc/init.d/avahi-daemon",
        "/etc/init.d/bluetooth",
        "/etc/init.d/console-setup.sh",
        "/etc/init.d/cron",
        "/etc/init.d/cryptdisks",
        "/etc/init.d/cryptdisks-early",
        "/etc/init.d/cups",
        "/etc/init.d/cups-browsed",
        "/etc/init.d/dbus",
        "/etc/init.d/functions",
        "/etc/init.d/gdm3",
        "/etc/init.d/hwclock.sh",
        "/etc/init.d/keyboard-setup.sh",
        "/etc/init.d/kmod",
        "/etc/init.d/lightdm",
        "/etc/init.d/lvm2",
        "/etc/init.d/mdadm",
        "/etc/init.d/networking",
        "/etc/init.d/plymouth",
        "/etc/init.d/plymouth-log",
        "/etc/init.d/procps",
        "/etc/init.d/rsyslog",
        "/etc/init.d/saned",
        "/etc/init.d/sddm",
        "/etc/init.d/smartmontools",
        "/etc/init.d/ssh",
        "/etc/init.d/sudo",
        "/etc/init.d/sysstat",
        "/etc/init.d/udev",
        "/etc/init.d/ufw",
        "/etc/init.d/unattended-upgrades",
        "/etc/init.d/x11-common",
        "/etc/modprobe.d",
        "/etc/modules-load.d",
        "/etc/network",
        "/etc/network/if-down.d",
        "/etc/network/if-post-down.d",
        "/etc/network/if-pre-up.d",
        "/etc/network/if-up.d",
        "/etc/network/interfaces",
        "/etc/network/interfaces.d",
        "/etc/polkit-1",
        "/etc/polkit-1/localauthority.conf.d",
        "/etc/polkit-1/rules.d",
        "/etc/rc0.d",
        "/etc/rc1.d",
        "/etc/rc2.d",
        "/etc/rc3.d",
        "/etc/rc4.d",
        "/etc/rc5.d",
        "/etc/rc6.d",
        "/etc/rcS.d",
        "/etc/rsyslog.d",
        "/etc/selinux",
        "/etc/selinux/config",
        "/etc/ssl",
        "/etc/ssl/certs",
        "/etc/ssl/certs/ca-bundle.crt",
        "/etc/ssl/certs/ca-bundle.trust.crt",
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/ssl/certs/java",
        "/etc/ssl/certs/java/cacerts",
        "/etc/sysctl.d",
        "/etc/systemd",
        "/etc/systemd/journald.conf",
        "/etc/systemd/logind.conf",
        "/etc/systemd/network",
        "/etc/systemd/networkd.conf",
        "/etc/systemd/oomd.conf",
        "/etc/systemd/pstore.conf",
        "/etc/systemd/resolved.conf",
        "/etc/systemd/sleep.conf",
        "/etc/systemd/system",
        "/etc/systemd/system.conf",
        "/etc/systemd/timesyncd.conf",
        "/etc/systemd/user",
        "/etc/systemd/user.conf",
        "/etc/tmpfiles.d",
        "/etc/udev",
        "/etc/udev/rules.d",
        "/etc/udev/udev.conf",
        "/root",
        "/usr/local",
        "/usr/local/bin",
        "/usr/local/lib",
        "/usr/local/sbin",
        "/usr/local/share",
        "/var",
        "/var/cache",
        "/var/cache/cups",
        "/var/lib",
        "/var/lib/AccountsService",
        "/var/lib/AccountsService/icons",
        "/var/lib/AccountsService/users",
        "/var/lib/NetworkManager",
        "/var/lib/PackageKit",
        "/var/lib/colord",
        "/var/lib/colord/icc",
        "/var/lib/dbus",
        "/var/lib/headstart",
        "/var/lib/lightdm",
        "/var/lib/polkit-1",
        "/var/lib/systemd",
        "/var/lib/systemd/backlight",
        "/var/lib/systemd/catalog",
        "/var/lib/systemd/coredump",
        "/var/lib/systemd/linger",
        "/var/lib/systemd/rfkill",
        "/var/lib/systemd/timers",
        "/var/lib/udisks2",
        "/var/lib/upower",
        "/var/log",
        "/var/log/cups",
        "/var/log/journal",
        "/var/spool",
        "/var/spool/cron",
        "/var/spool/cron/crontabs",
        "/var/spool/cups",
};

/* The targets for which a distribution enables units. Symlinks to the units are in the directories
 * /etc/systemd/system/NAME.target.wants and similar ones. */
static const char *const targets[] = {
        "basic",     "bluetooth", "default",           "emergency",
        "getty",     "graphical", "graphical-session", "graphical-session-pre",
        "hibernate", "local-fs",  "multi-user",        "network-online",
        "paths",     "printer",   "remote-fs",         "sleep",
        "sockets",   "suspend",   "sysinit",           "timers",
};

static bool is_below(const char *path, const char *prefix)
{
    size_t l = strlen(prefix);

    return strncmp(path, prefix, l) == 0 && (path[l] == 0 || path[l] == '/');
}

/* Returns true for a directory such as /etc/systemd/system/getty.target.wants. */
static bool is_of_target(const char *path)
{
    static const char *const parents[] = {"/etc/systemd/system/", "/etc/systemd/user/"};

    for (size_t i = 0; i < ELEMENTSOF(parents); i++) {
        size_t l = strlen(parents[i]);

        for (size_t k = 0; k < ELEMENTSOF(targets) && strncmp(path, parents[i], l) == 0; k++) {
            size_t t = strlen(targets[k]);

            if (strncmp(path + l, targets[k], t) == 0 &&
                (strcmp(path + l + t, ".target.wants") == 0 ||
                 strcmp(path + l + t, ".target.requires") == 0))
                return true;
        }
    }
    return false;
}

bool model_path_is_portable(const char *path)
{
    bool is_local = false;

    for (size_t i = 0; i < ELEMENTSOF(local); i++)
        is_local = is_local || is_below(path, local[i]);
    for (size_t i = 0; i < ELEMENTSOF(shared) && !is_local; i++)
        if (is_below(path, shared[i]))
            return true;
    for (size_t i = 0; i < ELEMENTSOF(alone); i++)
        if (strcmp(path, alone[i]) == 0)
            return true;
    return is_of_target(path);
}

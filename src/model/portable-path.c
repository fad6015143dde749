/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which paths are the same on every machine of a distribution (model.h). */

#include "model/model.h"

#include <string.h>

/* The directories of a distribution, and the paths in /etc whose names are the same on every
 * machine. Elsewhere in /etc the administrator chooses the names, which reveal networks, sites,
 * keys and people. All other paths belong to the machine or to a user. */
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
        "/etc/default",
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
        "/etc/init.d",
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
        "/etc/ssl/certs",
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

static bool is_below(const char *path, const char *prefix)
{
    size_t l = strlen(prefix);

    return strncmp(path, prefix, l) == 0 && (path[l] == 0 || path[l] == '/');
}

bool model_path_is_portable(const char *path)
{
    for (size_t i = 0; i < ELEMENTSOF(local); i++)
        if (is_below(path, local[i]))
            return false;
    for (size_t i = 0; i < ELEMENTSOF(shared); i++)
        if (is_below(path, shared[i]))
            return true;
    return false;
}

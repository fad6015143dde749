/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/machine.h"

#include "base/directory.h"
#include "base/rooted.h"
#include "system/thermal.h"

#include <fcntl.h>
#include <string.h>

#define SUPPLIES  "/sys/class/power_supply"
#define VALUE_MAX 4096U

/* Returns true if the supply has the attribute with that value. */
static bool is_word(int root_fd, const char *supply, const char *attribute, const char *word)
{
    _cleanup_free_ char *text = NULL;
    char path[512];

    snprintf(path, sizeof(path), SUPPLIES "/%s/%s", supply, attribute);
    if (rooted_read(root_fd, path, VALUE_MAX, &text, NULL) < 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    return strcmp(text, word) == 0;
}

/* Returns true if the supply feeds the machine itself and not a mouse or a headset. */
static bool is_own(int root_fd, const char *supply)
{
    return !is_word(root_fd, supply, "scope", "Device");
}

bool machine_on_battery(int root_fd)
{
    _cleanup_closedir_ DIR *d = NULL;
    bool online = false, discharging = false;
    const struct dirent *e;

    if (directory_from_fd(rooted_open(root_fd, SUPPLIES, O_RDONLY | O_DIRECTORY), &d) < 0)
        return false;
    while (!online && (e = directory_next(d)))
        online = is_own(root_fd, e->d_name) && !is_word(root_fd, e->d_name, "type", "Battery") &&
                 is_word(root_fd, e->d_name, "online", "1");
    /* Reading a battery can take the firmware milliseconds, so batteries come second, and are read
     * only if no other supply is online. */
    rewinddir(d);
    while (!online && !discharging && (e = directory_next(d)))
        discharging = is_own(root_fd, e->d_name) &&
                      is_word(root_fd, e->d_name, "type", "Battery") &&
                      is_word(root_fd, e->d_name, "status", "Discharging");
    return discharging;
}

double machine_memory_pressure(int root_fd)
{
    _cleanup_free_ char *text = NULL;
    const char *p;
    double x;

    if (rooted_read(root_fd, "/proc/pressure/memory", VALUE_MAX, &text, NULL) < 0)
        return 0;
    p = strstr(text, "some avg10=");
    if (!p)
        return 0;
    x = strtod(p + strlen("some avg10="), NULL);
    return x >= 0 && x <= 100 ? x : 0;
}

int machine_snapshot(int root_fd, CycleSnapshot *ret)
{
    CycleSnapshot s = {0};
    int r = memory_facts_read_own(root_fd, &s.memory);

    if (r < 0)
        return r;
    s.memory_pressure = machine_memory_pressure(root_fd);
    s.on_battery = machine_on_battery(root_fd);
    s.hot = thermal_is_hot(root_fd);
    *ret = s;
    return 0;
}

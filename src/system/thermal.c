/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/thermal.h"

#include "base/directory.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <string.h>

#define ZONES     "/sys/class/thermal"
#define TRIPS_MAX 16U
#define ZONES_MAX 64U

/* Reads an attribute of a zone up to the end of its first line. Returns an errno below 0. */
static int read_attribute(int root_fd, const char *zone, const char *name, char **ret)
{
    char path[512];
    int r;

    snprintf(path, sizeof(path), ZONES "/%s/%s", zone, name);
    r = rooted_read(root_fd, path, 4096, ret, NULL);
    if (r >= 0)
        (*ret)[strcspn(*ret, "\n")] = 0;
    return r;
}

/* Returns a temperature in thousandths of a degree, or 0 if it cannot be read. */
static long read_temperature(int root_fd, const char *zone, const char *name)
{
    _cleanup_free_ char *text = NULL;

    return read_attribute(root_fd, zone, name, &text) < 0 ? 0 : strtol(text, NULL, 10);
}

static bool zone_is_hot(int root_fd, const char *zone)
{
    long temperature = read_temperature(root_fd, zone, "temp");

    for (unsigned i = 0; temperature > 0 && i < TRIPS_MAX; i++) {
        _cleanup_free_ char *type = NULL;
        char name[64];
        long trip;

        snprintf(name, sizeof(name), "trip_point_%u_type", i);
        if (read_attribute(root_fd, zone, name, &type) < 0)
            break;
        if (strcmp(type, "passive") != 0 && strcmp(type, "hot") != 0 &&
            strcmp(type, "critical") != 0)
            continue;
        snprintf(name, sizeof(name), "trip_point_%u_temp", i);
        trip = read_temperature(root_fd, zone, name);
        if (trip > 0 && temperature >= trip)
            return true;
    }
    return false;
}

bool thermal_is_hot(int root_fd)
{
    _cleanup_closedir_ DIR *d = NULL;
    const struct dirent *e;
    bool hot = false;

    if (directory_from_fd(rooted_open(root_fd, ZONES, O_RDONLY | O_DIRECTORY), &d) < 0)
        return false;
    for (unsigned n = 0; !hot && n < ZONES_MAX && (e = directory_next(d));)
        if (strncmp(e->d_name, "thermal_zone", strlen("thermal_zone")) == 0) {
            hot = zone_is_hot(root_fd, e->d_name);
            n++;
        }
    return hot;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pressure stall information, or disk statistics if that information is missing. The parts of the
 * input before and after a line `---` are two readings. A reading that begins with a digit or blank
 * is /proc/diskstats. */

#include "fuzz.h"

#include "system/pressure.h"

#include <unistd.h>

static void put(const uint8_t *data, size_t size)
{
    (void)unlinkat(fuzz_root(), "proc/pressure/io", 0);
    (void)unlinkat(fuzz_root(), "proc/diskstats", 0);
    if (size > 0 && (data[0] == ' ' || (data[0] >= '0' && data[0] <= '9')))
        fuzz_root_put("proc/diskstats", data, size);
    else
        fuzz_root_put("proc/pressure/io", data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char group[] = "sys/fs/cgroup/system.slice/headstart-learn.service/";
    const uint8_t *rest;
    size_t rest_size, first = fuzz_split(data, size, &rest, &rest_size);
    Pressure p = {.root_fd = fuzz_root()};
    uint64_t before = 0, after = 0;
    char path[128];
    int r;

    fuzz_root_put("sys/block/sda/stat", "", 0);
    put(data, first);
    r = pressure_read(&p, &before);
    FUZZ_CHECK(r < 0 || before == 0);
    put(rest, rest_size);
    snprintf(path, sizeof(path), "%sio.pressure", group);
    fuzz_root_put(path, data, first);
    snprintf(path, sizeof(path), "%scgroup.procs", group);
    fuzz_root_put(path, rest, rest_size);
    fuzz_root_put("sys/fs/cgroup/user.slice/io.pressure", rest, rest_size);
    fuzz_root_put("proc/1/io", data, first);
    fuzz_root_put("proc/1/comm", "headstart-repla\n", 16);
    fuzz_root_put("sys/fs/cgroup/init.scope/cgroup.procs", rest, rest_size);
    fuzz_root_put("sys/fs/cgroup/init.scope/io.pressure", rest, rest_size);
    if (r >= 0)
        r = pressure_read(&p, &after);
    fuzz_count(r >= 0);
    FUZZ_CHECK(r < 0 || after >= before);
    return 0;
}

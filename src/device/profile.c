/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/profile.h"

#define HDD                                                                               \
    {                                                                                     \
        .rate_bytes_per_usec = 100, .fixed_usec = 100, .depth = 1, .seek_min_usec = 1000, \
        .seek_max_usec = 12000, .half_rotation_usec = 4170, .wait_bytes = 256 * 1024      \
    }

static const DeviceProfile profiles[_DEVICE_CLASS_MAX] = {
        [DEVICE_CLASS_UNKNOWN] = HDD,
        [DEVICE_CLASS_HDD] = HDD,
        [DEVICE_CLASS_SD] = {.rate_bytes_per_usec = 40, .fixed_usec = 700, .depth = 1},
        [DEVICE_CLASS_EMMC] = {.rate_bytes_per_usec = 150, .fixed_usec = 250, .depth = 1},
        [DEVICE_CLASS_NETDISK] = {.rate_bytes_per_usec = 100, .fixed_usec = 3000, .depth = 64},
        [DEVICE_CLASS_SSD] = {.rate_bytes_per_usec = 500, .fixed_usec = 100, .depth = 32},
};

const DeviceProfile *device_profile_of_class(DeviceClass c)
{
    return &profiles[(int)c >= 0 && c < _DEVICE_CLASS_MAX ? c : DEVICE_CLASS_UNKNOWN];
}

#define MIB (UINT64_C(1024) * 1024)

/* A hard disk gets one ordered stream; its window is large enough that the I/O scheduler always has
 * requests to merge and sort. A card or an eMMC serves one request at a time. A second worker
 * submits the next request while the first worker is between two requests. On devices whose latency
 * dominates, many requests run at once. Each window takes about 0.2 s to read. If the I/O scheduler
 * lets no other request overtake those of a window, a best-effort reader waits at most that long.
 * While a stage runs next to the replay, the window is a few times what the disk transfers during
 * one latency, except on a disk that seeks. */
static const DeviceEngine engines[_DEVICE_CLASS_MAX] = {
        [DEVICE_CLASS_UNKNOWN] = {16 * MIB, 1, 256, 16 * MIB, 256},
        [DEVICE_CLASS_HDD] = {16 * MIB, 1, 256, 16 * MIB, 256},
        [DEVICE_CLASS_SD] = {8 * MIB, 2, 64, MIB / 2, 4},
        [DEVICE_CLASS_EMMC] = {16 * MIB, 2, 128, MIB, 4},
        [DEVICE_CLASS_NETDISK] = {32 * MIB, 32, 256, 2 * MIB, 32},
        [DEVICE_CLASS_SSD] = {64 * MIB, 16, 512, 2 * MIB, 32},
};

const DeviceEngine *device_engine_of_class(DeviceClass c)
{
    return &engines[(int)c >= 0 && c < _DEVICE_CLASS_MAX ? c : DEVICE_CLASS_UNKNOWN];
}

/* A device with a smaller depth serves one request at a time. If its depth is 2, the second request
 * in flight only fills the pauses between two requests. */
#define PARALLEL_MIN 3U

/* The bounds between the classes: about the geometric means of the values of two typical devices.
 * Only many parallel reads compensate for a larger latency. An eMMC has a higher rate than a card,
 * in bytes per usec. */
#define LATENCY_SSD_MAX_USEC 550.0
#define RATE_SD_MAX          75.0

DeviceClass device_class_of_profile(const DeviceProfile *d)
{
    if (d->seek_max_usec > 0)
        return DEVICE_CLASS_HDD;
    if (d->depth < PARALLEL_MIN)
        return d->rate_bytes_per_usec < RATE_SD_MAX ? DEVICE_CLASS_SD : DEVICE_CLASS_EMMC;
    return d->fixed_usec > LATENCY_SSD_MAX_USEC ? DEVICE_CLASS_NETDISK : DEVICE_CLASS_SSD;
}

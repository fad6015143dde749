/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/vocabulary.h"

#include "base/macros.h"

#include <string.h>

int string_table_lookup(const char *const *table, size_t n, const char *s)
{
    for (size_t i = 0; s && i < n; i++)
        if (strcmp(table[i], s) == 0)
            return (int)i;
    return -EINVAL;
}

#define DEFINE_TO_STRING(type, name, max, ...)                              \
    static const char *const name##_table[max] = {__VA_ARGS__};             \
    const char *name##_to_string(type v)                                    \
    {                                                                       \
        return (int)v >= 0 && (int)v < (int)(max) ? name##_table[v] : NULL; \
    }                                                                       \
    struct swallow_semicolon

#define DEFINE_TABLE(type, name, max, ...)                      \
    DEFINE_TO_STRING(type, name, max, __VA_ARGS__);             \
    type name##_from_string(const char *s)                      \
    {                                                           \
        return (type)string_table_lookup(name##_table, max, s); \
    }                                                           \
    struct swallow_semicolon

DEFINE_TABLE(
        Stage, stage,
        _STAGE_MAX, [STAGE_BOOT] = "boot", [STAGE_LOGIN] = "login", [STAGE_SESSION] = "session");
DEFINE_TO_STRING(
        Policy, policy, _POLICY_MAX, [POLICY_OFF] = "off", [POLICY_METADATA] = "metadata",
        [POLICY_CONCURRENT] = "concurrent", [POLICY_GATE] = "gate", [POLICY_IDLE] = "idle");
DEFINE_TABLE(PolicyReason, policy_reason, _POLICY_REASON_MAX, [POLICY_REASON_UNKNOWN] = "unknown",
             [POLICY_REASON_CONFIGURED] = "configured", [POLICY_REASON_FASTEST] = "fastest",
             [POLICY_REASON_NO_GAIN] = "no gain", [POLICY_REASON_HARMFUL] = "harmful",
             [POLICY_REASON_MEASURED] = "measured", [POLICY_REASON_UNDECIDED] = "undecided");

const char *policy_reason_to_text(PolicyReason r)
{
    switch (r) {
    case POLICY_REASON_CONFIGURED:
        return "the configuration sets the policy";
    case POLICY_REASON_FASTEST:
        return "of all policies it has the least predicted time";
    case POLICY_REASON_NO_GAIN:
        return "no policy is predicted to gain more than it may cost";
    case POLICY_REASON_HARMFUL:
        return "sessions without replay took less time";
    case POLICY_REASON_MEASURED:
        return "sessions with it were measured to take less time";
    case POLICY_REASON_UNDECIDED:
        return "the sessions so far do not show what it gains, so it stays";
    default:
        return "not known: an older version planned the pack, or did not store the reason";
    }
}

DEFINE_TABLE(DeviceClass, device_class, _DEVICE_CLASS_MAX, [DEVICE_CLASS_UNKNOWN] = "unknown",
             [DEVICE_CLASS_HDD] = "hdd", [DEVICE_CLASS_SD] = "sd", [DEVICE_CLASS_EMMC] = "emmc",
             [DEVICE_CLASS_NETDISK] = "netdisk", [DEVICE_CLASS_SSD] = "ssd");

Policy policy_from_string(const char *s)
{
    /* Before 2026-11 this policy was called `beside`. Configurations, traces and histories may
     * still contain the old name. */
    if (s && strcmp(s, "beside") == 0)
        return POLICY_CONCURRENT;
    return (Policy)string_table_lookup(policy_table, _POLICY_MAX, s);
}

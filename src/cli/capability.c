/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/capability.h"

#include "system/capability.h"

static const struct {
    int capability;
    const char *name;
} names[] = {
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
        {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
        {CAP_FOWNER, "CAP_FOWNER"},
};

bool capability_have(int capability)
{
    return capability_is_effective(capability) != 0;
}

static const char *capability_name(int capability)
{
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (names[i].capability == capability)
            return names[i].name;
    return NULL;
}

bool capability_missing(const int *capabilities, char *buf, size_t size)
{
    size_t n = 0, missing = 0, said = 0;

    for (const int *c = capabilities; *c >= 0; c++)
        missing += !capability_have(*c);
    for (const int *c = capabilities; *c >= 0 && n < size; c++)
        if (!capability_have(*c)) {
            const char *before = said == 0 ? "" : said + 1 == missing ? " and " : ", ";

            n += (size_t)snprintf(buf + n, size - n, "%s%s", before, capability_name(*c));
            said++;
        }
    return missing > 0;
}

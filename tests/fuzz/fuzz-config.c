/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart.conf and one drop-in: the input before and after a line `---`. */

#include "fuzz.h"

#include "config/config.h"

#include <string.h>

static void on_warning(void *userdata, const char *file, unsigned line, const char *message)
{
    unsigned *n = userdata;

    FUZZ_CHECK(file && message && !strchr(message, '\n'));
    (*n)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *rest;
    size_t rest_size, first = fuzz_split(data, size, &rest, &rest_size);
    unsigned n_warnings = 0;
    ConfigSources sources;
    Config c;

    fuzz_root_put("etc/headstart/headstart.conf", data, first);
    fuzz_root_put("usr/lib/headstart/headstart.conf.d/50-fuzz.conf", rest, rest_size);
    FUZZ_CHECK(config_load(fuzz_root(), on_warning, &n_warnings, &c, &sources) >= 0);
    fuzz_count(n_warnings == 0);
    FUZZ_CHECK(c.halflife_usec > 0);
    FUZZ_CHECK(c.deadline_usec <= CONFIG_DEADLINE_MAX);
    FUZZ_CHECK(c.cycle_usec >= CONFIG_CYCLE_MIN && c.cycle_usec <= CONFIG_CYCLE_MAX);
    FUZZ_CHECK(strnlen(c.exclude, sizeof(c.exclude)) < sizeof(c.exclude));
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        char *text = config_format(&c, i);

        FUZZ_CHECK(text);
        free(text);
    }
    config_sources_done(&sources);
    return 0;
}

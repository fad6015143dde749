/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which names may be stored in the state directory: volume/encryption.h. */

#include "volume/encryption.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* needs the four headers above */
#include <cmocka.h>

static void levels_of_devices(void **state)
{
    static const struct {
        const char *uuid, *name;
        EncryptionLevel level;
    } rows[] = {
            {"", "", ENCRYPTION_NONE},
            {"LVM-abc", "vg-home", ENCRYPTION_NONE},
            {"CRYPT-LUKS2-0123-root", "root", ENCRYPTION_DISK},
            {"CRYPT-LUKS1-0123-home", "home", ENCRYPTION_DISK},
            {"CRYPT-PLAIN-x", "x", ENCRYPTION_DISK},
            {"CRYPT-LUKS2-0123-home-anna", "home-anna", ENCRYPTION_USER},
            {"CRYPT-VERITY-0123-usr", "usr", ENCRYPTION_NONE},
            {"CRYPT-INTEGRITY-0123", "home-anna", ENCRYPTION_NONE},
            {"LVM-0123", "home-anna", ENCRYPTION_NONE},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        assert_int_equal(encryption_of_mapped(rows[i].uuid, rows[i].name), rows[i].level);
}

static void what_a_store_may_hold(void **state)
{
    const Encryption none = {0}, root = {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-1"},
                     data = {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-2"},
                     home = {.level = ENCRYPTION_USER, .device = "CRYPT-LUKS2-3"},
                     fscrypt = {.level = ENCRYPTION_USER, .by_file = true},
                     fscrypt_on_root = {.level = ENCRYPTION_USER,
                                        .by_file = true,
                                        .device = "CRYPT-LUKS2-1"},
                     same_device = {.level = ENCRYPTION_USER, .device = "CRYPT-LUKS2-1"};
    static const struct {
        bool none, root, home, fscrypt;
    } expected[] = {
            {true, true, true, true},   /* none */
            {false, true, true, true},  /* root */
            {false, true, true, true},  /* data: another device of the same level */
            {false, false, true, true}, /* home */
            {false, false, true, true}, /* fscrypt */
            {false, false, true, true}, /* fscrypt on the device of the store */
            {false, true, true, true},  /* the device of the store */
    };
    const Encryption *const files[] = {&none,       &root, &data, &home, &fscrypt, &fscrypt_on_root,
                                       &same_device};

    for (size_t i = 0; i < ELEMENTSOF(files); i++) {
        assert_int_equal(encryption_allows(&none, files[i]), expected[i].none);
        assert_int_equal(encryption_allows(&root, files[i]), expected[i].root);
        assert_int_equal(encryption_allows(&home, files[i]), expected[i].home);
        assert_int_equal(encryption_allows(&fscrypt, files[i]), expected[i].fscrypt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(levels_of_devices),
            cmocka_unit_test(what_a_store_may_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

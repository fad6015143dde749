/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tells helpers of a starting application from its followers. Pure. Shared by the files of
 * src/model only.
 *
 * Both start while the application starts. A helper does so in nearly all starts of the
 * application, or nearly only then. Its files belong to the application's set. A follower does
 * neither: the user often starts it next. It has a set of its own, so that its files would only
 * delay the start of the application.
 *
 * The model does not know who has executed a program. A program that the application itself
 * executes in some starts, and that others execute, too, therefore counts as a follower. So does a
 * program that has no set, for example because it reads little. */

#include "model/model.h"

/* The least share of the starts of the application, or of the sessions in which the helper started.
 */
#define HELPER_SHARE_MIN 0.9

typedef struct Followers {
    const ModelStage *s;
    size_t *first_use; /* application -> its first use; one more at the end */
    bool *helpers;     /* application -> it is a helper of another one */
    double *shares;    /* use -> the largest share of the application's starts in which one of its
                          followers started that usually opens the file; 0: none does */
} Followers;

/* Fills an empty *f. Returns 0 or -ENOMEM. The caller passes *f to followers_done() in any case. */
int followers_init(Followers *f, const ModelStage *s);
void followers_done(Followers *f);

/* Notes which files the followers of the application open. The programs that it executes as a
 * script (`executed`) and helpers of any application are no followers, because their own sets may
 * not be read. */
void followers_note(Followers *f, uint32_t application, const uint32_t *executed,
                    size_t n_executed);

/* Returns the share of the application's starts that opened the file. Returns 0 if a follower
 * explains all of them: it starts in no smaller share of these starts, and usually opens the file.
 * Pages that the application itself touched are not explained. Call it after followers_note(). */
double followers_share(const Followers *f, const ModelUse *u);

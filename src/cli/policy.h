/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The policy that suits the disk, where the administrator has set none. */

#include "volume/volume.h"

/* Finds out whether the disk below the root has a spindle: a flag proves none, so it is measured
 * (volume/seeks.h), and the volume's class set to what that shows. Where it is unclear, and if not
 * to `measure`, it is as it was `before`. */
void policy_find_spindle(VolumeTable *t, bool before, bool measure);

/* For a boot: `gate` where there is a spindle, which reads in one sweep in 2 s what takes it 10
 * when everyone reads at once; `metadata` where the class is a fast one; `concurrent` elsewhere. For a
 * login: `idle`. */
Policy policy_automatic(VolumeTable *t, Stage stage);

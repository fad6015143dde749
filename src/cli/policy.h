/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The policy that is chosen by the disk if the administrator has set none. */

#include "base/time-util.h"
#include "volume/volume.h"

/* For a boot: `gate` where the disk seeks slowly: it reads in 2 s in one sweep what takes 10 s
 * when everyone reads at once; `metadata` where the class is a fast one; `concurrent` elsewhere.
 * For a login: `idle`. */
Policy policy_automatic(VolumeTable *t, Stage stage);

/* Pure. A gate that would not be done at its deadline holds the boot for nothing: `concurrent`
 * then. `estimated` is the time of the sweep; USEC_INFINITY: unknown. */
Policy policy_within_deadline(Policy p, usec_t estimated, usec_t deadline);

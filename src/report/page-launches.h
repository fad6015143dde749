/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The section of the report on starts of applications. Pure. */

#include "measure/launch-benefit.h"
#include "report/markup.h"

void page_launches(Markup *m, const LaunchBenefits *b);

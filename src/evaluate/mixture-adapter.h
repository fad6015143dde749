/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "evaluate/predictor.h"
#include "predict/mixture.h"

/* The mixture that the predictor "mixture" wraps. Borrowed. */
Mixture *mixture_adapter_get(Predictor *p);

/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_CLOCK_CLOCK_H
#define TICKMAP_CLOCK_CLOCK_H

#include "tickmap/clock.h"

#endif

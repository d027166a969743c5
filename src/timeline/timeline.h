/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_TIMELINE_TIMELINE_H
#define TICKMAP_TIMELINE_TIMELINE_H

#include "tickmap/timeline.h"

#endif

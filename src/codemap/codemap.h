/* SPDX-License-Identifier: MIT */
/* The readers' interface is public. */
#ifndef TICKMAP_CODEMAP_CODEMAP_H
#define TICKMAP_CODEMAP_CODEMAP_H

#include "tickmap/codemap.h"

#endif

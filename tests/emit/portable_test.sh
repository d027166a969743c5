#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: portable_test.sh PROGRAM EM_NUMBER [RUNNER...]
set -eu
program=$1 machine=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$@" "$program" "$work" "$machine"

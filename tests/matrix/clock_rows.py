# SPDX-License-Identifier: MIT
"""Stamps that are not what they say."""

from form import Dump, row, ten, simple


@row
def arch_clock(f):
    """Ticks of the CPU's counter, and no conversion in the recording."""
    d = Dump(flags=1, when=77)
    for i in range(10):
        d.load(f"f{i}", 3_000_000_000_000 + i)
    simple(f, d)


@row
def arch_flag_but_ns(f):
    """libxsmm: the flag is set, the values are nanoseconds all the same."""
    simple(f, ten(flags=1))

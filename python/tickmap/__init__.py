# SPDX-License-Identifier: MIT
"""Native frames for Python functions, on CPython 3.9 and newer.

    import tickmap
    tickmap.activate("jitdump")         # or "perfmap", or "both"
    work()
    tickmap.deactivate()

    with tickmap.activated("perfmap"):  # the same for a region
        work()

    python3 -m tickmap app.py           # nothing to change in app.py
    TICKMAP=jitdump python3 app.py      # the same, once set up for start-up

While active, each Python function runs behind a few bytes of machine code of
its own, announced in a jitdump (``/tmp/jit-PID.dump``) or a perf map
(``/tmp/perf-PID.map``) under the name ``py::QUALNAME:FILE``. A native profiler
then shows Python functions between the interpreter's own frames. ``tickmap
record`` does all of this by itself.

Only calls that begin while it is active are seen. Never seen are
comprehensions on 3.12 and newer (they are part of the function around them)
and calls deeper than about a quarter of the thread's stack (some 2,300 Python
calls): those run without trampolines, so that deep recursion works as it does
without tickmap. ``__init__`` on 3.13 and ``__getitem__`` on 3.11 are seen if
that is the name they were defined under, and not when a first call of theirs
happened inside such a deep call.

All threads are concerned, and any of them may call the functions here at any
time. Subinterpreters run as if tickmap were not there. A forked child publishes
to a file of its own; functions that its parent had published keep their names.
"""

import os
import sys
from _thread import RLock

__all__ = ["activate", "activated", "deactivate", "is_active", "status"]
__version__ = "0.1.0"


def _load():
    """The extension: beside this file, or in the folder of this interpreter."""
    try:
        from tickmap import _tickmap

        return _tickmap
    except ImportError:
        if "tickmap._tickmap" in sys.modules:
            raise
    import _imp

    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    suffixes = _imp.extension_suffixes() or [""]
    path = os.path.join(home, sys.implementation.cache_tag or "", "_tickmap" + suffixes[0])
    if not os.path.exists(path):
        raise ImportError("tickmap was not built for this interpreter: there is no " + path, name="_tickmap", path=path)
    # What importlib does, without importing importlib.
    module = _imp.create_dynamic(type(sys.__spec__)("_tickmap", None, origin=path))
    _imp.exec_dynamic(module)
    return module


# A recorder may have brought a copy of its own: one works in a process.
_extension = _load().working()
activate = _extension.activate
deactivate = _extension.deactivate
is_active = _extension.is_active
status = _extension.status

_regions = 0
_regions_began_it = False
# A signal handler or a finalizer may enter a region while its thread does. What
# they do is balanced, so below each step leaves what the next one expects.
_lock = RLock()


def _forget_regions_lock():
    """Another thread of the parent may have held it."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_regions_lock)


class activated:
    """Context manager: active in this region.

    Takes what activate() takes, and raises what it raises, on entry. Regions
    may be nested and may overlap in several threads or tasks: the last one that
    ends switches off, unless it was active before the first one began. Each
    object may be entered many times.
    """

    def __init__(self, format=None, directory=None, keep_existing=False):
        self._arguments = (format, directory, keep_existing)

    def __enter__(self):
        global _regions, _regions_began_it
        with _lock:
            was_active = is_active()
            activate(*self._arguments)
            _regions += 1
            if _regions == 1:
                _regions_began_it = not was_active
        return self

    def __exit__(self, *exception):
        global _regions
        with _lock:
            ends_it = _regions == 1 and _regions_began_it
            _regions -= 1
            if ends_it:
                deactivate()
        return None

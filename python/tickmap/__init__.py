# SPDX-License-Identifier: MIT
"""Native frames for Python functions, on CPython 3.9 and newer.

    import tickmap
    tickmap.activate()          # or: TICKMAP=jitdump python3 app.py
    work()
    tickmap.deactivate()

While active, each Python function runs behind a few bytes of machine code of
its own, announced in a jitdump (``/tmp/jit-PID.dump``) or a perf map under the
name ``py::QUALNAME:FILE``. A native profiler then shows Python functions between
the interpreter's own frames. ``tickmap record`` does all of this by itself.

Only calls that begin while it is active are seen. Never seen are
comprehensions on 3.12 and newer (they are part of the function around them)
and calls deeper than about a quarter of the thread's stack (some 2,300 Python
calls): those run without trampolines, so that deep recursion works as it does
without tickmap. ``__init__`` on 3.13 and ``__getitem__`` on 3.11 are seen if
that is the name they were defined under, and not when a first call of theirs
happened inside such a deep call.

Subinterpreters run as if tickmap were not there. A forked child publishes to a
file of its own; functions that its parent had published keep their names.
"""

import os
import sys

__all__ = ["activate", "deactivate", "is_active", "status"]


def _load():
    import importlib.machinery
    import importlib.util

    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    path = os.path.join(home, sys.implementation.cache_tag or "", "_tickmap" + suffix)
    if not os.path.exists(path):
        raise ImportError("tickmap was not built for this interpreter", name="_tickmap", path=path)
    loader = importlib.machinery.ExtensionFileLoader("_tickmap", path)
    spec = importlib.util.spec_from_file_location("_tickmap", path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_extension = _load()
activate = _extension.activate
deactivate = _extension.deactivate
is_active = _extension.is_active
status = _extension.status

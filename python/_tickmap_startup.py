# SPDX-License-Identifier: MIT
"""Switches tickmap on at the start of an interpreter, if it was asked for.

Imported by a line in a .pth file (tickmap/startup.pth). What can go wrong is
said in one line, and the program runs. Outside the package, so that this can
be decided without loading the extension.
"""

import os
import sys

# What newer interpreters do by themselves, and older ones take no notice of.
_NATIVE = (
    ("perf_jit", "PYTHON_PERF_JIT_SUPPORT", "jitdump", (3, 13)),
    ("perf", "PYTHONPERFSUPPORT", "perfmap", (3, 12)),
)


def _is_set(variable):
    # As the interpreter reads it: a whole number, in decimal, that fits an int.
    text = os.environ.get(variable, "").lstrip(" \t\n\v\f\r")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or digits.strip("0123456789"):
        return False
    digits = digits.lstrip("0")
    return 0 < len(digits) <= 10 and int(digits) < 1 << 31


def wanted():
    """The format that the environment or -X asks for, or None."""
    form = os.environ.get("TICKMAP")
    if form:
        return None if form == "0" else form
    for option, variable, form, since in _NATIVE:
        if sys.version_info >= since:
            continue
        if option in sys._xoptions or (_is_set(variable) and not sys.flags.ignore_environment):
            return form
    return None


def _recorder_does_it():
    """A recorder has set PYTHONPATH so that its own copy will be loaded."""
    home = os.environ.get("TICKMAP_PYTHON_HOME")
    if not home or sys.flags.ignore_environment:
        return False
    import _imp

    suffixes = _imp.extension_suffixes() or [""]
    return os.path.exists(os.path.join(home, sys.implementation.cache_tag or "", "_tickmap" + suffixes[0]))


def _say(text):
    notes = os.environ.get("TICKMAP_NOTES")
    if not notes:
        if sys.stderr is not None:
            sys.stderr.write("tickmap: %s\n" % text)
        return
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, ("CPython %d.%d: %s\n" % (sys.version_info[:2] + (text,))).encode("utf-8", "replace"))
    finally:
        os.close(descriptor)


def start():
    form = wanted()
    if form is None or _recorder_does_it():
        return
    try:
        import tickmap

        tickmap.activate(form, keep_existing=os.environ.get("TICKMAP_KEEP_EXISTING", "0") not in ("", "0"))
        if not os.environ.get("TICKMAP_NOTES"):
            # The copy that works may be another version's.
            getattr(tickmap._extension, "tell_at_exit", bool)()
    except Exception as error:
        try:
            if isinstance(error, ValueError) and form == os.environ.get("TICKMAP"):
                error = "TICKMAP is to be 0, jitdump, perfmap or both, not %r" % form
            _say("trampolines could not be switched on: %s" % (error,))
        except Exception:
            pass


start()

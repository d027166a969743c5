# SPDX-License-Identifier: MIT
"""Switches tickmap on in a Python process that has this folder in PYTHONPATH.

Runs in whatever "python" turns out to be, from 2.7 on, before the program
does. The program must not notice: no module is imported that site has not
imported already, sys.path and sys.modules look as if this file did not exist,
and the sitecustomize that would have run without us runs.
What cannot be done is noted, one line, in the file TICKMAP_NOTES; without it,
on stderr.
"""


def _note(text):
    import os
    import sys

    path = os.environ.get("TICKMAP_NOTES")
    if not path:
        # No recorder: a person has set this up, and wants to know.
        sys.stderr.write("tickmap: " + text + "\n")
        return
    line = (text + "\n").encode("utf-8", "replace")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 384)  # 0600
    try:
        if line not in os.read(descriptor, 1 << 16):
            os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _kind():
    """What a user calls this interpreter, as in "CPython 3.8"."""
    import sys

    names = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}
    implementation = getattr(sys, "implementation", None)
    if implementation is not None:
        name = names.get(implementation.name, implementation.name)
    else:
        name = "PyPy" if hasattr(sys, "pypy_version_info") else "CPython"
    version = getattr(sys, "pypy_version_info", sys.version_info)
    return "%s %d.%d" % (name, version[0], version[1])


def _load(home):
    """The extension for this interpreter, or None if there is none."""
    import sys
    import _imp

    suffixes = _imp.extension_suffixes()
    tag = sys.implementation.cache_tag
    if not suffixes or not tag:
        return None
    path = home + "/" + tag + "/_tickmap" + suffixes[0]
    try:
        open(path, "rb").close()
    except (IOError, OSError):
        return None
    # What importlib does, without importing importlib.
    spec = type(sys.__spec__)("_tickmap", None, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module


def _run_again(variable):
    """Start this process anew with a variable set. Returns if it cannot be."""
    import os
    import sys

    guard = "TICKMAP_RUN_AGAIN"
    if os.environ.get(guard) == str(os.getpid()):
        return
    # Only where the running program is the interpreter itself, and nothing
    # but its start has happened.
    if not sys.executable or os.path.realpath(sys.executable) != os.readlink("/proc/self/exe"):
        return
    if len(os.listdir("/proc/self/task")) != 1:
        return
    environment = dict(os.environ)
    environment[guard] = str(os.getpid())
    environment[variable] = "1"
    os.execve(sys.executable, sys.orig_argv, environment)


def _use_interpreters_own():
    """The trampolines CPython has itself from 3.12 on. False if it cannot."""
    import sys

    if sys.version_info < (3, 12):
        return False
    if sys.version_info < (3, 13):
        sys.activate_stack_trampoline("perf")
        return True
    try:
        sys.activate_stack_trampoline("perf_jit")
    except ValueError:
        # 3.13.0 to 3.13.5 know it as a start option alone.
        _run_again("PYTHON_PERF_JIT_SUPPORT")
        sys.activate_stack_trampoline("perf")
    return True


def _in_main_interpreter():
    import sys

    # Set up by the main interpreter alone; without it, assume the usual.
    threading = sys.modules.get("_thread")
    test = getattr(threading, "_is_main_interpreter", None)
    return test is None or test()


def _is_set(variable):
    import os

    # As the interpreter reads it: a whole number, in decimal, that fits an int.
    text = os.environ.get(variable, "").lstrip(" \t\n\v\f\r")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or digits.strip("0123456789"):
        return False
    digits = digits.lstrip("0")
    return 0 < len(digits) <= 10 and int(digits) < 1 << 31


def _wanted():
    """The format that is asked for, or None; see _tickmap_startup.py."""
    import os
    import sys

    form = os.environ.get("TICKMAP")
    if form:
        return None if form == "0" else form
    options = getattr(sys, "_xoptions", {})
    if sys.version_info < (3, 13) and ("perf_jit" in options or _is_set("PYTHON_PERF_JIT_SUPPORT")):
        return "jitdump"
    if sys.version_info < (3, 12) and ("perf" in options or _is_set("PYTHONPERFSUPPORT")):
        return "perfmap"
    return None


def _installed_copy_works():
    """A copy in the environment's own packages has started before us."""
    import sys

    return getattr(sys.modules.get("tickmap"), "is_active", bool)()


def _activate():
    import os
    import sys

    form = _wanted()
    if form is None:
        return
    if sys.version_info < (3, 9) or sys.implementation.name != "cpython":
        _note(_kind() + ": no trampolines for this interpreter (CPython 3.9 or newer has them); native frames only")
        return
    if getattr(sys, "is_stack_trampoline_active", bool)():
        return
    home = os.environ.get("TICKMAP_PYTHON_HOME")
    if not home:
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    extension = _load(home)
    if extension is not None:
        extension.activate(
            form,
            os.environ.get("TICKMAP_DIR") or None,
            os.environ.get("TICKMAP_KEEP_EXISTING", "0") not in ("", "0"),
        )
        if not os.environ.get("TICKMAP_NOTES"):
            extension.tell_at_exit()
    elif not _installed_copy_works() and not _use_interpreters_own():
        _note(_kind() + ": tickmap was not built for this interpreter; native frames only")


def _try_to_activate():
    try:
        _activate()
    except Exception as error:
        try:
            _note("%s: trampolines could not be switched on (%s: %s); native frames only" % (_kind(), type(error).__name__, error))
        except Exception:
            pass


def _step_aside():
    """Undo the traces of our import and import what we stood before."""
    import os
    import sys

    # Python 2 empties a module that nobody holds, while it still runs.
    ourselves = sys.modules.pop("sitecustomize", None)
    here = os.path.dirname(os.path.abspath(__file__))
    if here in sys.path:
        while here in sys.path:
            sys.path.remove(here)
    else:  # reached by way of a link
        real = os.path.realpath(here)
        sys.path[:] = [p for p in sys.path if os.path.realpath(p) != real]
    sys.path_importer_cache.pop(here, None)
    # A missing one ends here with the ImportError that site expects.
    import sitecustomize

    return ourselves, sitecustomize


_try_to_activate()
_step_aside()

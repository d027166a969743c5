# SPDX-License-Identifier: MIT
"""python -m tickmap: run a program with trampolines on.

The program should find everything as if it had been started by itself: its
arguments, sys.path, __main__, its exit code and its tracebacks.
"""

import os
import sys

import tickmap

USAGE = """\
usage: python3 -m tickmap [options] SCRIPT [ARGUMENT ...]
       python3 -m tickmap [options] -m MODULE [ARGUMENT ...]
       python3 -m tickmap [options] -c CODE [ARGUMENT ...]
       python3 -m tickmap [options] - [ARGUMENT ...]

Runs a Python program with a native frame for each Python function. SCRIPT may
be a folder or a zip file with a __main__.py; - is the standard input.

  -f, --format FORMAT   jitdump (the default), perfmap, or both
  -d, --directory DIR   where jit-PID.dump and perf-PID.map go (/tmp)
      --startup         print what to put into a .pth file, so that TICKMAP=FORMAT
                        switches trampolines on without this command
      --version
  -h, --help

TICKMAP and TICKMAP_DIR in the environment are defaults for -f and -d; with
TICKMAP=0 the program runs without trampolines. Processes that the program
starts are not concerned, except by fork.
"""


class _Usage(Exception):
    pass


def _value(argument, arguments):
    if argument[:2] == "--" and "=" in argument:
        return argument.split("=", 1)[1]
    if argument[:2] != "--" and len(argument) > 2:
        return argument[2:]
    if not arguments:
        raise _Usage("%s needs a value" % argument)
    return arguments.pop(0)


def _parse(arguments):
    """format, directory, how to run, what to run, its arguments."""
    form = directory = None
    while arguments:
        argument = arguments.pop(0)
        name = argument.split("=", 1)[0] if argument[:2] == "--" else argument[:2]
        if name in ("-f", "--format"):
            form = _value(argument, arguments)
            if form not in ("jitdump", "perfmap", "both"):
                raise _Usage("%s takes jitdump, perfmap or both, not %r" % (name, form))
        elif name in ("-d", "--directory"):
            directory = _value(argument, arguments)
        elif argument in ("-h", "--help", "--version", "--startup"):
            return form, directory, argument, None, []
        elif name in ("-m", "-c"):
            return form, directory, name, _value(argument, arguments), arguments
        elif argument == "--" and arguments:
            return form, directory, "script", arguments[0], arguments[1:]
        elif argument == "-" or argument[:1] != "-":
            return form, directory, argument if argument == "-" else "script", argument, arguments
        else:
            raise _Usage("there is no option %s" % name)
    raise _Usage("no program is named")


def _startup_lines():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "startup.pth")) as line:
        return "%s\n%s" % (os.path.dirname(here), line.read())


def _information(about):
    if about == "--startup":
        return _startup_lines()
    return "tickmap %s\n" % tickmap.__version__ if about == "--version" else USAGE


def _activate(form, directory):
    asked = form is not None
    if not asked:
        form = os.environ.get("TICKMAP") or None
    if form == "0" and not asked:
        return
    if getattr(sys, "is_stack_trampoline_active", bool)():
        sys.stderr.write("tickmap: the interpreter's own trampolines are active and stay alone\n")
        return
    tickmap.activate(form, directory)
    if not os.environ.get("TICKMAP_NOTES"):
        getattr(tickmap._extension, "tell_at_exit", bool)()


def _new_main():
    """An empty __main__, in place of the module that this file is."""
    import builtins

    main = type(sys)("__main__")
    main.__dict__["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _set_first_path(folder):
    # Nothing was put in front of the path then.
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = folder


def _absolute(path):
    """As the interpreter makes it: not normalised."""
    if os.path.isabs(path):
        return path
    return os.path.join(os.getcwd(), path)


def _run_by_name(module, alter_argv):
    import runpy

    # What the interpreter itself calls, since 2.7.
    runpy._run_module_as_main(module, alter_argv)


def _read_code(path, typed):
    import io
    import pkgutil

    try:
        with io.open_code(path) as file:
            code = pkgutil.read_code(file)
            if code is None:
                file.seek(0)
                code = compile(file.read(), path, "exec", dont_inherit=True)
            return code
    except OSError as error:
        sys.stderr.write("%s: can't open file %r: [Errno %d] %s\n" % (sys.executable, path, error.errno, error.strerror))
        sys.exit(2)


def _run_script(typed):
    import pkgutil

    path = _absolute(typed)
    main = _new_main()
    if pkgutil.get_importer(path) is not None:  # a folder or a zip file
        if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, path)
        else:
            sys.path[0] = path
        return _run_by_name("__main__", False)
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    loader = SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader
    main.__loader__ = loader("__main__", path)
    main.__file__ = path
    if sys.version_info < (3, 15):
        main.__cached__ = None
    exec(_read_code(path, typed), main.__dict__)


def _run_text(source, file):
    from importlib.machinery import BuiltinImporter

    main = _new_main()
    main.__loader__ = BuiltinImporter
    if file == "<stdin>":
        main.__file__ = file
        if sys.version_info < (3, 15):
            main.__cached__ = None
    elif sys.version_info >= (3, 13):
        import linecache

        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    _set_first_path("")
    exec(compile(source, file, "exec", dont_inherit=True), main.__dict__)


def _run(how, what):
    if how == "-m":
        _new_main()
        _run_by_name(what, True)
    elif how == "-c":
        _run_text(what + "\n", "<string>")
    elif how == "-":
        stream = getattr(sys.stdin, "buffer", None)
        _run_text(stream.read() if stream else b"", "<stdin>")
    else:
        _run_script(what)


def _without_our_frames(traceback):
    while traceback is not None and traceback.tb_frame.f_globals is not globals():
        traceback = traceback.tb_next
    while traceback is not None and traceback.tb_frame.f_globals is globals():
        traceback = traceback.tb_next
    return traceback


def _hide_our_frames(error):
    """The interpreter shows the exception: let it see the program's part."""
    hook = sys.excepthook

    def show(kind, value, traceback):
        sys.excepthook = hook
        traceback = _without_our_frames(traceback)
        sys.last_traceback = traceback
        hook(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = show


def main():
    try:
        form, directory, how, what, arguments = _parse(sys.argv[1:])
    except _Usage as wrong:
        sys.stderr.write("tickmap: %s\n%s" % (wrong, USAGE))
        return 2
    if how in ("-h", "--help", "--version", "--startup"):
        sys.stdout.write(_information(how))
        return 0
    try:
        _activate(form, directory)
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write("tickmap: %s\n" % error)
        return 2 if isinstance(error, ValueError) else 4
    sys.argv[:] = [how if how != "script" else what] + arguments
    try:
        _run(how, what)
    except SystemExit:
        raise
    except BaseException as error:
        if hasattr(sys, "excepthook"):
            _hide_our_frames(error)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())

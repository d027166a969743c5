# SPDX-License-Identifier: MIT
"""The package as people use it: arguments, regions, other files, stubs."""

import ast
import pathlib
import textwrap

import jitdump
from pythons import HOME, ROOT

STUB = ROOT / "python" / "tickmap" / "__init__.pyi"
USE = "import sys\nsys.path.insert(0, %r)\nimport tickmap\n" % str(HOME)


def program(text):
    return USE + textwrap.dedent(text)


def test_errors_say_what_is_wrong(python, run, tmp_path):
    (tmp_path / "file").write_text("")
    # A link where the dump belongs: the process's own number is known only then.
    result = run(python, program("""
        import os
        folder = sys.argv[1]
        def attempt(*arguments, **keywords):
            try:
                tickmap.activate(*arguments, **keywords)
            except Exception as error:
                print(type(error).__name__, str(error).replace(folder, "FOLDER"), getattr(error, "errno", None), sep="|")
            else:
                print("worked")
            assert not tickmap.is_active()
        attempt("nonsense")
        attempt(format="jit\\udc80dump")
        attempt(1)
        attempt("jitdump", 3)
        attempt("jitdump", "a\\0b")
        attempt("jitdump", folder + "/none")
        attempt("jitdump", folder + "/file")
        attempt("jitdump", "/" + "d" * 5000)
        attempt(unknown=1)
        os.symlink("/dev/null", folder + "/perf-%d.map" % os.getpid())
        attempt("perfmap", folder)
        attempt("perfmap", folder, keep_existing=True)
        print(tickmap.activate("jitdump", folder), tickmap.status()["error"])
    """), str(tmp_path), form=None)  # fmt: skip
    lines = result.out.splitlines()
    assert lines[0].startswith("ValueError|format must be 'jitdump', 'perfmap' or 'both', not 'nonsense'")
    assert lines[1].startswith("ValueError|format must be ")
    assert lines[2].startswith("TypeError|format must be str, not int")
    assert [line.split("|")[0] for line in lines[3:5]] == ["TypeError", "ValueError"]
    assert lines[5] == "FileNotFoundError|[Errno 2] No such file or directory: 'FOLDER/none'|2"
    assert lines[6] == "NotADirectoryError|[Errno 20] Not a directory: 'FOLDER/file'|20"
    assert lines[7].startswith("OSError|[Errno 36] ")
    assert lines[8].startswith("TypeError|")
    assert lines[9].startswith("PermissionError|[Errno 1] ") and "'FOLDER'" in lines[9]
    assert lines[10].split("|")[0] in ("PermissionError", "FileExistsError")
    assert lines[11] == "True None"


def test_regions(python, run, tmp_path):
    result = run(python, program("""
        import threading
        on = tickmap.is_active
        region = tickmap.activated("jitdump", sys.argv[1])
        with region as entered:
            def inside(): pass
            inside()
            print(entered is region, on())
            with tickmap.activated():
                with region: pass
                print(on())
            print(on())
        print(on())
        try:
            with region: raise KeyError("passes")
        except KeyError as error: print(error, on())
        tickmap.activate()
        with region: pass
        print(on()); tickmap.deactivate()
        try:
            with tickmap.activated("nonsense"): print("not reached")
        except ValueError: print(on())
        # Overlapping: the last one switches off.
        first_is_out, second_is_in = threading.Event(), threading.Event()
        def other():
            with region:
                second_is_in.set(); first_is_out.wait(); print("other", on())
        thread = threading.Thread(target=other)
        with region:
            thread.start(); second_is_in.wait()
        first_is_out.set(); thread.join(); print(on())
        # A child that was forked while another thread held the lock.
        import os
        tickmap._lock.acquire()
        child = os.fork()
        if child == 0:
            with region: os._exit(on())
        print(os.waitpid(child, 0)[1] >> 8)
    """), str(tmp_path), form=None)  # fmt: skip
    assert result.out.split() == "True True True True False 'passes' False True False other True False 1".split()
    assert any(jitdump.Dump(path).named("inside") for path in tmp_path.glob("jit-*.dump"))


def test_a_region_entered_by_a_signal_handler_in_the_midst_of_entering_one(python, run, tmp_path):
    """A trace function stands for the signal: it comes before each line."""
    result = run(python, program("""
        region = tickmap.activated("jitdump", sys.argv[1])
        own = (tickmap.activated.__enter__.__code__, tickmap.activated.__exit__.__code__)
        came = busy = 0
        def signal(frame, event, argument):
            global came, busy
            if frame.f_code in own and not busy:
                busy = 1
                with region: came += tickmap.is_active()
                busy = 0
            return signal
        def enter():
            with region:
                assert tickmap.is_active()
                with region: pass
                assert tickmap.is_active()
            return tickmap.is_active()
        sys.settrace(signal)
        after = enter()
        tickmap.activate()
        after_active = enter()
        sys.settrace(None)
        print(after, after_active, came > 20, tickmap._regions)
    """), str(tmp_path), form=None, timeout=60)  # fmt: skip
    assert result.out == "False True True 0\n"


def test_a_relative_folder_is_that_of_each_request(python, run, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "maps").mkdir(parents=True)
    result = run(python, program("""
        import os
        for name in ("one", "two"):
            os.chdir(os.path.join(sys.argv[1], name))
            tickmap.activate("perfmap", "maps")
            os.chdir("/")
            def f(): pass
            f()
            tickmap.deactivate()
            print(tickmap.status()["perfmap"])
    """), str(tmp_path), form=None)  # fmt: skip
    for name, path in zip(("one", "two"), result.out.split()):
        assert pathlib.Path(path).parent == tmp_path / name / "maps"
        assert "py::f:" in pathlib.Path(path).read_text()


def test_other_files_begin_with_all_that_was_published_before(python, run, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    result = run(python, program("""
        one, two = sys.argv[1:]
        def early(n): return early(n - 1) if n else 0
        def middle(): early(1)
        def late(): middle()
        tickmap.activate("perfmap", one); early(1); tickmap.deactivate()
        # What is left out is as it was.
        tickmap.activate(); middle(); tickmap.deactivate()
        print(tickmap.status()["perfmap"].startswith(one), tickmap.status()["jitdump"])
        count = tickmap.status()["functions"]
        # While it is active, nothing changes.
        tickmap.activate("perfmap", one); tickmap.activate("jitdump", two)
        print(tickmap.status()["jitdump"]); tickmap.deactivate()
        tickmap.activate("jitdump", two); late(); tickmap.deactivate()
        print(tickmap.status()["jitdump"].startswith(two), tickmap.status()["perfmap"])
        # A folder that is not there leaves all as it was.
        try: tickmap.activate("jitdump", two + "/none")
        except OSError: pass
        print(tickmap.activate("both", two), tickmap.is_active())
        def last(): late()
        last()
        for i in range(50):
            tickmap.deactivate(); tickmap.activate("jitdump", [one, two][i % 2])
    """), str(one), str(two), form=None)  # fmt: skip
    assert result.out == "True None\nNone\nTrue None\nTrue True\n"
    (perfmap,) = one.glob("perf-*.map")
    names = [line.split(" ", 2)[2] for line in perfmap.read_text().splitlines()]
    assert [sum(":program.py" in n or n.startswith("py::%s:" % f) for n in names) for f in ("early", "middle", "late")] == [1, 1, 0]
    (first,) = two.glob("jit-*.dump")
    dump = jitdump.Dump(first)
    assert dump.closed
    assert {"early", "middle", "late"} <= set(dump.shorts()) and not dump.named("last")
    # Each function has kept its trampoline, its line and its file.
    (early,) = dump.named("early")
    address = next(int(line.split()[0], 16) for line in perfmap.read_text().splitlines() if " py::early:" in line)
    assert (early.addr, early.line) == (address, 6) and early.lines[0][2].endswith("program.py")
    second = jitdump.Dump(next(two.glob("tickmap-1/jit-*.dump")))
    assert {"early", "middle", "late", "last"} <= set(second.shorts())
    assert second.named("early")[0].addr == address


def test_the_folder_may_come_from_the_environment(python, run, tmp_path):
    text = program("print(tickmap.activate('both'), tickmap.status()['jitdump'], tickmap.status()['perfmap'])")
    result = run(python, text, form=None, env={"TICKMAP_DIR": str(tmp_path)})
    (dump,) = tmp_path.glob("jit-*.dump")
    (perfmap,) = tmp_path.glob("perf-*.map")
    assert result.out == "True %s %s\n" % (dump, perfmap)


def test_a_copy_of_the_extension_gives_way_to_the_one_that_works(python, run, tmp_path):
    """As with a recorder's copy beside that of a virtual environment."""
    (tmp_path / "copy" / python.tag).mkdir(parents=True)
    package = pathlib.Path(HOME / "tickmap")
    (tmp_path / "copy" / "tickmap").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (tmp_path / "copy" / "tickmap" / name).write_text((package / name).read_text())
    copied = tmp_path / "copy" / python.tag / python.extension.name
    copied.write_bytes(python.extension.read_bytes())
    result = run(python, """
        import sys
        sys.path.insert(0, sys.argv[1])
        import _imp, tickmap
        print(tickmap.is_active(), tickmap.activate("perfmap", "/nowhere"))
        def seen(): pass
        seen()
        tickmap.deactivate()
        print(tickmap.is_active())
        module = _imp.create_dynamic(type(sys.__spec__)("_tickmap", None, origin=sys.argv[2]))
        _imp.exec_dynamic(module)
        print(module.activate(), module.is_active(), tickmap.is_active(), module.working() is tickmap._extension)
    """, str(tmp_path / "copy"), str(copied))  # fmt: skip
    assert result.out == "True True\nFalse\nTrue False True True\n"
    assert len(jitdump.read_one(result).named("seen")) == 1


def stub_signatures():
    """name -> [(parameter, default)] of each function and method in the stub."""
    found = {}

    def add(name, node):
        names = [a.arg for a in node.args.args if a.arg != "self"]
        defaults = [ast.literal_eval(d) for d in node.args.defaults]
        found[name] = [[n, repr(d)] for n, d in zip(names, ["-"] * (len(names) - len(defaults)) + defaults)]
        if node.args.vararg:
            found[name].append(["*" + node.args.vararg.arg, repr("-")])

    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            add(node.name, node)
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            for method in node.body:
                add(node.name + "." + method.name, method)
    return found


def test_the_stub_says_what_the_package_has(python, run):
    result = run(python, program("""
        import inspect, json
        def parameters(function):
            return [["*" + p.name if p.kind is p.VAR_POSITIONAL else p.name, repr("-" if p.default is p.empty else p.default)]
                    for p in inspect.signature(function).parameters.values() if p.name != "self"]
        found, undocumented = {}, []
        for name in tickmap.__all__:
            thing = getattr(tickmap, name)
            if not thing.__doc__ or len(thing.__doc__) < 40: undocumented.append(name)
            if isinstance(thing, type):
                for method in ("__init__", "__enter__", "__exit__"):
                    found[name + "." + method] = parameters(getattr(thing, method))
            else:
                found[name] = parameters(thing)
        print(json.dumps([found, undocumented, sorted(tickmap.__all__), sorted(tickmap.status())]))
    """), form=None)  # fmt: skip
    found, undocumented, names, keys = result.json
    assert found == stub_signatures()
    assert undocumented == []
    stub = ast.parse(STUB.read_text())
    (listed,) = [n for n in stub.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    assert ast.literal_eval(listed.value) == names
    (status,) = [n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == "_Status"]
    assert sorted(field.target.id for field in status.body) == keys


def test_a_subinterpreter_is_left_alone(python, run):
    if python.version >= (3, 13):
        name = "_interpreters"
    else:
        name = "_xxsubinterpreters"
    result = run(python, program("""
        import %s as interpreters
        text = '''import sys; sys.path.insert(0, %%r)
        import tickmap
        with tickmap.activated("jitdump", "/nowhere"):
            print(tickmap.activate("perfmap"), tickmap.is_active(), flush=True)
        '''
        number = interpreters.create()
        interpreters.%s(number, text.replace("\\n        ", "\\n") %% sys.path[0])
        print(tickmap.is_active())
    """) % (name, "exec" if python.version >= (3, 13) else "run_string"))  # fmt: skip
    assert result.out == "False False\nTrue\n"


NAMES = """
def f(): pass
codes = [
    f.__code__.replace(co_name="new\\nline", **({"co_qualname": "new\\nline"} if hasattr(f.__code__, "co_qualname") else {})),
    f.__code__.replace(co_filename="file\\n0 0 injected"),
    f.__code__.replace(co_filename="lone\\udfffsurrogate"),
    f.__code__.replace(co_filename="nul\\0in it"),
    f.__code__.replace(co_filename="undecodable\\udcff"),
    f.__code__.replace(co_filename="ünïcödé"),
    f.__code__.replace(co_filename="x" * 1_000_000),
    f.__code__.replace(co_filename="x" * 1_000_000 + "y"),
    f.__code__.replace(co_filename=""),
]
for code in codes:
    g = type(f)(code, {})
    g(); g()
"""


def test_names_of_any_kind_are_published_safely(python, run):
    result = run(python, NAMES, form="both")
    dump = jitdump.read_one(result)
    names = [f.name for f in dump.functions]
    for wanted in (
        "py::f:file?0 0 injected",
        "py::f:lone\\udfffsurrogate",
        "py::f:nul?in it",
        "py::f:undecodable\udcff",
        "py::f:ünïcödé",
        "py::f:",
    ):
        assert names.count(wanted) == 1, wanted
    assert sum(n.startswith("py::new?line:") for n in names) == 1
    # Long ones are cut, and one trampoline serves all that are then the same.
    (long,) = [n for n in names if "xxx" in n]
    assert 10_000 < len(long) < 20_000
    (perfmap,) = result.perfmaps()
    lines = perfmap.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    assert lines.pop() == ""
    assert [line.split(" ", 2)[2] for line in lines] == names
    assert all(int(a, 16) and int(s, 16) for a, s, _ in (line.split(" ", 2) for line in lines))


def test_both_files_of_a_bad_request_are_left_out(python, run, tmp_path):
    """An attempt that fails leaves nothing behind."""
    text = program("""
        import os
        os.mkdir(sys.argv[1] + "/perf-%d.map" % os.getpid())
        try: tickmap.activate("both", sys.argv[1])
        except OSError as error: print(type(error).__name__)
        print([n for n in os.listdir(sys.argv[1]) if n.startswith(("jit-", "tickmap-"))])
    """)
    result = run(python, text, str(tmp_path), form=None)
    assert result.out.splitlines()[1:] == ["[]"], result.out



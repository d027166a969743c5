# SPDX-License-Identifier: MIT
"""python -m tickmap runs a program as the interpreter itself would, and the
environment switches trampolines on at start-up."""

import os
import pathlib
import re
import signal
import subprocess
import textwrap
import zipfile

import pytest

import jitdump
from pythons import HOME, clean_environment

SHOW = """
import sys
main = sys.modules["__main__"]
def f(): pass
f()
print(__name__, [a.replace(sys.prefix, "") for a in sys.argv], sys.path[0], main.__dict__ is globals())
hidden = ("__loader__", "__builtins__", "__spec__")
print(sorted((k, v) for k, v in globals().items() if k[:2] == "__" and k not in hidden))
print(__loader__ if isinstance(__loader__, type) else type(__loader__).__name__, __builtins__.__name__, __spec__ and __spec__.name)

"""

FAIL = """
import sys
def f(n):
    if n: f(n - 1)
    else: raise ValueError("shown")
f(2)
"""

HOOK = """
import sys, traceback
def hook(kind, value, tb):
    print([e.name for e in traceback.extract_tb(tb)], [e.name for e in traceback.extract_tb(value.__traceback__)])
sys.excepthook = hook
def f(): 1 / 0
f()
"""

LAST = """
import atexit, sys, traceback
def show():
    print([e.name for e in traceback.extract_tb(sys.last_traceback)], sys.last_value, flush=True)
atexit.register(show)
def f(): {}["key"]
f()
"""

FILES = {
    "show.py": SHOW,
    "fail.py": FAIL,
    "hook.py": HOOK,
    "last.py": LAST,
    "syntax.py": "x = 1\nx = = 2\n",
    "latin.py": "# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))\n".encode("latin-1"),
    "exit3.py": "import sys; sys.exit(3)\n",
    "exittext.py": "import sys; sys.exit('said')\n",
    "raiseexit.py": "raise SystemExit\n",
    "chained.py": "try:\n    {}['x']\nexcept KeyError as e:\n    raise OSError('two') from e\n",
    "thread.py": "import threading\ndef f(): raise KeyError(1)\nt = threading.Thread(target=f, name='T'); t.start(); t.join(); print('end')\n",
    "interrupt.py": "raise KeyboardInterrupt\n",
    "pickled.py": "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)\n",
    "spawned.py": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
    "    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))\n",
    "dataclass.py": "from __future__ import annotations\nimport dataclasses\n@dataclasses.dataclass\nclass C:\n    x: int\nprint(C(1))\n",
    "input.py": "print(input())\n",
    "module.py": SHOW,
    "package/__init__.py": "",
    "package/__main__.py": SHOW,
    "package/bad.py": FAIL,
    "folder/__main__.py": SHOW,
    "folder/beside.py": "",
    "badfolder/__main__.py": FAIL,
    "empty/nothing": "",
}
"""(arguments, input) of each way to start a program."""
WAYS = [
    (["show.py"], b""),
    (["./show.py", "-x", "--", "a b", ""], b""),
    (["{here}/show.py", "-h"], b""),
    (["link/show.py"], b""),
    (["linked.py"], b""),
    (["latin.py"], b""),
    (["fail.py"], b""),
    (["hook.py"], b""),
    (["last.py"], b""),
    (["syntax.py"], b""),
    (["exit3.py"], b""),
    (["exittext.py"], b""),
    (["raiseexit.py"], b""),
    (["chained.py"], b""),
    (["thread.py"], b""),
    (["interrupt.py"], b""),
    (["pickled.py"], b""),
    (["spawned.py"], b""),
    (["dataclass.py"], b""),
    (["input.py"], b"typed\n"),
    (["none.py"], b""),
    (["folder"], b""),
    (["badfolder"], b""),
    (["empty"], b""),
    (["zipped.zip", "1"], b""),
    (["-m", "module", "-m", "x"], b""),
    (["-mmodule"], b""),
    (["-m", "package"], b""),
    (["-m", "package.bad"], b""),
    (["-m", "no_such_module"], b""),
    (["-m", "empty"], b""),
    (["-c", "import sys; print(sys.argv, repr(sys.path[0]), __name__, '__file__' in globals())", "-c", "y"], b""),
    (["-c", "def f(): raise KeyError(2)\nf()"], b""),
    (["-", "a"], SHOW.encode()),
    (["-"], FAIL.encode()),
    (["-"], b"x = = 3"),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "link").symlink_to(folder / "folder")
    (folder / "folder" / "show.py").write_text(FILES["show.py"])
    (folder / "linked.py").symlink_to(folder / "folder" / "show.py")
    with zipfile.ZipFile(str(folder / "zipped.zip"), "w") as file:
        file.writestr("__main__.py", FILES["folder/__main__.py"])
    return folder


def start(python, before, arguments, text, folder, environment):
    environment = dict(clean_environment(), PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(HOME), PYTHONHASHSEED="0", **environment)
    done = subprocess.run(
        [python.path] + before + [a.replace("{here}", str(folder)) for a in arguments],
        input=text,
        cwd=str(folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), re.sub("0x[0-9a-f]+", "ADDRESS", done.stderr.decode())


def test_a_program_runs_as_without_us(python, programs, tmp_path):
    different = []
    for arguments, text in WAYS:
        plain = start(python, [], arguments, text, programs, {})
        ours = start(python, ["-m", "tickmap", "-d", str(tmp_path)], arguments, text, programs, {})
        if plain != ours:
            different.append((arguments, plain, ours))
    assert not different, "\n\n".join("%s\n%s\n%s" % d for d in different)
    published = [path for path in tmp_path.glob("jit-*.dump") if jitdump.Dump(path).named("f")]
    assert len(published) >= 18


@pytest.mark.parametrize("flags", [["-P"], ["-I"], ["-W", "error"], ["-O"], ["-S"], ["-u"]], ids=" ".join)
def test_the_interpreters_own_options_hold(python, programs, tmp_path, flags):
    if flags == ["-P"] and python.version < (3, 11):
        pytest.skip("no such option")
    # -I shuts PYTHONPATH out: the package is brought in by hand, as -m does.
    begin = "import sys, runpy; sys.path.append(%r); sys.argv[0] = 'x'; runpy.run_module('tickmap', run_name='__main__', alter_sys=False)"
    before = ["-c", begin % str(HOME)] if flags == ["-I"] else ["-m", "tickmap"]
    plain = start(python, flags, ["show.py", "-x"], b"", programs, {})
    ours = start(python, flags + before + ["-d", str(tmp_path)], ["show.py", "-x"], b"", programs, {})
    if flags == ["-I"]:
        assert (ours[0], ours[2], ours[1].split()[:2]) == (plain[0], plain[2], plain[1].split()[:2])
    else:
        assert ours == plain


def test_wrong_usage_is_explained(python, programs, tmp_path):
    def ours(*arguments, **environment):
        return start(python, ["-m", "tickmap"], list(arguments), b"", programs, environment)

    for arguments, complaint in (
        ([], "no program is named"),
        (["-f", "nonsense", "show.py"], "-f takes jitdump, perfmap or both, not 'nonsense'"),
        (["--format=x", "show.py"], "--format takes"),
        (["-d"], "-d needs a value"),
        (["--unknown", "show.py"], "there is no option --unknown"),
        (["-m"], "-m needs a value"),
    ):
        code, out, err = ours(*arguments)
        assert (code, out) == (2, "") and complaint in err and "usage: python3 -m tickmap" in err, arguments
    code, out, err = ours("-d", "/no/such/folder", "show.py")
    assert (code, out) == (4, "") and "/no/such/folder" in err
    code, out, err = ours("show.py", TICKMAP="nonsense")
    assert (code, out) == (2, "") and "nonsense" in err
    code, out, err = ours("--help")
    assert (code, err) == (0, "") and out.startswith("usage: python3 -m tickmap")
    code, out, err = ours("--version")
    assert (code, err) == (0, "") and re.match(r"tickmap \d+\.\d+", out)
    # The environment is the default, an option is stronger.
    folder = {"TICKMAP_DIR": str(tmp_path)}
    assert ours("show.py", TICKMAP="0", **folder)[0] == 0 and not list(tmp_path.iterdir())
    assert ours("show.py", TICKMAP="perfmap", **folder)[0] == 0
    assert [p.name.split("-")[0] for p in tmp_path.iterdir()] == ["perf"]
    assert ours("-fjitdump", "show.py", TICKMAP="0", **folder)[0] == 0
    assert sorted(p.name.split("-")[0] for p in tmp_path.iterdir()) == ["jit", "perf"]


def test_an_interrupt_ends_the_program_as_without_us(python, programs, tmp_path):
    """By the signal itself, so that a shell's loop ends as well."""
    plain = start(python, [], ["interrupt.py"], b"", programs, {})
    assert plain[0] == -signal.SIGINT
    assert start(python, ["-m", "tickmap", "-d", str(tmp_path)], ["interrupt.py"], b"", programs, {}) == plain


ASK = """
import os, sys
native = getattr(sys, "is_stack_trampoline_active", bool)()
with open("/proc/self/maps") as maps:
    ours = "_tickmap" in maps.read()
folder = os.environ["TICKMAP_DIR"]
def f(): pass
f()
print(os.getpid(), "native" if native else "", *sorted(n.split("-")[0] for n in os.listdir(folder)) if ours else ())
"""
"""(options, environment) -> what happens before 3.12, on 3.12, from 3.13 on."""
REQUESTS = [
    ([], {}, ("", "", "")),
    ([], {"TICKMAP": "jitdump"}, ("jit", "jit", "jit")),
    ([], {"TICKMAP": "perfmap"}, ("perf", "perf", "perf")),
    ([], {"TICKMAP": "both"}, ("jit perf", "jit perf", "jit perf")),
    ([], {"PYTHONPERFSUPPORT": "1"}, ("perf", "native", "native")),
    ([], {"PYTHON_PERF_JIT_SUPPORT": "1"}, ("jit", "jit", "native")),
    (["-X", "perf"], {}, ("perf", "native", "native")),
    (["-X", "perf_jit"], {}, ("jit", "jit", "native")),
    ([], {"PYTHONPERFSUPPORT": "0", "PYTHON_PERF_JIT_SUPPORT": "x"}, ("", "", "")),
    ([], {"PYTHONPERFSUPPORT": " +01"}, ("perf", "native", "native")),
    ([], {"PYTHONPERFSUPPORT": "1 ", "PYTHON_PERF_JIT_SUPPORT": "1_0"}, ("", "", "")),
    ([], {"PYTHONPERFSUPPORT": "9" * 20, "PYTHON_PERF_JIT_SUPPORT": "+"}, ("", "", "")),
    (["-E"], {"PYTHONPERFSUPPORT": "1", "PYTHON_PERF_JIT_SUPPORT": "1"}, ("", "", "")),
    (["-E"], {"TICKMAP": "jitdump"}, ("jit", "jit", "jit")),
    (["-X", "perf"], {"TICKMAP": "0"}, ("", "native", "native")),
    (["-X", "perf"], {"TICKMAP": "jitdump"}, ("jit", "native", "native")),
    (["-S"], {"TICKMAP": "jitdump"}, ("", "", "")),
]


@pytest.fixture
def user_site(python, tmp_path):
    """A folder for packages with the .pth file that --startup prints."""
    folder = tmp_path / "base" / "lib" / python.library / "site-packages"
    folder.mkdir(parents=True)
    environment = dict(clean_environment(), PYTHONPATH=str(HOME))
    made = subprocess.run([python.path, "-m", "tickmap", "--startup"], env=environment, check=True, stdout=subprocess.PIPE)
    (folder / "tickmap.pth").write_bytes(made.stdout)
    return {"PYTHONUSERBASE": str(tmp_path / "base")}


def ask(python, user_site, tmp_path, options, environment, text=ASK):
    folder = tmp_path / "published"
    folder.mkdir()
    env = dict(clean_environment(), TICKMAP_DIR=str(folder), **user_site)
    env.pop("PYTHON_JIT", None)  # it and their own trampolines exclude each other
    env.update(environment)
    done = subprocess.run([python.path] + options + ["-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    pid, answer = done.stdout.decode().split(" ", 1)
    for native in ("/tmp/perf-%s.map" % pid, "/tmp/jit-%s.dump" % pid):
        if os.path.exists(native):
            os.unlink(native)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return " ".join(answer.split()), done.stderr.decode()


def test_what_newer_interpreters_do_older_ones_do_with_us(python, user_site, tmp_path):
    column = (python.version >= (3, 12)) + (python.version >= (3, 13))
    for options, environment, expected in REQUESTS:
        if "-E" in options:
            # -E hides PYTHONUSERBASE too.
            begin = "import site; site.addsitedir(%r)\n" % str(next(pathlib.Path(user_site["PYTHONUSERBASE"]).glob("lib/*/*")))
            answer, err = ask(python, {}, tmp_path, options, environment, begin + ASK)
        else:
            answer, err = ask(python, user_site, tmp_path, options, environment)
        assert answer == expected[column], (options, environment, err)
        if options == ["-X", "perf"] and environment.get("TICKMAP") == "jitdump" and column:
            assert "own trampolines are active" in err and len(err.splitlines()) == 1
        else:
            assert err == ""


def test_a_wrong_start_up_request_is_said_and_the_program_runs(python, user_site, tmp_path):
    answer, err = ask(python, user_site, tmp_path, [], {"TICKMAP": "nonsense"})
    assert answer == "" and err == "tickmap: trampolines could not be switched on: TICKMAP is to be 0, jitdump, perfmap or both, not 'nonsense'\n"
    answer, err = ask(python, user_site, tmp_path, [], {"TICKMAP": "jitdump", "TICKMAP_DIR": "/no/such"}, ASK.replace('os.environ["TICKMAP_DIR"]', "'/'"))
    assert err == "tickmap: trampolines could not be switched on: [Errno 2] No such file or directory: '/no/such'\n"


NATIVE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import tickmap
def first(): pass
def second(): pass
def third(): pass
sys.activate_stack_trampoline("perf")
try: tickmap.activate("both", sys.argv[2])
except RuntimeError as error: print("refused", error)
first(); print(tickmap.is_active(), sys.is_stack_trampoline_active())
sys.deactivate_stack_trampoline()
print(tickmap.activate("both", sys.argv[2])); second()
try:
    sys.activate_stack_trampoline("perf"); print("chained")
except (RuntimeError, ValueError): print("they refuse")
third(); third()
try: print(tickmap.is_active(), tickmap.activate())
except RuntimeError: print(tickmap.is_active(), "aside")
if sys.is_stack_trampoline_active(): sys.deactivate_stack_trampoline()
third()
tickmap.deactivate(); third()
print(os.getpid())
"""


def test_beside_the_interpreters_own_trampolines(python, run, tmp_path):
    if python.version < (3, 12):
        pytest.skip("has none")
    out = run(python, textwrap.dedent(NATIVE), str(HOME), str(tmp_path), form=None, env={"PYTHON_JIT": None}).out.splitlines()
    theirs = pathlib.Path("/tmp/perf-%s.map" % out[-1])
    text = theirs.read_text()
    theirs.unlink()
    assert out[0].startswith("refused the interpreter's own trampolines are active")
    assert out[1] == "False True" and out[2] == "True" and out[3] == "chained"
    assert out[4] == ("True True" if python.version >= (3, 15) else "False aside")
    ours = jitdump.Dump(next(tmp_path.glob("jit-*.dump")))
    here = lambda name: "py::%s:%s" % (name, run.folder / "program.py")
    names = [f.name for f in ours.functions]
    assert [names.count(here(n)) for n in ("first", "second", "third")] == [0, 1, 1]
    assert text.count(here("first") + "\n") == 1 and here("second") + "\n" not in text

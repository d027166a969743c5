# SPDX-License-Identifier: MIT
"""Getting loaded into whatever Python is started, unnoticed."""

import glob
import os
import resource
import shutil
import subprocess
import time

import pytest

import jitdump
from pythons import BOOT, HOME, PYTHONS

OLD = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/[23].[0-9].*/bin/python")))
OLD = [p for p in OLD if p.split("/")[-3].split(".")[:2] in (["2", "7"], ["3", "6"], ["3", "7"], ["3", "8"])]


def test_an_extension_was_built_for_some_interpreter():
    """Without one every other test here would be skipped unseen."""
    assert any(p.extension.exists() for p in PYTHONS), HOME


@pytest.mark.parametrize("value", [None, "", "0"])
def test_switched_off_it_does_nothing(python, run, value):
    program = "import os\nprint('_tickmap' in open('/proc/self/maps').read())"
    result = run(python, program, env={"TICKMAP": value})
    assert result.out == "False\n"
    assert result.dumps() == [] and result.notes == []


def test_dash_m_dash_c_stdin_and_zipped_programs(python, run, tmp_path):
    (tmp_path / "module.py").write_text("def f(): pass\nf()\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("def f(): pass\nf()\n")
    for arguments in (["-m", "module"], ["-m", "package"], ["package"], ["-c", "def f(): pass\nf()"]):
        assert jitdump.read_one(run(python, None, *arguments)).named("f"), arguments
    maps = tmp_path / "stdin"
    maps.mkdir()
    environment = run.environment(maps, "jitdump")
    subprocess.run([python.path, "-"], input=b"def f(): pass\nf()", env=environment, check=True)
    (path,) = maps.glob("jit-*.dump")
    assert jitdump.Dump(path).named("f")


def test_a_script_started_by_its_first_line(python, run, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!%s\ndef f(): pass\nf()\n" % python.path)
    script.chmod(0o755)
    result = run(str(script), None)
    assert jitdump.read_one(result).named("f")


def test_a_virtual_environment(python, run, tmp_path):
    made = run(python, None, "-m", "venv", "--without-pip", str(tmp_path / "venv"), form=None, code=None)
    if made.code != 0:
        pytest.skip("%s cannot make virtual environments" % python.label)
    result = run(str(tmp_path / "venv" / "bin" / "python"), "import sys\nprint(sys.prefix)\ndef f(): pass\nf()")
    assert result.out == "%s\n" % (tmp_path / "venv")
    assert jitdump.read_one(result).named("f")


def path_with(folder):
    return {"PYTHONPATH": "%s:%s" % (BOOT, folder)}


def test_the_users_sitecustomize_runs_and_is_the_one_that_is_seen(python, run, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.mine = __file__\ndef f(): pass\nf()\n")
    program = "import sys, sitecustomize\nprint(sys.mine == sitecustomize.__file__, sitecustomize.__file__)\nprint(sys.path)"
    result = run(python, program, env=path_with(site))
    plain = run(python, program, form=None, env={"PYTHONPATH": str(site)})
    assert result.out == plain.out
    assert result.out.startswith("True %s" % site)
    assert jitdump.read_one(result).named("f")


@pytest.mark.parametrize("content", ["raise ValueError('broken')", "import no_such_module", "raise SystemExit(3)", "syntax error"])
def test_a_broken_sitecustomize_is_as_broken_as_without_us(python, run, tmp_path, content):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(content)
    watched = run(python, "print('ran')", env=path_with(site), code=None)
    plain = run(python, "print('ran')", form=None, env={"PYTHONPATH": str(site)}, code=None)
    assert (watched.code, watched.out) == (plain.code, plain.out)
    # A traceback may show our line above theirs, the message is the same.
    assert watched.err.splitlines()[-1:] == plain.err.splitlines()[-1:]
    assert watched.notes == []


@pytest.mark.parametrize("flags", [["-B"], ["-W", "error"], ["-X", "dev"], ["-bb"], ["-OO"], ["-s"], ["-u"], ["-P"]])
def test_start_options(python, run, flags):
    if flags == ["-P"] and python.version < (3, 11):
        pytest.skip("no such option")
    result = run(python, "def f(): pass\nf()\nprint(1)", before=flags)
    assert (result.out, result.err, result.notes) == ("1\n", "", [])
    assert jitdump.read_one(result).named("f")


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-S"]])
def test_isolated_modes_start_as_without_us(python, run, flags):
    result = run(python, "print(1)", before=flags)
    assert (result.out, result.err, result.dumps()) == ("1\n", "", [])


def test_a_read_only_home(python, run, tmp_path):
    """Nothing is written beside what was installed."""
    home = tmp_path / "home"
    shutil.copytree(str(HOME), str(home), ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(p.name for p in home.glob("**/*"))
    run(python, "pass", home=home, env={"PYTHONPATH": str(home / "boot"), "PYTHONDONTWRITEBYTECODE": "1"})
    assert sorted(p.name for p in home.glob("**/*")) == before


@pytest.mark.parametrize("path", OLD, ids=[p.split("/")[-3] for p in OLD])
def test_an_interpreter_that_is_too_old_is_noted_once(run, path):
    for repeat in range(2):
        result = run(path, "import sys\nsys.stdout.write('ran')", env={"TICKMAP_NOTES": str(run.folder / "notes")})
        assert (result.out, result.err) == ("ran", "")
    (note,) = (run.folder / "notes").read_text().splitlines()
    version = ".".join(path.split("/")[-3].split(".")[:2])
    assert note.startswith("CPython %s: " % version) and note.endswith("native frames only")


@pytest.mark.parametrize("path", OLD, ids=[p.split("/")[-3] for p in OLD])
def test_an_old_interpreters_sitecustomize_still_runs(run, path):
    site = run.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.mine = 'mine'\n")
    program = "import sys, sitecustomize\nsys.stdout.write(sys.mine + sitecustomize.__file__[:%d])" % len(str(site))
    result = run(path, program, env=path_with(site))
    assert (result.out, result.err) == ("mine" + str(site), "")


def test_an_interpreter_without_a_build(python, run, tmp_path):
    """Falls back to the interpreter's own trampolines, or says so."""
    program = "import sys\nprint(getattr(sys, 'is_stack_trampoline_active', lambda: None)(), sys.argv[1:], sys.stdin.read())"
    result = run(python, program, "a", "b", home=tmp_path)
    assert result.dumps() == []
    assert result.err == ""
    if python.version < (3, 12):
        assert result.out == "None ['a', 'b'] \n"
        assert len(result.notes) == 1 and "not built" in result.notes[0]
    else:
        assert result.out == "True ['a', 'b'] \n"
        assert result.notes == []
    for kind in ("perf-%d.map", "jit-%d.dump"):
        for path in glob.glob("/tmp/" + kind.replace("%d", "*")):
            if os.stat(path).st_mtime > time.time() - 5 and b"program.py" in open(path, "rb").read():
                os.unlink(path)


def test_a_damaged_extension_is_noted_and_the_program_runs(python, run, tmp_path):
    folder = tmp_path / python.tag
    folder.mkdir()
    (folder / python.extension.name).write_bytes(b"not a library")
    result = run(python, "print(1)", home=tmp_path)
    assert (result.out, result.err) == ("1\n", "")
    (note,) = result.notes
    assert "could not be switched on (ImportError" in note


@pytest.mark.parametrize("env", [{"TICKMAP": "nonsense"}, {"TICKMAP_DIR": "/no/such/folder"}])
def test_a_wrong_request_is_noted_and_the_program_runs(python, run, env):
    result = run(python, "print(1)", env=env)
    assert (result.out, result.err) == ("1\n", "")
    assert len(result.notes) == 1 and "could not be switched on" in result.notes[0]


def test_notes_that_cannot_be_written_do_no_harm(python, run, tmp_path):
    result = run(python, "print(1)", env={"TICKMAP": "nonsense", "TICKMAP_NOTES": "/no/such/file"})
    assert (result.out, result.err) == ("1\n", "")


def test_the_interpreters_own_trampolines_are_left_to_work_alone(python, run):
    if python.version < (3, 12):
        pytest.skip("has none")
    result = run(python, "import os\nprint(os.getpid())", before=["-X", "perf"])
    assert result.dumps() == [] and result.notes == []
    os.unlink("/tmp/perf-%s.map" % result.out.strip())


def test_the_start_costs_little(python, run, tmp_path):
    """Processor time, the best of many, in turns: the machine may be busy."""
    environments = []
    for form in (None, "jitdump"):
        maps = tmp_path / ("start-%s" % form)
        maps.mkdir()
        environments.append(run.environment(maps, form))

    def cost(env):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python.path, "-c", "pass"], env=env, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    plain, watched = [], []
    for i in range(100):
        plain.append(cost(environments[0]))
        watched.append(cost(environments[1]))
        if i >= 10 and min(watched) - min(plain) < 0.005:
            return
    assert min(watched) - min(plain) < 0.005

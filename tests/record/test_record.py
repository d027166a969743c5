"""What `tickmap record` promises around the samples: exit codes, files, refusals,
the ways a Python can be started."""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest

from recorded import (INTERPRETERS, ROOT, TICKMAP, label, python_frames,
                      record)

CHAIN = str(ROOT / "tests" / "truth" / "chain.py")
DEBIAN = "/usr/bin/python3"
SPIN = ("import time\n"
        "def spin(s):\n"
        "    end = time.process_time() + s\n"
        "    while time.process_time() < end:\n"
        "        for i in range(2000): pass\n"
        "spin(%s)\n")

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become "
                             "another user")


def code_map_folders():
    return set(pathlib.Path(os.environ["TMPDIR"]).glob("tickmap-??????"))


def tickmap(*args, **kw):
    kw.setdefault("timeout", 120)
    return subprocess.run([TICKMAP, *map(str, args)], capture_output=True,
                          text=True, **kw)


def spinner(directory, seconds=0.6, name="spin.py"):
    path = pathlib.Path(directory) / name
    path.write_text(SPIN % seconds)
    return str(path)


def names_in(recording):
    return {n for _, frames, _ in recording.stacks()
            for n in python_frames(frames)}


# ---- exit codes ----

def test_the_exit_code_is_the_commands(tmp_path):
    out = tmp_path / "t.data"
    assert tickmap("record", "-o", out, "--", "true").returncode == 0
    assert tickmap("record", "-o", out, "--", "sh", "-c",
                   "exit 7").returncode == 7
    assert tickmap("record", "-o", out, "--", "sh", "-c",
                   "kill -TERM $$").returncode == 128 + 15


def test_a_command_that_is_not_there_is_127_and_leaves_no_file(tmp_path):
    done = tickmap("record", "-o", tmp_path / "t.data", "--", "no-such-thing")
    assert done.returncode == 127
    assert "no-such-thing" in done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "tmp"]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_command_that_is_not_executable_is_126(tmp_path):
    (tmp_path / "plain").write_text("text")
    done = tickmap("record", "-o", tmp_path / "t.data", "--",
                   tmp_path / "plain")
    assert done.returncode == 126
    assert not (tmp_path / "t.data").exists()


def test_wrong_usage_is_2():
    assert tickmap("record").returncode == 2
    assert tickmap("record", "-F", "zero", "--", "true").returncode == 2
    assert tickmap("record", "-p", "1", "--", "true").returncode == 2


def test_options_behind_the_command_are_the_commands(tmp_path):
    done = tickmap("record", "-o", tmp_path / "t.data", "sh", "-c", "exit 5")
    assert done.returncode == 5


def test_an_old_recording_is_renamed(tmp_path):
    out = tmp_path / "t.data"
    out.write_text("old")
    assert tickmap("record", "-o", out, "--", "true").returncode == 0
    assert (tmp_path / "t.data.old").read_text() == "old"
    assert out.read_bytes()[:8] == b"PERFILE2"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_refused_run_leaves_the_old_recording_in_place(tmp_path):
    out = tmp_path / "t.data"
    out.write_text("old")
    done = tickmap("record", "-F", "999999", "-o", out, "--", "true")
    assert done.returncode in (2, 4)
    assert out.read_text() == "old"


# ---- stopping ----

def start(directory, *args):
    return subprocess.Popen([TICKMAP, "record", "-o",
                             str(pathlib.Path(directory) / "t.data"), *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_command_and_recording_cleanly(tmp_path, number):
    run = start(tmp_path, "--", DEBIAN, spinner(tmp_path, 60))
    time.sleep(1.5)
    run.send_signal(number)
    _, said = run.communicate(timeout=20)
    # Python turns SIGINT into KeyboardInterrupt and then ends by it.
    assert run.returncode == 128 + number, said
    report = json.loads(tickmap("report", tmp_path / "t.data",
                                "--json").stdout)
    assert report["samples"] > 50 and report["finished"]


def test_duration_ends_it_and_is_no_failure(tmp_path):
    begin = time.monotonic()
    done = tickmap("record", "--duration", "1", "-o", tmp_path / "t.data",
                   "--", DEBIAN, spinner(tmp_path, 60))
    assert time.monotonic() - begin < 15
    assert done.returncode == 0
    report = json.loads(tickmap("report", tmp_path / "t.data",
                                "--json").stdout)
    assert report["samples"] > 50


def child_of(pid):
    children = pathlib.Path("/proc/%d/task/%d/children" % (pid, pid))
    return int((children.read_text().split() or [0])[0])


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1]
    return sum(int(n) for n in fields.split()[11:13]) / os.sysconf(
        "SC_CLK_TCK")


def test_a_killed_recorder_leaves_all_but_the_last_round(tmp_path):
    script = spinner(tmp_path, 60)
    run = start(tmp_path, "--", DEBIAN, script)
    child = cpu = 0
    while cpu < 2:
        time.sleep(0.1)
        child = child or child_of(run.pid)
        cpu = cpu_seconds(child) if child else 0
    run.kill()
    run.wait()
    os.kill(child, signal.SIGKILL)
    done = tickmap("report", tmp_path / "t.data", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    # One round is a quarter of a second, and as much again until the recorder
    # has looked at its rings.
    print("%.2f CPU s before the kill, %d samples kept" % (
        cpu, report["samples"]))
    assert report["samples"] > (cpu - 0.6) * 999
    assert not report["finished"]
    spin = [f for f in report["functions"]
            if f["name"] == "py::spin:" + script]
    assert spin and spin[0]["total"] > 0.9 * report["samples"] - 100


def test_the_next_recorder_removes_what_a_killed_one_left(tmp_path):
    run = start(tmp_path, "--", DEBIAN, spinner(tmp_path, 60))
    child = 0
    while not child:
        time.sleep(0.05)
        child = child_of(run.pid)
    orphan, = code_map_folders()
    while not list(orphan.glob("jit-*.dump")):
        time.sleep(0.05)
    run.kill()
    run.wait()
    kept = record(tmp_path, [DEBIAN, spinner(tmp_path)], ["--keep-code-maps"])
    assert len(code_map_folders()) == 2, "the program still writes to one"
    left, = code_map_folders() - {orphan}
    os.kill(child, signal.SIGKILL)
    while pathlib.Path("/proc/%d" % child).exists():
        time.sleep(0.05)
    (tmp_path / "tmp" / "tickmap-FOREIG").mkdir()
    record(tmp_path, [DEBIAN, spinner(tmp_path)])
    assert not orphan.exists()
    assert code_map_folders() == {left, tmp_path / "tmp" / "tickmap-FOREIG"}
    for pid in re.findall(r"jit-(\d+)", " ".join(map(str, left.iterdir()))):
        pathlib.Path("/tmp/perf-%s.map" % pid).unlink()
    assert kept.code == 0


def test_attaching_samples_a_running_process_until_ctrl_c(tmp_path):
    work = subprocess.Popen([DEBIAN, spinner(tmp_path, 60)])
    try:
        time.sleep(0.5)
        run = start(tmp_path, "-p", str(work.pid))
        time.sleep(2)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
        assert run.returncode == 0, said
        assert work.poll() is None, "the process goes on"
    finally:
        work.kill()
        work.wait()
    report = json.loads(tickmap("report", tmp_path / "t.data",
                                "--json").stdout)
    assert report["samples"] > 100
    assert any("PyEval" in f["name"] for f in report["functions"])


@pytest.mark.skipif(not any(v >= (3, 12) for v in INTERPRETERS.values()),
                    reason="no Python with a perf switch of its own")
def test_attaching_uses_code_maps_that_are_published_already(tmp_path):
    python = next(p for p, v in INTERPRETERS.items() if v >= (3, 12))
    script = spinner(tmp_path, 60)
    work = subprocess.Popen([python, "-X", "perf", script])
    try:
        time.sleep(1)
        run = start(tmp_path, "-p", str(work.pid), "-d", "2")
        run.communicate(timeout=20)
    finally:
        work.kill()
        work.wait()
        pathlib.Path("/tmp/perf-%d.map" % work.pid).unlink()
    report = json.loads(tickmap("report", tmp_path / "t.data",
                                "--json").stdout)
    spin = [f for f in report["functions"]
            if f["name"] == "py::spin:" + script]
    assert spin and spin[0]["total"] > 0.9 * report["samples"]


# ---- refusals ----

REFUSE = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1])),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execvp(argv[2], argv + 2);
	return argc ? 98 : 0;
}
"""


@pytest.fixture(scope="module")
def refuse(tmp_path_factory):
    directory = tmp_path_factory.mktemp("refuse")
    source = directory / "refuse.c"
    source.write_text(REFUSE)
    program = directory / "refuse"
    subprocess.run(["cc", "-o", program, source], check=True)
    return str(program)


@pytest.mark.parametrize("error", [1, 13, 38], ids=["EPERM", "EACCES",
                                                    "ENOSYS"])
def test_a_refusal_says_the_setting_and_what_to_type(refuse, tmp_path, error):
    done = subprocess.run([refuse, str(error), TICKMAP, "record", "-o",
                           str(tmp_path / "t.data"), "--", "touch",
                           str(tmp_path / "ran")], capture_output=True,
                          text=True)
    assert done.returncode == 4
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    value = pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()
    assert "perf_event_paranoid" in lines[0] and value.strip() in lines[0]
    assert "seccomp" in lines[0]
    assert not (tmp_path / "t.data").exists()
    assert not (tmp_path / "ran").exists(), "the command did not start"


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@as_root
@pytest.mark.parametrize("limit", [[], ["prlimit", "--memlock=65536",
                                        "--nofile=64"]],
                         ids=["plain", "memlock 64 KiB, 64 files"])
def test_without_privileges_user_space_is_sampled(tmp_path, limit):
    paranoid = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    if int(paranoid.read_text()) != 2:
        pytest.skip("perf_event_paranoid is not 2 here")
    directory = pathlib.Path("/tmp/tickmap-test-nobody-%d" % os.getpid())
    home = copy_where_nobody_reads(directory)
    try:
        script = spinner(directory, 1.5)
        os.chown(directory, 65534, 65534)
        done = subprocess.run(
            [*limit, *NOBODY, str(home / "tickmap"), "record", "-o",
             str(directory / "t.data"), "--", DEBIAN, script],
            capture_output=True, text=True, timeout=60, cwd=directory)
        assert done.returncode == 0, done.stderr
        report = json.loads(tickmap("report", directory / "t.data",
                                    "--json").stdout)
        assert report["samples"] > 0.9 * 999 * 1.5
        assert report["event"].endswith(":u")
        stacks = tickmap("export", directory / "t.data", "--format", "folded",
                         "-o", "-").stdout
        assert "_[k]" not in stacks
        spin = [f for f in report["functions"]
                if f["name"] == "py::spin:" + script]
        assert spin and spin[0]["total"] > 0.9 * report["samples"]
    finally:
        shutil.rmtree(directory)


def copy_where_nobody_reads(directory):
    """The checkout may lie below a folder that only root may enter."""
    directory.mkdir()
    home = directory / "build"
    home.mkdir()
    build = pathlib.Path(TICKMAP).parent
    shutil.copy(build / "tickmap", home)
    shutil.copytree(build / "python", home / "python")
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o755)
    return home


def test_one_allowed_cpu_is_enough(tmp_path):
    script = spinner(tmp_path, 1)
    path = tmp_path / "t.data"
    done = subprocess.run(["taskset", "-c", "1", TICKMAP, "record", "-o",
                           str(path), "--", DEBIAN, script],
                          capture_output=True, text=True, timeout=60)
    if "failed to set" in done.stderr:
        pytest.skip("this machine has one CPU")
    assert done.returncode == 0, done.stderr
    report = json.loads(tickmap("report", path, "--json").stdout)
    assert report["samples"] > 0.9 * 999


# ---- what it leaves behind ----

def left_by(path):
    """Code maps of the recording's processes. Not all of /tmp: other programs
    publish there, too."""
    report = json.loads(tickmap("report", path, "--json").stdout)
    pids = {t["pid"] for t in report["threads"]}
    assert pids
    found = {pathlib.Path(form % pid) for pid in pids
             for form in ("/tmp/perf-%d.map", "/tmp/jit-%d.dump")}
    return {f for f in found if f.exists()} | code_map_folders()


def test_nothing_is_left_behind(tmp_path):
    recording = record(tmp_path, [DEBIAN, spinner(tmp_path)])
    assert not left_by(recording.path)


def test_kept_code_maps_give_perf_the_same_names(tmp_path):
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")
    recording = record(tmp_path, [DEBIAN, CHAIN], ["--keep-code-maps"])
    try:
        done = subprocess.run(
            ["perf", "script", "--max-stack", "1000", "-i", recording.path,
             "-F", "comm,tid,time,ip,sym"], capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stderr == "", "perf opens it without a warning"
        perf = []
        for sample in done.stdout.split("\n\n"):
            names = [line.split(None, 1)[1] for line in
                     sample.strip().splitlines()[1:]
                     if len(line.split(None, 1)) == 2]
            if names:
                perf.append([n for n in reversed(names)
                             if n.startswith("py::")])
        ours = [(python_frames(frames), count)
                for _, frames, count in recording.stacks()]
        counted = {}
        for names, count in ours:
            counted[tuple(names)] = counted.get(tuple(names), 0) + count
        perf_counted = {}
        for names in perf:
            perf_counted[tuple(names)] = perf_counted.get(tuple(names), 0) + 1
        assert sum(perf_counted.values()) > 1000
        assert perf_counted == counted
    finally:
        for path in left_by(recording.path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def test_a_stale_map_of_the_same_pid_is_neither_used_nor_touched(tmp_path):
    """The pid's number is known before its program starts: plant a map."""
    script = spinner(tmp_path)
    plant = tmp_path / "plant.sh"
    plant.write_text(textwrap.dedent("""\
        #!/bin/sh
        printf '0 7fffffffffff stale_name\\n' >/tmp/perf-$$.map
        touch -d '1 hour ago' /tmp/perf-$$.map
        echo $$ >%s/pid
        exec "$@"
        """) % tmp_path)
    plant.chmod(0o755)
    # The map is made before the recorder: by the same pid's earlier image.
    done = subprocess.run([str(plant), TICKMAP, "record", "-o",
                           str(tmp_path / "t.data"), "--", DEBIAN, script],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pid = (tmp_path / "pid").read_text().strip()
    stale = pathlib.Path("/tmp/perf-%s.map" % pid)
    assert stale.read_text() == "0 7fffffffffff stale_name\n"
    stale.unlink()
    assert not left_by(tmp_path / "t.data")
    assert "stale_name" not in tickmap("export", tmp_path / "t.data",
                                       "--format", "folded", "-o", "-").stdout


@as_root
def test_a_stale_map_of_the_commands_own_pid_is_not_used(tmp_path):
    """Maps for the next few hundred pids, as a crashed machine leaves them."""
    script = spinner(tmp_path)
    last = int(pathlib.Path("/proc/loadavg").read_text().split()[-1])
    planted = [pathlib.Path("/tmp/perf-%d.map" % pid)
               for pid in range(last + 1, last + 400)]
    planted = [p for p in planted if not p.exists()]
    for path in planted:
        path.write_text("0 7fffffffffff stale_name\n")
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    try:
        recording = record(tmp_path, [DEBIAN, script],
                           ["--keep-code-maps"])
        names = {f for _, frames, _ in recording.stacks() for f in frames}
        assert "py::spin:" + script in names
        assert "stale_name" not in names
        for path in planted:
            assert path.read_text() == "0 7fffffffffff stale_name\n"
        assert "stays as it is" in recording.stderr
    finally:
        for path in planted:
            path.unlink()


@as_root
def test_under_sudo_the_recording_belongs_to_the_user(tmp_path):
    done = tickmap("record", "-o", tmp_path / "t.data", "--", "true",
                   env=dict(os.environ, SUDO_UID="65534", SUDO_GID="65534"))
    assert done.returncode == 0
    assert (tmp_path / "t.data").stat().st_uid == 65534


def test_a_moved_recording_is_enough(tmp_path):
    """Neither the dumps nor the script are needed to report."""
    script = pathlib.Path(spinner(tmp_path))
    recording = record(tmp_path, [DEBIAN, str(script)])
    script.unlink()
    moved = tmp_path / "elsewhere" / "x.data"
    moved.parent.mkdir()
    shutil.move(recording.path, moved)
    report = json.loads(tickmap("report", moved, "--json").stdout)
    spin = [f for f in report["functions"]
            if f["name"] == "py::spin:%s" % script]
    assert spin and spin[0]["total"] > 0.8 * report["samples"]
    assert report["jit_resolved"] == report["jit_samples"] > 0


# ---- the ways to start a Python ----

def shows_spin(recording, script):
    assert "py::spin:%s" % script in names_in(recording), recording.stderr


@each_python
def test_a_script_with_a_shebang(python, tmp_path):
    script = pathlib.Path(spinner(tmp_path))
    script.write_text("#!%s\n" % python + script.read_text())
    script.chmod(0o755)
    shows_spin(record(tmp_path, [str(script)]), script)


@each_python
def test_a_shell_shim(python, tmp_path):
    script = spinner(tmp_path)
    shim = tmp_path / "shim"
    shim.write_text('#!/bin/sh\nexec "%s" "$@"\n' % python)
    shim.chmod(0o755)
    shows_spin(record(tmp_path, [str(shim), script]), script)


@each_python
def test_python_dash_m(python, tmp_path):
    script = spinner(tmp_path, name="spinning.py")
    recording = record(tmp_path, [python, "-m", "spinning"],
                       env={"PYTHONPATH": str(tmp_path)})
    shows_spin(recording, script)


@each_python
def test_a_venvs_python(python, tmp_path):
    subprocess.run([python, "-m", "venv", "--without-pip",
                    str(tmp_path / "venv")], check=True)
    script = spinner(tmp_path)
    shows_spin(record(tmp_path, [str(tmp_path / "venv/bin/python"), script]),
               script)


@each_python
def test_a_python_that_starts_a_python(python, tmp_path):
    script = spinner(tmp_path)
    parent = tmp_path / "parent.py"
    parent.write_text("import subprocess, sys\n"
                      "def start():\n"
                      "    subprocess.run([sys.executable, %r], check=True)\n"
                      "start()\n" % script)
    recording = record(tmp_path, [python, str(parent)])
    shows_spin(recording, script)
    assert len({t["pid"] for t in recording.report()["threads"]}) == 2


@each_python
def test_a_forked_child_publishes_for_itself(python, tmp_path):
    script = tmp_path / "forking.py"
    script.write_text(textwrap.dedent("""\
        import os, time
        def spin(s):
            end = time.process_time() + s
            while time.process_time() < end: pass
        def before(): spin(0.3)
        def only_child(): spin(0.5)
        def only_parent(): spin(0.5)
        before()
        with open(__file__.replace("forking.py", "parent"), "w") as out:
            out.write(str(os.getpid()))
        pid = os.fork()
        if pid == 0:
            only_child()
            os._exit(0)
        only_parent()
        os.waitpid(pid, 0)
        """))
    recording = record(tmp_path, [python, str(script)])
    report = recording.report()
    # Numbers of processes may have begun anew between the two.
    parent = int((tmp_path / "parent").read_text())
    child, = {t["pid"] for t in report["threads"]} - {parent}
    own = {}
    for pid, function in ((parent, "only_parent"), (child, "only_child")):
        stacks = recording.stacks("--pid", str(pid))
        with_it = [c for _, f, c in stacks if any(
            n == "py::%s:%s" % (function, script) for n in python_frames(f))]
        own[function] = sum(with_it)
        whole = sum(c for _, f, c in stacks if python_frames(f)[:1] == [
            "py::<module>:%s" % script] and python_frames(f)[-1] in (
            # A sample may fall between the call and its callee's frame.
            "py::spin:%s" % script, "py::%s:%s" % (function, script)))
        assert whole >= sum(with_it)
    print(own)
    assert own["only_child"] > 400 and own["only_parent"] > 400
    assert report["jit_resolved"] >= 0.999 * report["jit_samples"]


@each_python
def test_isolated_mode_falls_back_or_says_so(python, tmp_path):
    script = spinner(tmp_path)
    recording = record(tmp_path, [python, "-I", script])
    if INTERPRETERS[python] >= (3, 13):
        shows_spin(recording, script)
    assert "ignores the environment" in recording.stderr
    assert not left_by(recording.path)


@each_python
def test_an_isolated_shebang_falls_back_or_says_so(python, tmp_path):
    script = pathlib.Path(spinner(tmp_path))
    script.write_text("#!%s -I\n" % python + script.read_text())
    script.chmod(0o755)
    recording = record(tmp_path, [str(script)])
    if INTERPRETERS[python] >= (3, 13):
        shows_spin(recording, script)
    assert "ignores the environment" in recording.stderr


OLD = [p for p in pathlib.Path(os.path.expanduser("~/.pyenv/versions")).glob(
    "*/bin/python") if re.search(r"/(2\.7|3\.[678])\.", str(p))]


@pytest.mark.skipif(not OLD, reason="no Python before 3.9 is installed")
@pytest.mark.parametrize("python", OLD, ids=[p.parts[-3] for p in OLD])
def test_an_old_python_gets_one_line_and_a_native_profile(python, tmp_path):
    script = tmp_path / "old.py"
    script.write_text("x = 0\nfor i in range(20000000): x += i\n")
    recording = record(tmp_path, [str(python), str(script)])
    about = [line for line in recording.stderr.splitlines()
             if "3.9" in line or "trampolines" in line]
    assert len(about) == 1, recording.stderr
    assert recording.report()["samples"] > 300


def test_without_python_nothing_is_loaded(tmp_path):
    script = tmp_path / "env.py"
    script.write_text("import os, sys\n"
                      "print([k for k in os.environ if 'TICKMAP_DIR' in k], "
                      "'_tickmap' in sys.modules)\n")
    recording = record(tmp_path, [DEBIAN, str(script)], ["--no-python"])
    assert recording.stdout.strip() == "[] False"


def test_the_program_prints_what_it_prints_alone(tmp_path):
    script = tmp_path / "hello.py"
    script.write_text("import sys\nprint('out')\n"
                      "print('err', file=sys.stderr)\nprint(sys.path[:2])\n"
                      "print(sorted(m for m in sys.modules "
                      "if 'tickmap' in m))\n")
    alone = subprocess.run([DEBIAN, str(script)], capture_output=True,
                           text=True)
    recording = record(tmp_path, [DEBIAN, str(script)], ["-q"])
    assert recording.stdout.splitlines()[:2] == alone.stdout.splitlines()[:2]
    assert recording.stderr == alone.stderr

"""Recordings under circumstances that nobody wishes for."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from recorded import INTERPRETERS, TICKMAP, python_frames, record
from test_record import DEBIAN, left_by, spinner, tickmap

SPINNER_C = r"""
#include <stdlib.h>
#include <time.h>
volatile int x;
__attribute__((noinline)) void NAME(double s)
{
	clock_t end = clock() + (clock_t)(s * CLOCKS_PER_SEC);
	while (clock() < end)
		for (int i = 0; i < 1000; i++)
			x++;
}
int main(int argc, char **argv)
{
	if (argc > 1 && system(argv[1]))
		return 1;
	NAME(0.5);
	return 0;
}
"""

SIGNALS_C = r"""
#include <signal.h>
#include <sys/time.h>
#include <time.h>
volatile int x;
__attribute__((noinline)) void handler(int number)
{
	for (int i = 0; i < 3000000; i++)
		x += number;
}
/* `before` ends where hot's loop begins: one byte before a place that signals
 * interrupt. */
__asm__(".text\n"
	".type before, @function\nbefore: ret\n.size before, 1\n"
	".globl hot\n.type hot, @function\nhot:\n.cfi_startproc\n"
	"1: dec %rdi\n jne 1b\n ret\n.cfi_endproc\n.size hot, . - hot\n");
void hot(long n);
int main(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	signal(SIGVTALRM, handler);
	setitimer(ITIMER_VIRTUAL, &every, 0);
	clock_t end = clock() + CLOCKS_PER_SEC;
	while (clock() < end)
		hot(1000000);
	return 0;
}
"""


def compiled(directory, name, source, *flags):
    path = pathlib.Path(directory) / name
    subprocess.run(["cc", "-O1", "-x", "c", *flags, "-o", str(path), "-"],
                   input=source, text=True, check=True)
    return path


def functions_of(path):
    done = tickmap("report", "--json", path)
    return {f["name"]: f for f in json.loads(done.stdout)["functions"]}


def test_an_inherited_ignored_sigchld_does_not_hide_the_end(tmp_path):
    done = subprocess.run(
        [TICKMAP, "record", "-o", str(tmp_path / "t.data"), "--", "sh", "-c",
         "exit 9"], timeout=20,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 9


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a full disk")
@pytest.mark.parametrize("code,ours", [(3, 3), (0, 4)])
def test_a_full_disk_ends_the_recording_and_not_the_program(tmp_path, code,
                                                           ours):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "none",
                       str(small)]).returncode:
        pytest.skip("cannot mount here")
    try:
        script = spinner(tmp_path, 1.5)
        done = tickmap("record", "-F", "5000", "-o", small / "t.data", "--",
                       "sh", "-c", "%s %s; echo finished; exit %d" % (
                           DEBIAN, script, code))
        assert done.stdout == "finished\n"
        assert done.returncode == ours
        assert "No space left on device" in done.stderr
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_a_program_replaced_by_another_lends_it_no_names(tmp_path, build_id):
    flags = ["-Wl,--build-id=" + build_id]
    compiled(tmp_path, "one", SPINNER_C, "-DNAME=spin_one", *flags)
    compiled(tmp_path, "two", SPINNER_C.replace("i < 1000", "i < 1001"),
             "-DNAME=spin_two", *flags)
    data = tmp_path / "t.data"

    def check(*command):
        shutil.copy(tmp_path / "one", tmp_path / "x")
        assert tickmap("record", "-o", data, "--", *command,
                       cwd=tmp_path).returncode == 0
    # While it runs, before anything of it was sampled.
    check("./x", "cp two new; mv new x")
    names = functions_of(data)
    assert "spin_two" not in names and names["spin_one"]["total"] > 300
    # Both in one recording: each sample is its own file's.
    check("sh", "-c", "./x; cp two new; mv new x; ./x")
    names = functions_of(data)
    for function in ("spin_one", "spin_two"):
        assert 300 < names[function]["total"] <= 0.6 * 999 * 1.2
    # Afterwards: the recording itself knows.
    check("./x")
    shutil.copy(tmp_path / "two", tmp_path / "new")
    os.rename(tmp_path / "new", tmp_path / "x")
    names = functions_of(data)
    assert "spin_two" not in names and names["spin_one"]["total"] > 300


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_program_in_another_mount_namespace_has_its_names(tmp_path):
    program = compiled(tmp_path, "one", SPINNER_C, "-DNAME=spin_one")
    place = tmp_path / "place"
    place.mkdir()
    if subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("no namespaces here")
    recording = record(tmp_path, [
        "unshare", "-m", "sh", "-c", "mount -t tmpfs none %s && cp %s %s/x && "
        "exec %s/x" % (place, program, place, place)])
    assert not list(place.iterdir())
    assert functions_of(recording.path)["spin_one"]["total"] > 300


def test_signal_frames_are_named_where_they_stopped(tmp_path):
    program = compiled(tmp_path, "signals", SIGNALS_C)
    recording = record(tmp_path, [str(program)])
    handled = interrupted = 0
    for _, frames, count in recording.stacks():
        assert "before" not in frames
        if "handler" in frames:
            handled += count
            at = frames.index("handler")
            if frames[at - 2:at] == ["hot", "__restore_rt"]:
                interrupted += count
    print("%d of %d handler samples stand on hot" % (interrupted, handled))
    assert handled > 50
    # The rest interrupted main, clock or the kernel's return.
    assert interrupted > 0.8 * handled


@pytest.mark.skipif(not [v for v in INTERPRETERS.values() if v[:2] == (3, 12)],
                    reason="no Python 3.12")
def test_the_interpreters_own_map_is_embedded_and_removed(tmp_path):
    python = next(p for p, v in INTERPRETERS.items() if v[:2] == (3, 12))
    script = spinner(tmp_path, 0.4)
    recording = record(tmp_path, [python, "-I", script])
    assert not left_by(recording.path)
    shows = sum(c for _, f, c in recording.stacks()
                if "py::spin:" + script in python_frames(f))
    assert shows > 300


def test_a_tmpdir_that_is_not_there_is_no_reason_to_refuse(tmp_path):
    script = spinner(tmp_path, 0.3)
    recording = record(tmp_path, [DEBIAN, script],
                       env={"TMPDIR": str(tmp_path / "nowhere")})
    assert "py::spin:" + script in {
        n for _, f, _ in recording.stacks() for n in python_frames(f)}

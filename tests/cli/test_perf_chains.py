# SPDX-License-Identifier: MIT
"""Recordings that perf makes here, in each form it has: our call chains are
those of perf script; a JIT's are those that really ran."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from command import BUILD, TICKMAP as COMMAND

import perf_chains

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "emit"))
import toy_perf  # noqa: E402

PERF = perf_chains.PERF
TOYJIT = BUILD / "tests" / "emit" / "toyjit"

SPIN = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(long n)
{
	for (long i = 0; i < n; i++)
		sink += i * i;
}
__attribute__((noinline)) void middle(long n) { leaf(n); sink++; }
__attribute__((noinline)) void recurse(int depth, long n)
{
	if (depth)
		recurse(depth - 1, n);
	else
		middle(n);
	sink++;
}
static int compare(const void *a, const void *b)
{
	leaf(2000);
	return *(const int *)a - *(const int *)b;
}
int main(int argc, char **argv)
{
	int numbers[40];
	/* Of a CPU, for each process: a fast one gives as many samples. */
	clock_t end = atol(argv[1]) * (CLOCKS_PER_SEC / 1000);
	pid_t child = argc > 2 ? fork() : 0;

	for (long i = 0; clock() < end; i++) {
		for (int j = 0; j < 40; j++)
			numbers[j] = rand() % 100;
		recurse((int)(i % 30), 200000);
		qsort(numbers, 40, sizeof(*numbers), compare);
	}
	if (child > 0)
		wait(NULL);
	return 0;
}
"""

# perf record's options; the program as built; is the recording a pipe's.
FORMS = [
    ("-g", "fp", False),
    ("-g -k 1", "fp", True),
    ("-g -z -e cpu-clock,task-clock", "fp", False),
    ("--call-graph dwarf", "plain", False),
    ("--call-graph dwarf -z -k 1 -B -N --buildid-mmap", "plain", False),
    ("--call-graph dwarf,16384 --threads", "plain", False),
    ("--call-graph dwarf -z", "plain", True),
    ("-g --namespaces --all-cgroups --switch-events -d --phys-data "
     "--data-page-size --code-page-size -W -R -T -P --sample-identifier",
     "fp", False),
    ("--call-graph dwarf --intr-regs=ip,sp --user-regs=ip,sp,bp -d -W --all-cgroups",
     "plain", False),
]


def check_perf(done, what):
    if done.returncode:
        pytest.skip("perf cannot %s here: %s" % (what, done.stderr.strip()[-200:]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not shutil.which(PERF):
        pytest.skip("perf is not installed")
    folder = tmp_path_factory.mktemp("chains")
    (folder / "spin.c").write_text(SPIN)
    for name, flags in (("plain", ["-fomit-frame-pointer"]),
                        ("fp", ["-fno-omit-frame-pointer"])):
        subprocess.run(["gcc", "-O1", *flags, "-o", name, "spin.c"],
                       cwd=folder, check=True)
    return folder


def record(folder, options, program, pipe):
    if not pipe:
        done = subprocess.run(
            [PERF, "record", "-q", "-F", "1999", *options.split(), "-o", "rec",
             "--", *program], cwd=folder, capture_output=True, text=True)
    else:
        with open(folder / "rec", "wb") as out:
            done = subprocess.run(
                [PERF, "record", "-q", "-F", "1999", *options.split(), "-o",
                 "-", "--", *program], cwd=folder, stdout=out,
                stderr=subprocess.PIPE, text=True)
    check_perf(done, "record " + options)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("options,program,pipe", FORMS)
def test_our_chains_are_perf_scripts(folder, options, program, pipe):
    if (folder / "rec").exists():
        remove(folder / "rec")
    record(folder, options, ["./" + program, "100", "fork"], pipe)
    theirs = perf_chains.perf_script("rec", folder)
    ours = perf_chains.ours(COMMAND, "rec", folder)
    verdict = perf_chains.compare(theirs, ours)
    print("\n%s%s: %s %s" % (options, " | (a pipe)" if pipe else "", verdict,
                             dict(verdict.pairs)))
    assert verdict.samples >= 200
    assert not verdict.missing and not verdict.extra
    # Not all: two names of a place that symbol tables do not show, and perf's
    # names of linkage stubs, which lie one beside.
    assert verdict.equal >= 0.97 * verdict.samples
    assert verdict.same_frames >= 0.995 * verdict.frames


def test_a_pipe_is_reported_as_it_comes(folder):
    call = ("%s record -q -g -o - -- ./fp 50 2>/dev/null | %s report --json -"
            % (PERF, COMMAND))
    done = subprocess.run(["sh", "-c", call], cwd=folder, capture_output=True,
                          text=True)
    if not done.stdout.strip():
        pytest.skip("perf cannot record to a pipe here")
    assert '"leaf"' in done.stdout


def test_a_jits_chains_are_those_that_ran(tmp_path):
    """perf keeps the first unwind table at an address for all code that comes
    there later; ours are of their time. So frames of all layouts are reused
    and moved here, and the truth is what the toy keeps in r15."""
    if not TOYJIT.exists():
        pytest.skip("%s is not built" % TOYJIT)
    done = subprocess.run(
        [PERF, "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-F", "997",
         "--call-graph", "dwarf,8192", "-o", "toy.data", TOYJIT, "--dir",
         tmp_path, "--frames", "mixed", "--churn", "move", "--rounds", "2500"],
        cwd=tmp_path, capture_output=True, text=True)
    check_perf(done, "record dwarf stacks")
    text = subprocess.run(
        [PERF, "script", "-i", "toy.data", "-F", "comm,pid,tid,time,event,uregs"],
        cwd=tmp_path, capture_output=True, text=True).stdout
    truths = {}
    for line in text.split("\n"):
        head = perf_chains.HEAD.match(line)
        r15 = re.search(r"\bR15:0x([0-9a-f]+)", line)
        truth = toy_perf.true_stack(int(r15[1], 16)) if head and r15 else None
        if truth:
            pid, tid, s, us = map(int, head.groups())
            truths[(tid, s * 1000000 + us)] = truth
    ours = perf_chains.ours(COMMAND, "toy.data", tmp_path)
    counts = {"right": 0, "edge": 0, "cut": 0, "wrong": 0, "missing": 0}
    for key, truth in truths.items():
        mine = ours.get(key)
        names = [n for n, _ in mine[0].frames] if mine else None
        counts[toy_perf.judge(truth, names) if mine else "missing"] += 1
    total = sum(counts.values())
    print("\ntoyjit: %s of %d" % (counts, total))
    assert total >= 300
    assert counts["edge"] <= total // 50
    assert counts["right"] + counts["edge"] >= 0.995 * total


def test_injected_recordings_have_names_from_images_or_dump(folder, tmp_path):
    """perf inject's output alone, with its images beside it, or with the dump
    beside it: the same functions, each once."""
    if not TOYJIT.exists():
        pytest.skip("%s is not built" % TOYJIT)
    env = dict(os.environ, HOME=str(tmp_path))
    made = tmp_path / "made"
    made.mkdir()
    done = subprocess.run(
        [PERF, "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-F", "997",
         "--user-regs=r15", "--call-graph", "fp", "-o", "toy.data", TOYJIT,
         "--dir", made, "--frames", "fp", "--churn", "reuse", "--rounds",
         "1000"], cwd=tmp_path, capture_output=True, text=True, env=env)
    check_perf(done, "record")
    plain = perf_chains.ours(COMMAND, "toy.data", tmp_path)
    subprocess.run([PERF, "inject", "--jit", "-i", "toy.data", "-o",
                    "injected.data"], cwd=tmp_path, env=env, check=True,
                   capture_output=True)
    images = list(made.glob("jitted-*.so"))
    assert images

    def against_plain(folder_of_it):
        shutil.copy(tmp_path / "injected.data", folder_of_it)
        injected = perf_chains.ours(COMMAND, "injected.data", folder_of_it)
        verdict = perf_chains.compare(plain, injected)
        print("\n%s: %s" % (folder_of_it.name, verdict))
        return verdict

    at_path = against_plain(made)
    # Neither at their path nor beside it any more, but in the two folders.
    with_images = tmp_path / "with-images"
    with_dump = tmp_path / "with-dump"
    with_neither = tmp_path / "with-neither"
    for path in (with_images, with_dump, with_neither):
        path.mkdir()
    for image in images:
        shutil.move(image, with_images)
    for dump in made.glob("jit-*.dump"):
        shutil.move(dump, with_dump)
    verdicts = [at_path, against_plain(with_images), against_plain(with_dump)]
    for verdict in verdicts:
        assert verdict.samples >= 100
        assert verdict.equal == verdict.samples
    assert against_plain(with_neither).equal < verdict.samples / 2

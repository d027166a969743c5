"""Can the truth tests see red? Each of these breaks one thing on purpose and
asks the same judge, which must find the fault."""
import os
import shutil
import struct
import subprocess

import pytest

from recorded import INTERPRETERS, TRUTH, judge, record, window

DEBIAN = "/usr/bin/python3"
ROOTS = {"py::<module>:" + TRUTH}

LATE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
/* CLOCK_MONOTONIC of this process runs 5 ms ahead: its code maps say that each
 * function came 5 ms later than it did. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(
			RTLD_NEXT, "clock_gettime");
	int result = real(clock, ts);
	if (clock == CLOCK_MONOTONIC && !result) {
		ts->tv_nsec += 5000000;
		if (ts->tv_nsec >= 1000000000) {
			ts->tv_nsec -= 1000000000;
			ts->tv_sec++;
		}
	}
	return result;
}
"""


def whole_share(directory, command, env=None, seconds="3"):
    recording = record(directory, [*command, TRUTH, "--seconds", seconds],
                       env=env)
    said = recording.said()
    verdict = judge(recording.stacks(*window(said["first_ns"],
                                             said["last_ns"])),
                    ROOTS, set(), pairs_matter=False)
    return verdict


def test_unbroken_it_is_green(tmp_path):
    verdict = whole_share(tmp_path, [DEBIAN])
    verdict.show("unbroken")
    assert verdict.share("whole") >= 0.999


def test_a_map_stamped_5_ms_late_turns_it_red(tmp_path):
    source = tmp_path / "late.c"
    source.write_text(LATE)
    library = tmp_path / "late.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"],
                   check=True)
    # In the program alone: the recorder keeps the true time.
    wrapper = tmp_path / "late-python"
    wrapper.write_text('#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' % (
        library, DEBIAN))
    wrapper.chmod(0o755)
    verdict = whole_share(tmp_path, [str(wrapper)])
    verdict.show("late by 5 ms")
    assert verdict.share("whole") < 0.999


def test_the_hook_off_for_one_function_turns_it_red(tmp_path):
    from test_truth import name, python_frames
    recording = record(tmp_path, [DEBIAN, TRUTH, "--seconds", "3",
                                  "--hook-off", "numbers"])
    said = recording.said()
    stacks = recording.stacks(*window(said["begin_ns"], said["last_ns"]))
    of_numbers = sum(c for _, frames, c in stacks
                     if name("numbers") in python_frames(frames))
    bare = sum(c for _, frames, c in stacks if python_frames(frames)[-1:] == [
        name("unit_without_hook")])
    print("\nsamples with numbers: %d, its caller alone: %d" % (
        of_numbers, bare))
    assert of_numbers == 0 and bare > 50


def eval_fde_offsets(path):
    """File offset of the bytes of the FDE of _PyEval_EvalFrameDefault."""
    data = open(path, "rb").read()
    shoff, = struct.unpack_from("<Q", data, 40)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
    sections = []
    for i in range(shnum):
        sections.append(struct.unpack_from("<IIQQQQIIQQ", data,
                                           shoff + i * shentsize))
    strings = sections[shstrndx][4]
    by_name = {}
    for s in sections:
        end = data.index(b"\0", strings + s[0])
        by_name[data[strings + s[0]:end].decode()] = s
    dynsym, dynstr = by_name[".dynsym"], by_name[".dynstr"]
    wanted = None
    for at in range(dynsym[4], dynsym[4] + dynsym[5], 24):
        st_name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        start = dynstr[4] + st_name
        if data[start:data.index(b"\0", start)] == b"_PyEval_EvalFrameDefault":
            wanted = value
    frame, hdr = by_name[".eh_frame"], by_name[".eh_frame_hdr"]
    count, = struct.unpack_from("<I", data, hdr[4] + 8)
    for i in range(count):
        loc, fde = struct.unpack_from("<ii", data, hdr[4] + 12 + 8 * i)
        if hdr[3] + loc == wanted:
            offset = hdr[3] + fde - frame[3] + frame[4]
            length, = struct.unpack_from("<I", data, offset)
            return data, offset + 4, offset + 4 + length
    raise AssertionError("no FDE of the evaluator")


def break_rule(source, target):
    """Every large `def_cfa_offset N` of the evaluator becomes 8 too small."""
    data, start, end = eval_fde_offsets(source)
    broken = bytearray(data)
    changed = 0
    at = start
    while at < end - 2:
        # DW_CFA_def_cfa_offset and a two-byte ULEB128: the body's own rule.
        if data[at] == 0x0e and data[at + 1] & 0x80 and data[at + 1] & 0x08:
            broken[at + 1] ^= 0x08
            changed += 1
            at += 3
        else:
            at += 1
    if not changed:
        at = start
        while at < end - 2:
            if data[at] == 0x0e and data[at + 1] & 0x80:
                broken[at + 1] ^= 0x08
                changed += 1
            at += 1
    assert changed
    target.write_bytes(broken)


def test_a_wrong_cfi_rule_turns_it_red(tmp_path):
    real = os.path.realpath(DEBIAN)
    try:
        eval_fde_offsets(real)
    except (AssertionError, KeyError):
        pytest.skip("this python3 has its evaluator in a shared library")
    subprocess.run([DEBIAN, "-m", "venv", "--copies", "--without-pip",
                    str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python3"
    mode = python.stat().st_mode
    broken = tmp_path / "broken"
    break_rule(real, broken)
    python.unlink()
    shutil.copy(broken, python)
    python.chmod(mode)
    verdict = whole_share(tmp_path, [str(python)])
    verdict.show("evaluator's rule 8 bytes off")
    assert verdict.total > 2000
    assert verdict.share("whole") < 0.5


assert DEBIAN in INTERPRETERS

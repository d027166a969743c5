# SPDX-License-Identifier: MIT
"""Forks, new programs and sudden deaths: each process has a whole map."""

import signal

import pytest

import jitdump

FORK = """
import os, sys
def before(): pass
def in_child(): pass
def in_parent(): pass
before()
{fork}
if child == 0:
    before()
    in_child()
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
in_parent()
print(os.getpid(), child)
"""


def test_a_forked_child_publishes_to_a_file_of_its_own(python, run):
    result = run(python, FORK.format(fork="child = os.fork()"))
    parent, child = map(int, result.out.split())
    dumps = jitdump.read_all(result)
    assert set(dumps) == {parent, child}
    assert dumps[parent].named("before") and dumps[parent].named("in_parent")
    assert not dumps[parent].named("in_child")
    # Its parent's code it has inherited, with the names.
    assert dumps[child].named("in_child")
    assert not dumps[child].named("before") and not dumps[child].named("in_parent")
    # One address never means two things, whichever process looks.
    taken = {f.addr for f in dumps[parent].functions}
    assert taken.isdisjoint(f.addr for f in dumps[child].functions)


def test_a_child_whose_fork_is_not_followed_repeats_what_it_inherited(python, run):
    result = run(python, FORK.format(fork="child = os.fork()"), env={"TICKMAP_FOLLOWED": None})
    parent, child = map(int, result.out.split())
    dumps = jitdump.read_all(result)
    assert set(dumps) == {parent, child}
    assert [f.addr for f in dumps[child].named("before")] == [f.addr for f in dumps[parent].named("before")]
    assert len(dumps[child].named("in_child")) == 1 and not dumps[child].named("in_parent")


def test_a_child_that_becomes_another_program_repeats_nothing(python, run):
    program = """
    import os, sys
    child = os.fork()
    if child == 0:
        os.execv("/bin/true", ["true"])
    os.waitpid(child, 0)
    # Some start-up files import these; each has a Python function run by fork.
    print(sum(name in sys.modules for name in ("threading", "random", "logging")))
    """
    result = run(python, program, env={"TICKMAP_FOLLOWED": None})
    assert len(result.dumps()) == 1 + (result.out != "0\n")


def test_a_file_is_made_when_there_is_something_to_say(python, run):
    program = """
    import os, sys
    child = os.fork()
    if child == 0:
        # The interpreter may have run functions of its own by now.
        os._exit(0)
    os.waitpid(child, 0)
    """
    assert all(d.functions for d in jitdump.read_all(run(python, program)).values())


def test_grandchildren_have_files_too(python, run):
    program = """
    import os
    def generation(n):
        exec(compile("def own%d(): pass\\nown%d()" % (n, n), "f%d" % n, "exec"), {})
        child = os.fork() if n < 4 else 0
        if child:
            os.waitpid(child, 0)
            os._exit(0)
        if n < 4:
            generation(n + 1)
    generation(0)
    """
    dumps = jitdump.read_all(run(python, program))
    assert len(dumps) == 5
    owners = {f.short: pid for pid, d in dumps.items() for f in d.functions if f.short.startswith("own")}
    assert len(set(owners.values())) == 5


def test_children_of_32_threads_that_fork_at_once(python, run):
    program = """
    import os, threading, warnings
    warnings.simplefilter("ignore")
    def one(n):
        space = {}
        for i in range(20):
            exec(compile("def f(): pass\\nf()", "parent%d-%d" % (n, i), "exec"), space)
        child = os.fork()
        if child == 0:
            try: exec(compile("def c(): pass\\nc()", "child%d" % n, "exec"), space)
            finally: os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0, status
        done.append(n)
    done = []
    threads = [threading.Thread(target=one, args=(n,)) for n in range(32)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(len(done))
    """
    result = run(python, program)
    assert result.out == "32\n"
    dumps = jitdump.read_all(result)
    assert len(dumps) == 33
    names = [f.name for d in dumps.values() for f in d.functions]
    assert all("py::c:child%d" % n in names for n in range(32))
    assert all("py::f:parent%d-%d" % (n, i) in names for n in range(32) for i in range(20))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python, run, method):
    program = """
    import multiprocessing, sys
    def work(x): return inner(x)
    def inner(x): return x * 2
    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool:
            print(pool.map(work, range(20)) == [x * 2 for x in range(20)])
    """
    result = run(python, program, method)
    assert result.out == "True\n"
    # The pool ends its workers by a signal. One may have done all of the work.
    dumps = jitdump.read_all(result, some_are_killed=True)
    assert len(dumps) >= 2
    assert any(d.named("inner") for d in dumps.values())


def test_exec_of_another_python_in_the_same_process(python, run):
    program = """
    import os, sys
    def first(): pass
    first()
    code = "def second(): pass\\nsecond()"
    os.execv(sys.executable, [sys.executable, "-c", code])
    """
    result = run(python, program)
    dumps = [jitdump.Dump(p) for p in result.dumps()]
    assert len(dumps) == 2 and dumps[0].pid == dumps[1].pid
    assert [bool(d.named("first")) for d in dumps] != [bool(d.named("second")) for d in dumps]


def test_subprocesses_inherit_everything_they_need(python, run):
    program = """
    import subprocess, sys
    code = "def f(): pass\\nf()"
    subprocess.run([sys.executable, "-c", code], check=True)
    subprocess.run([sys.executable, "-c", code], check=True, preexec_fn=lambda: None)
    subprocess.run(["/bin/true"], check=True)
    """
    # A preexec_fn runs in a forked child, which then becomes a new program.
    dumps = [jitdump.Dump(p) for p in run(python, program).dumps()]
    assert [len(d.named("f")) for d in dumps if d.named("f")] == [1, 1]


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_nothing_is_lost_in_a_sudden_end(python, run, end):
    program = "import os\ndef last(): %s\nlast()" % end
    result = run(python, program, code=None)
    assert result.code in (0, -signal.SIGKILL, -signal.SIGABRT)
    assert jitdump.read_one(result).functions[-1].short == "last"


def test_open_files_are_not_inherited(python, run):
    program = """
    import os, subprocess, sys
    out = subprocess.run(["ls", "-l", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=False).stdout
    sys.stdout.write(out.decode())
    """
    assert ".dump" not in run(python, program).out


def test_both_kinds_of_map_say_the_same(python, run):
    result = run(python, "def f(): pass\nf()", form="both")
    (path,) = result.perfmaps()
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    dump = jitdump.read_one(result)
    assert [(int(a, 16), int(s, 16), n) for a, s, n in lines] == [(f.addr, f.size, f.name) for f in dump.functions]


def test_subinterpreters_run_as_without_us(python, run):
    program = """
    import sys
    try: import _interpreters as interpreters
    except ImportError:
        try: import _xxsubinterpreters as interpreters
        except ImportError: import _testcapi as interpreters
    code = "def f(n): return f(n - 1) if n else 0\\nf(50)"
    def ours(): pass
    for i in range(3):
        if hasattr(interpreters, "create"):
            interp = interpreters.create()
            run = getattr(interpreters, "run_string", None) or interpreters.exec
            run(interp, code)
            ours()
            interpreters.destroy(interp)
        else:
            interpreters.run_in_subinterp(code)
    def after(): pass
    after()
    print("done")
    """
    result = run(python, program)
    assert result.out == "done\n"
    assert result.notes == []
    dump = jitdump.read_one(result)
    assert dump.named("ours") and dump.named("after") and not dump.named("f")


def test_no_thread_of_ours_is_started(python, run):
    program = "import os\nprint(os.listdir('/proc/self/task') == [str(os.getpid())])"
    assert run(python, program).out == "True\n"


def test_a_child_has_frames_though_another_thread_of_its_parent_was_too_deep_for_them(python, run):
    program = """
    import os, sys, threading, warnings
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(100_000)
    threading.stack_size(64 << 20)
    deep, over = threading.Event(), threading.Event()
    def down(n):
        if n:
            down(n - 1)
        else:
            deep.set()
            over.wait()
    thread = threading.Thread(target=down, args=(50_000,))
    thread.start()
    deep.wait()
    child = os.fork()
    if child == 0:
        def in_child(): pass
        in_child()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    over.set()
    thread.join()
    def afterwards(): pass
    afterwards()
    print(os.getpid(), child, status)
    """
    result = run(python, program)
    parent, child, status = map(int, result.out.split())
    assert status == 0
    dumps = jitdump.read_all(result)
    assert dumps[child].named("in_child") and dumps[parent].named("afterwards")

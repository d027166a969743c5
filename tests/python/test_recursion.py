# SPDX-License-Identifier: MIT
"""Recursion goes as deep as it does without us, and never crashes."""

import os

import pytest

import jitdump

DEPTHS = """
import sys
def depth(limit):
    sys.setrecursionlimit(limit)
    reached = 0
    def f():
        nonlocal reached
        reached += 1
        f()
    try:
        f()
    except RecursionError:
        return reached
print(depth(int(sys.argv[1])))
"""


@pytest.mark.parametrize("limit", [1000, 50_000, 1_000_000])
def test_python_recursion_reaches_the_plain_depth(python, run, limit):
    plain = run(python, DEPTHS, str(limit), form=None, code=None)
    if plain.code != 0:
        assert python.version < (3, 11)
        pytest.skip("%s crashes without us" % python.label)
    assert run(python, DEPTHS, str(limit)).out == plain.out


def test_python_recursion_a_million_calls_deep_returns(python, run):
    if python.version < (3, 11):
        pytest.skip("%s crashes without us" % python.label)
    program = """
    import sys
    sys.setrecursionlimit(1_000_000)
    def f(n): return f(n - 1) if n else "bottom"
    print(f(999_900))
    """
    assert run(python, program).out == "bottom\n"


# Each prints what it came to; none may crash where the plain run does not.
PROGRAMS = {
    "nested lists": """
        x = []
        for i in range(100_000): x = [x]
        try: repr(x); print("fits")
        except RecursionError: print("RecursionError")
        while x: x = x.pop()
    """,
    "nested tuples compared": """
        def nest():
            x = ()
            for i in range(100_000): x = (x,)
            return x
        try: print(nest() == nest())
        except RecursionError: print("RecursionError")
    """,
    "parser": """
        for opening, closing in ("()", "[]", ("-", "")):
            try: compile(opening * 50_000 + "1" + closing * 50_000, "x", "eval"); print("fits")
            except (RecursionError, MemoryError, SyntaxError) as error: print(type(error).__name__)
    """,
    "json": """
        import json
        for f in (lambda: json.loads("[" * 100_000), lambda: json.dumps(nest())):
            def nest():
                x = []
                for i in range(100_000): x = [x]
                return x
            try: f(); print("fits")
            except RecursionError: print("RecursionError")
    """,
    "repr through Python": """
        class C:
            def __repr__(self): return repr(self)
        try: repr(C())
        except RecursionError: print("RecursionError")
    """,
    "sort keys": """
        def f(x): return sorted([1], key=f)
        try: f(0)
        except RecursionError: print("RecursionError")
    """,
    "getattr": """
        class C:
            def __getattr__(self, name): return getattr(self, name)
        try: C().x
        except RecursionError: print("RecursionError")
    """,
    "init": """
        class C:
            def __init__(self, n):
                if n: self.next = C(n - 1)
        x = C(300)
        try: C(10_000); print("fits")
        except RecursionError: print("RecursionError")
    """,
    "exceptions": """
        def f():
            try: f()
            finally: pass
        def g():
            try: g()
            except RecursionError: raise ValueError
        for h in f, g:
            try: h()
            except (RecursionError, ValueError) as error: print(type(error).__name__)
    """,
    "generators": """
        def g(n):
            if n: yield from g(n - 1)
            yield n
        try: print(sum(g(100)), sum(g(10_000)))
        except RecursionError: print("RecursionError")
    """,
    "pickle and copy": """
        import copy, pickle
        x = []
        for i in range(100_000): x = [x]
        for f in copy.deepcopy, pickle.dumps:
            try: f(x); print("fits")
            except RecursionError: print("RecursionError")
        while x: x = x.pop()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_recursion_that_ends_without_us_ends_the_same_with_us(python, run, name):
    plain = run(python, PROGRAMS[name], form=None)
    assert run(python, PROGRAMS[name]).out == plain.out


# Mixed recursion under a limit that Python alone would survive.
MIXED = """
import functools, sys
sys.setrecursionlimit(1_000_000)
class R:
    def __repr__(self): return repr([self])
def by_key(x): return sorted([1], key=by_key)
def by_partial(): functools.partial(by_partial)()
def by_map(x=0): return list(map(by_map, [1]))
def python_first(n=20_000): return python_first(n - 1) if n else deep_list()
def by_repr(): return repr(R())
def deep_list():
    x = []
    for i in range(100_000): x = [x]
    try: repr(x)
    finally:
        while x: x = x.pop()
try: globals()[sys.argv[1]](*map(int, sys.argv[2:]))
except RecursionError: print("RecursionError")
"""


@pytest.mark.parametrize("way", ["by_key 1", "by_partial", "by_map", "by_repr", "deep_list", "python_first"])
def test_mixed_recursion_without_a_limit_ends_in_an_exception(python, run, way):
    plain = run(python, MIXED, *way.split(), form=None, code=None)
    if plain.code != 0:
        pytest.skip("%s crashes without us" % python.label)
    assert run(python, MIXED, *way.split()).out == plain.out


def test_c_recursion_below_deep_python_recursion_still_fits(python, run):
    """The stack that hooked calls take is not missed by the C code below."""
    program = """
    import sys
    sys.setrecursionlimit(10_000)
    x = []
    for i in range(900): x = [x]
    def f(n): return f(n - 1) if n else len(repr(x))
    print([f(n) for n in (10, 900, 3000, 5000)])
    """
    plain = run(python, program, form=None)
    assert run(python, program).out == plain.out


SMALL_STACKS = """
import json, re, sys, threading
size, limit = int(sys.argv[1]), int(sys.argv[2])
sys.setrecursionlimit(limit)
threading.stack_size(size)
results = []
def f(n): return f(n - 1) + 1 if n else json.loads(json.dumps([[[1]]]))[0][0][0] + len(sorted([1], key=lambda x: x))
class C:
    def __init__(self, n): self.next = C(n - 1) if n else None
def work():
    for i in range(3):
        results.append(f(limit - 100))
        results.append(len(re.sub("a+", lambda m: "b", "aab" * 20)))
    C(20)
for i in range(2):
    threads = [threading.Thread(target=work) for j in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
print(len(results), set(results))
"""


MONITOR = """
def monitored():
    work()
    sys.monitoring.use_tool_id(0, "x")
    sys.monitoring.set_events(0, sys.monitoring.events.PY_START)
    sys.monitoring.set_events(0, 0)
for i in range(2):
    thread = threading.Thread(target=monitored)
    thread.start(); thread.join()
    sys.monitoring.free_tool_id(0)
"""


@pytest.mark.parametrize("size", [64, 128, 256, 1024])
def test_threads_with_small_stacks_work_as_without_us(python, run, size):
    # Before 3.11 each Python call takes C stack, so less than that fits.
    limit = 10_000 if python.version >= (3, 11) else 130
    arguments = [str(size * 1024), str(limit)]
    plain = run(python, SMALL_STACKS, *arguments, form=None, code=None)
    if plain.code != 0:
        pytest.skip("%s crashes without us" % python.label)
    if os.environ.get("TICKMAP_TEST_JIT") == "1":
        # 3.15.2's JIT leaves an executor behind that is not whole when the
        # stack ends while it is made; whatever drops all executors (an
        # evaluator that is set, monitoring) then crashes.
        monitored = run(python, SMALL_STACKS + MONITOR, *arguments, form=None, code=None)
        if monitored.code < 0:
            pytest.skip("%s with its JIT crashes without us under sys.monitoring" % python.label)
    assert run(python, SMALL_STACKS, *arguments).out == plain.out


def test_calls_are_seen_again_after_a_deep_recursion(python, run):
    program = """
    import sys
    sys.setrecursionlimit(20_000)
    def f(n): return f(n - 1) if n else deepest()
    def deepest(): return 0
    def afterwards(): return 0
    try: f(15_000 if sys.version_info >= (3, 11) else 900)
    except RecursionError: pass
    afterwards()
    """
    dump = jitdump.read_one(run(python, program))
    assert dump.named("f") and dump.named("afterwards")


def test_other_threads_survive_one_that_recurses_deeply(python, run):
    program = """
    import sys, threading, time
    sys.setrecursionlimit(50_000)
    deep = 30_000 if sys.version_info >= (3, 11) else 900
    def f(n): return f(n - 1) if n else time.sleep(0.001)
    def g(n): return g(n - 1) + 1 if n else 0
    def work(h, n):
        for i in range(20): h(n)
    threads = [threading.Thread(target=work, args=a) for a in [(f, deep), (g, 100), (f, deep), (g, 500)]]
    [t.start() for t in threads]; [t.join() for t in threads]
    print("done")
    """
    assert run(python, program).out == "done\n"

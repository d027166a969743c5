# SPDX-License-Identifier: MIT
"""A program cannot tell whether it is watched, except by its speed."""

import re

import pytest

import jitdump

# Each prints what it observed; the runs with and without us must agree.
PROGRAMS = {
    "exceptions and tracebacks": """
        import sys, traceback
        class C:
            def __enter__(self): return self
            def __exit__(self, *a): return True
        def f(n):
            if n == 0: raise ValueError("x")
            try: f(n - 1)
            except ValueError as e: raise KeyError(n) from e
        def g():
            with C(): f(3)
            return 1
        print(g())
        try: f(3)
        except KeyError: print(traceback.format_exc().replace(__file__, "F"))
        print(sys.exc_info())
    """,
    "generators": """
        def g():
            try:
                x = yield 1
                print("sent", x)
                yield 2
            except GeneratorExit: print("closed"); raise
            except KeyError as e: print("caught", e); yield "k"
            finally: print("finally")
            return 7
        def outer(): r = yield from g(); print("returned", r)
        a = g(); print(next(a), a.send("v")); a.close()
        a = g(); next(a); print(a.throw(KeyError("z"))); print(list(a))
        print(list(outer()))
        a = g(); next(a); del a
        def never(): yield
        try: never().throw(OSError("fresh"))
        except OSError as e: print(e)
        try:
            def stop():
                raise StopIteration
                yield
            list(stop())
        except RuntimeError as e: print(e)
    """,
    "coroutines": """
        import asyncio, contextlib
        async def agen(n):
            try:
                for i in range(n):
                    await asyncio.sleep(0); yield i
            finally: print("agen done")
        @contextlib.asynccontextmanager
        async def manager():
            print("enter")
            try: yield 5
            finally: print("exit")
        async def work(n):
            async with manager() as m:
                return [x async for x in agen(n)] + [m]
        async def failing(): await asyncio.sleep(0); raise ValueError("bad")
        async def cancelled():
            try: await asyncio.sleep(10)
            except asyncio.CancelledError: print("cancelled"); raise
        async def main():
            print(await work(3))
            print(await asyncio.gather(*[work(i) for i in range(3)], failing(), return_exceptions=True))
            t = asyncio.ensure_future(cancelled()); await asyncio.sleep(0); t.cancel()
            try: await t
            except asyncio.CancelledError: print("seen")
            a = agen(5); print(await a.__anext__()); await a.aclose()
        asyncio.run(main())
    """,
    "settrace": """
        import sys
        log = []
        def tracer(frame, event, arg):
            if frame.f_code.co_filename == __file__: log.append((frame.f_code.co_name, event, frame.f_lineno))
            return tracer
        def f(n):
            if n: return f(n - 1)
            try: {}["x"]
            except KeyError: pass
        def g(): yield 1; yield 2
        class C:
            def __init__(self): self.a = 1
            def __getitem__(self, i): return i
        sys.settrace(tracer); f(2); list(g()); C()[1]; [x for x in (1, 2)]; sys.settrace(None)
        print(log)
    """,
    "setprofile": """
        import sys
        log = []
        def profiler(frame, event, arg): log.append((frame.f_code.co_name, event, getattr(arg, "__name__", None)))
        def f(n): return f(n - 1) if n else len([1])
        def g(): yield 1
        sys.setprofile(profiler); f(2); list(g()); sorted([2, 1], key=lambda x: x); sys.setprofile(None)
        print(log)
    """,
    "cProfile": """
        import cProfile, pstats
        def f(n): return f(n - 1) if n else 0
        p = cProfile.Profile(); p.runcall(f, 10)
        print(sorted((k[2], v[0], v[1]) for k, v in pstats.Stats(p).stats.items() if k[2] == "f"))
    """,
    "frames and inspection": """
        import inspect, sys
        def f(): return [x.f_code.co_name for x, *_ in inspect.stack()], g()
        def g(): return sys._getframe().f_back.f_code.co_name, sorted(sys._getframe(1).f_locals)
        print(f())
        def depth():
            n, x = 0, sys._getframe()
            while x: n, x = n + 1, x.f_back
            return n
        print(depth(), [depth() for i in (1,)], (lambda: depth())())
    """,
    "garbage and weak references": """
        import gc, weakref
        class C:
            def __del__(self): print("del")
        def f():
            c = C(); c.self = c
            return weakref.ref(c)
        r = f(); print(r() is None); gc.collect(); print(r() is None)
    """,
    "what the process looks like": """
        import os, sys
        print(sys.path, sorted(sys.modules), sorted(sys.path_importer_cache), sys.argv, sys.flags)
        print(sorted(k for k in os.environ if not k.startswith(("TICKMAP", "PYTHONPATH"))))
        print([sorted(m.__dict__) for m in (sys, os)], sys.meta_path, sys.path_hooks and len(sys.path_hooks))
        print(len(os.listdir("/proc/self/task")), __name__, sys.getrecursionlimit(), sys.gettrace(), sys.getprofile())
        import atexit, gc, signal, threading
        print(threading.active_count(), atexit._ncallbacks(), gc.get_threshold(), gc.isenabled())
        print([signal.getsignal(s) for s in range(1, 32)])
    """,
    "classes made in every way": """
        import abc, enum, dataclasses, collections, typing, copy, pickle
        class A:
            def __init__(self, x=1): self.x = x
        class B(A): pass
        class S:
            __slots__ = ("x",)
            def __init__(self): self.x = 1
        class E(Exception):
            def __init__(self, a, b): super().__init__(a); self.b = b
        class I(int):
            def __init__(self, v): self.v = v
        class Abstract(abc.ABC):
            @abc.abstractmethod
            def m(self): pass
            def __init__(self): pass
        class Color(enum.Enum):
            RED = 1
            def __init__(self, n): self.n = n
        @dataclasses.dataclass
        class D:
            a: int
        for i in range(50):
            A(2); B(); S(); E(1, 2); I(3); D(4)
        for make in (lambda: A(1, 2, 3), Abstract, lambda: object.__new__(A, 1), lambda: D()):
            try: print(make())
            except TypeError as e: print(e)
        print(object.__new__(A).__dict__, A.__new__ is object.__new__, B(5).x, Color.RED.n, I(7) + 1)
        print(pickle.loads(pickle.dumps(A(9))).x, copy.deepcopy(B(3)).x, E(1, 2).args, D(1) == D(1))
        a = A(); a.__class__ = B; print(type(a).__name__)
        B.__init__ = lambda self: setattr(self, "x", "new"); print(B().x); del B.__init__; print(B().x)
        A.__init__ = object.__init__
        try: A(1)
        except TypeError as e: print(e)
        M = type("M", (A,), {"__init__": lambda self, y: None})
        print([M(i) is None for i in range(30)].count(False))
    """,
    "item access made in every way": """
        class C:
            def __getitem__(self, i): return i
        class D(C): pass
        def h(self, i): return -i
        c, d = C(), D()
        print(sum(c[i] + d[i] for i in range(100)))
        C.__getitem__ = h; print(sum(c[i] + d[i] for i in range(100)))
        h.__defaults__ = None; print(c[3]); h.__code__ = (lambda s, i: i * 10).__code__; print(c[3], d[4])
        D.__getitem__ = lambda self, i: "D"; print(c[1], d[1])
        def many():
            class X:
                def __getitem__(self, i): return many.n
            return X()
        for many.n in range(200):
            x = many(); assert [x[i] for i in range(5)] == [many.n] * 5
    """,
    "code objects": """
        import types
        def f(a, b=2): return a + b
        f2 = types.FunctionType(f.__code__.replace(co_name="other"), globals()); print(f2(1, 2))
        f.__code__ = (lambda a, b=3: a * b).__code__; print(f(5))
        codes = [compile("x = %d" % i, "c", "exec") for i in range(1000)]
        for c in codes: exec(c)
        del codes; print(x)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_observes_the_same(python, run, name):
    plain = run(python, PROGRAMS[name], form=None)
    watched = run(python, PROGRAMS[name])
    # Where objects lie differs from run to run.
    assert re.sub("0x[0-9a-f]+", "0x", watched.out) == re.sub("0x[0-9a-f]+", "0x", plain.out) != ""
    assert watched.err == plain.err
    assert watched.notes == []
    assert jitdump.read_one(watched).functions


def test_32_threads(python, run):
    program = """
    import threading
    def work(n):
        space = {}
        for i in range(100):
            exec(compile("def f(x): return g(x)\\ndef g(x): return x + %d" % i, "t%d-%d" % (n, i), "exec"), space)
            total[n] += sum(map(space["f"], range(20)))
    total = [0] * 32
    threads = [threading.Thread(target=work, args=(n,)) for n in range(32)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(set(total))
    """
    result = run(python, program)
    assert result.out == "{%d}\n" % (sum(range(20)) * 100 + 20 * sum(range(100)))
    dump = jitdump.read_one(result)
    functions = {(f.name, f.line) for f in dump.functions}
    assert len(functions) == len(dump.functions)
    names = {f.name for f in dump.functions}
    assert all("py::%s:t%d-%d" % (f, n, i) in names for f in "fg" for n in range(32) for i in range(100))


NAMES = {
    "plain": ("f", "file.py"),
    "newline": ("f", "a\nb.py"),
    "not ASCII": ("größe", "日本.py"),
    "surrogate of a byte": ("f", "\udcff.py"),
    "lone surrogate": ("f", "\ud800.py"),
    "empty": ("f", ""),
    "very long": ("f" * 3000, "g" * 5000),
}


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_published_and_stays_on_its_line(python, run, name):
    function, path = NAMES[name]
    source = "def %s(): pass\n%s()" % (function, function)
    result = run(python, "exec(compile(%s, %s, 'exec'))\nprint(1)" % (ascii(source), ascii(path)), form="both")
    assert result.out == "1\n"
    dump = jitdump.read_one(result)
    published = [f.name for f in dump.functions]
    assert not any("\n" in f for f in published)
    if name == "newline":
        assert any(f.startswith("py::f:a") and f.endswith("b.py") for f in published)
    elif name == "lone surrogate":
        assert "py::f:\\ud800.py" in published
    else:
        assert "py::%s:%s" % (function, path) in published
    (perfmap,) = result.perfmaps()
    lines = perfmap.read_bytes().splitlines()
    assert len(lines) == len(dump.functions)


def test_an_exception_on_its_way_survives_the_making_of_a_trampoline(python, run):
    """throw() enters a generator that has never run with the exception set."""
    program = """
    def fresh():
        yield
    try: fresh().throw(ValueError("mine"))
    except ValueError as e: print(e)
    class C:
        def __del__(self): helper()
    def helper(): pass
    def f():
        c = C()
        raise KeyError("kept")
    try: f()
    except KeyError as e: print(e)
    """
    assert run(python, program).out == "mine\n'kept'\n"


def test_the_standard_library_tests_itself(python, run):
    """A few of CPython's own test modules, where they are installed."""
    have = run(python, None, "-c", "import test.test_generators", form=None, code=None)
    if have.code != 0:
        pytest.skip("%s has no test suite" % python.label)
    modules = ["test_generators", "test_with", "test_class"]
    plain = run(python, None, "-m", "test", *modules, form=None, code=None, timeout=600)
    watched = run(python, None, "-m", "test", *modules, code=None, timeout=600)
    assert watched.code == plain.code, watched.out[-3000:]

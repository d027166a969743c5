# SPDX-License-Identifier: MIT
"""Every call passes through the trampoline that bears its name, exactly once."""

import collections
import json

import pytest

import jitdump
from pythons import HOME

REPEAT = 60

# name -> (definitions, one round of calls, {function: calls per round}); a pair
# is for interpreters before 3.11 and from it on, a third for 3.12 and newer.
CONSTRUCTS = {
    "plain call": ("def f(): pass", "f()", {"f": 1}),
    "keywords": ("def f(a, *, b=1): pass", "f(1, b=2); f(a=3)", {"f": 2}),
    "star arguments": ("def f(*a, **k): pass", "f(*(1, 2), **{'x': 1})", {"f": 1}),
    "method": ("class C:\n def m(self): pass\nc = C()", "c.m(); C.m(c)", {"C.m": 2}),
    "bound method": ("class C:\n def m(self): pass\nm = C().m", "m()", {"C.m": 1}),
    "class and static method": (
        "class C:\n @classmethod\n def k(cls): pass\n @staticmethod\n def s(): pass",
        "C.k(); C.s(); C().k()",
        {"C.k": 2, "C.s": 1},
    ),
    "lambda": ("f = lambda: 0", "f()", {"<lambda>": 1}),
    "closure": ("def make():\n x = 1\n def inner(): return x\n return inner\ni = make()", "i()", {"make.<locals>.inner": 1}),
    "property": ("class C:\n @property\n def p(self): return 1\nc = C()", "c.p", {"C.p": 1}),
    "property setter": (
        "class C:\n @property\n def p(self): return 1\n @p.setter\n def p(self, v): pass\nc = C()",
        "c.p = 1",
        {"C.p": 1},
    ),
    "descriptor": (
        "class D:\n def __get__(self, o, t): return 1\nclass C:\n d = D()\nc = C()",
        "c.d",
        {"D.__get__": 1},
    ),
    "__getattr__": ("class C:\n def __getattr__(self, n): return 1\nc = C()", "c.x", {"C.__getattr__": 1}),
    "__getattribute__": (
        "class C:\n def __getattribute__(self, n): return 1\nc = C()",
        "c.x",
        {"C.__getattribute__": 1},
    ),
    "__setattr__": ("class C:\n def __setattr__(self, n, v): pass\nc = C()", "c.x = 1", {"C.__setattr__": 1}),
    "__getitem__": ("class C:\n def __getitem__(self, i): return i\nc = C()", "c[1]", {"C.__getitem__": 1}),
    "inherited __getitem__": (
        "class B:\n def __getitem__(self, i): return i\nclass C(B): pass\nc = C()",
        "c[1]",
        {"B.__getitem__": 1},
    ),
    "__setitem__": ("class C:\n def __setitem__(self, i, v): pass\nc = C()", "c[1] = 2", {"C.__setitem__": 1}),
    "__init__": ("class C:\n def __init__(self, a): self.a = a", "C(1)", {"C.__init__": 1}),
    "inherited __init__": (
        "class B:\n def __init__(self): pass\nclass C(B): pass",
        "C(); B()",
        {"B.__init__": 2},
    ),
    "__init__ through super": (
        "class B:\n def __init__(self): pass\nclass C(B):\n def __init__(self):\n  super().__init__()",
        "C()",
        {"B.__init__": 1, "C.__init__": 1},
    ),
    "__init__ with a cell": (
        "class C:\n def __init__(self, a):\n  self.f = lambda: self",
        "C(1)",
        {"C.__init__": 1},
    ),
    "__init__ of slots": ("class C:\n __slots__ = 'a',\n def __init__(self): pass", "C()", {"C.__init__": 1}),
    "__init__ of a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass C:\n a: int\nINIT = C.__init__.__code__",
        "C(1)",
        {"INIT": 1},
    ),
    "__new__": ("class C:\n def __new__(cls): return object.__new__(cls)", "C()", {"C.__new__": 1}),
    "__call__": ("class C:\n def __call__(self): pass\nc = C()", "c()", {"C.__call__": 1}),
    "operators": (
        "class C:\n def __add__(self, o): return 1\n def __eq__(self, o): return True\n def __lt__(self, o): return True\n"
        " def __len__(self): return 1\n def __bool__(self): return True\n def __contains__(self, x): return True\nc = C()",
        "c + c; c == c; c < c; len(c); bool(c); 1 in c",
        {"C.__add__": 1, "C.__eq__": 1, "C.__lt__": 1, "C.__len__": 1, "C.__bool__": 1, "C.__contains__": 1},
    ),
    "with": (
        "class C:\n def __enter__(self): pass\n def __exit__(self, *a): pass\nc = C()",
        "with c: pass",
        {"C.__enter__": 1, "C.__exit__": 1},
    ),
    "iterator": (
        "class C:\n def __iter__(self): self.n = 3; return self\n def __next__(self):\n"
        "  self.n -= 1\n  if self.n < 0: raise StopIteration\n  return self.n\nc = C()",
        "for x in c: pass",
        {"C.__iter__": 1, "C.__next__": 4},
    ),
    "callbacks from C": (
        "def key(x): return -x\ndef twice(x): return x * 2",
        "sorted([1, 2, 3], key=key); list(map(twice, (1, 2)))",
        {"key": 3, "twice": 2},
    ),
    "recursion": ("def f(n): return f(n - 1) if n else 0", "f(9)", {"f": 10}),
    "exception": (
        "def f(): raise ValueError\ndef g():\n try: f()\n except ValueError: pass",
        "g()",
        {"f": 1, "g": 1},
    ),
    "finalizer": ("class C:\n def __del__(self): pass", "C()", {"C.__del__": 1}),
    "decorated": (
        "import functools\ndef d(f):\n @functools.wraps(f)\n def w(*a): return f(*a)\n return w\n@d\ndef f(a): pass",
        "f(1)",
        {"d.<locals>.w": 1, "f": 1},
    ),
    # From 3.11 on making a generator enters it once more.
    "generator": ("def g():\n yield 1\n yield 2", "for x in g(): pass", {"g": (3, 4)}),
    "generator expression": ("def f(): return sum(x for x in (1, 2))", "f()", {"f": 1, "f.<locals>.<genexpr>": (3, 4)}),
    "yield from": (
        "def inner():\n yield 1\ndef outer():\n yield from inner()",
        "for x in outer(): pass",
        {"inner": (2, 3), "outer": (2, 3)},
    ),
    "coroutine": (
        "class A:\n def __await__(self): yield\nasync def co():\n await A()\n"
        "def drive(c):\n try:\n  while True: c.send(None)\n except StopIteration: pass",
        "drive(co())",
        {"co": (2, 3), "drive": 1},
    ),
    "async generator": (
        "async def ag():\n yield 1\n yield 2\nasync def co():\n async for x in ag(): pass\n"
        "def drive(c):\n try:\n  c.send(None)\n except StopIteration: pass",
        "drive(co())",
        {"ag": (3, 4), "co": (1, 2), "drive": 1},
    ),
    # Part of the function around it from 3.12 on.
    "comprehension": (
        "def f(): return [x for x in (1, 2)], {x for x in (1, 2)}",
        "f()",
        {"f": 1, "f.<locals>.<listcomp>": (1, 1, 0), "f.<locals>.<setcomp>": (1, 1, 0)},
    ),
    "class body and metaclass": (
        "class M(type):\n def __call__(cls): return 1\n def __new__(m, *a): return type.__new__(m, *a)\n"
        "def f():\n class C(metaclass=M): pass\n return C",
        "f()()",
        {"f": 1, "f.<locals>.C": 1, "M.__new__": 1, "M.__call__": 1},
    ),
    "names asked for by C": (
        "class C:\n def __hash__(self): return 1\n def __repr__(self): return 'r'\n def __format__(self, s): return 'f'\n"
        " def __index__(self): return 1\n def __set_name__(self, o, n): pass\nc = C()",
        "hash(c); repr(c); f'{c}'; [1, 2][c]; type('T', (), {'c': c})",
        {"C.__hash__": 1, "C.__repr__": 1, "C.__format__": 1, "C.__index__": 1, "C.__set_name__": 1},
    ),
    "throw": (
        "def g():\n try: yield\n except KeyError: yield\n"
        "def f():\n x = g(); next(x); x.throw(KeyError()); x.close()",
        "f()",
        {"g": (3, 4), "f": 1},
    ),
}

PROGRAM = """
import json, sys
home, maps, probe_folder, repeat, warm, constructs = json.loads(sys.argv[1])
sys.path[:0] = [home, probe_folder]
import probe, tickmap

def rounds_of(number, definitions, calls):
    source = definitions + "\\ndef rounds(n):\\n for i in range(n): round()\\ndef round():\\n " + calls
    space = {"__name__": "m"}
    exec(compile(source, "construct%d" % number, "exec"), space)
    return space

spaces = [rounds_of(i, *c) for i, c in enumerate(constructs)]
if warm:
    for space in spaces:
        space["rounds"](repeat)
probe.install()
tickmap.activate("jitdump", maps, True)
probe.start()
for space in spaces:
    space["rounds"](repeat)
callers = probe.stop()
tickmap.deactivate()
codes = [space.get("INIT") for space in spaces]
inits = [c and "py::%s:%s" % (getattr(c, "co_qualname", c.co_name), c.co_filename) for c in codes]
print(json.dumps([callers, inits]))
"""


def argument_of(home, maps, probe, warm):
    return json.dumps([str(home), str(maps), str(probe), REPEAT, warm, [c[:2] for c in CONSTRUCTS.values()]])


def check_counts(version, callers, inits, dump):
    """What PROGRAM has printed and published, against CONSTRUCTS."""
    counts = collections.Counter()
    for caller, count in callers:
        function = dump.at(caller)
        # Called by anything but a trampoline, it would be called by nobody.
        assert function is not None, hex(caller)
        counts[function.name] += count

    for number, (label, (_, _, expected)) in enumerate(CONSTRUCTS.items()):
        wanted = collections.Counter()
        for function, per_round in expected.items():
            if isinstance(per_round, tuple):
                column = (version >= (3, 11)) + (version >= (3, 12))
                per_round = per_round[min(column, len(per_round) - 1)]
            # Older code objects do not know their class.
            if version < (3, 11):
                function = function.rsplit(".", 1)[-1]
            name = "py::%s:construct%d" % (function, number)
            wanted[inits[number] or name] += per_round * REPEAT
        assert {f: counts[f] for f in wanted} == dict(wanted), label


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_every_call_runs_through_its_own_trampoline(python, run, probe, tmp_path, warm):
    callers, inits = run(python, PROGRAM, argument_of(HOME, tmp_path, probe, warm), form=None).json
    (path,) = tmp_path.glob("jit-*.dump")
    check_counts(python.version, callers, inits, jitdump.Dump(path))
    assert len(CONSTRUCTS) >= 40


def test_code_that_is_compiled_in_a_loop_takes_one_trampoline(python, run):
    program = """
    import resource
    def lambdas(n):
        for i in range(n):
            eval(compile("lambda: 0", "<made up>", "eval"))()
    lambdas(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lambdas(100000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    result = run(python, program)
    dump = jitdump.read_one(result)
    assert len([f for f in dump.functions if f.name == "py::<lambda>:<made up>"]) == 1
    assert len(dump.functions) < 1000
    assert int(result.out) < 4096  # KiB


def test_functions_of_one_name_differ_by_line(python, run):
    program = """
    pair = [lambda: 1,
            lambda: 2]
    for f in pair:
        f()
    """
    dump = jitdump.read_one(run(python, program))
    found = [f for f in dump.named("<lambda>") if f.name.endswith("program.py")]
    assert [f.line for f in found] == [2, 3]
    assert len({f.addr for f in found}) == 2
    assert all(f.lines[0][2].endswith("/program.py") for f in found)
    assert all(f.has_unwinding for f in dump.functions)


def test_trampolines_differ_in_their_bytes(python, run):
    """Consumers that hash the code must not take two functions for one."""
    dump = jitdump.read_one(run(python, "import json"))
    codes = [f.code for f in dump.functions]
    assert len(codes) > 20
    assert len(set(codes)) == len(codes)

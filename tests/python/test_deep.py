# SPDX-License-Identifier: MIT
"""Recursion through whatever the interpreter inlines: it goes as deep with
us as without. That it is seen again afterwards: test_unwinding.py."""

import json

import pytest

from pythons import HOME

# Each kind in a child of its own, since some crash without us, too.
PROGRAM = """
import json, os, resource, sys
sys.setrecursionlimit(1_000_000)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
left = 0

class Property:
    @property
    def p(self):
        global left
        left -= 1
        return 1 + self.p if left > 0 else 0
class Item:
    def __getitem__(self, n): return 1 + self[n - 1] if n else 0
class ItemByOther:
    def __getitem__(self, n): return 1 + other(self, n)
def other(o, n): return o[n - 1] if n else 0
class Init:
    def __init__(self, n):
        if n: Init(n - 1)
class InitByMethod:
    def __init__(self, n): self.make(n)
    def make(self, n):
        if n: InitByMethod(n - 1)
class InitOne:
    def __init__(self, n):
        if n: InitTwo(n - 1)
class InitTwo:
    def __init__(self, n):
        if n: InitOne(n - 1)
class Attribute:
    def __getattribute__(self, name):
        global left
        left -= 1
        return 1 + self.x if left > 0 else 0
def loop(n):
    if n:
        for x in loop(n - 1): yield x
    else: yield 1
def delegate(n):
    if n: yield from delegate(n - 1)
    else: yield 1
async def wait(n):
    if n: await wait(n - 1)
def keyword(n=0): return 1 + keyword(n=n - 1) if n else 0
def star(*a): return 1 + star(*(a[0] - 1,)) if a[0] else 0
class Method:
    def m(self, n): return 1 + self.m(n - 1) if n else 0
class Super(Method):
    def m(self, n): return 1 + self.other(n - 1) if n else 0
    def other(self, n): return 1 + super().m(n)
def run(coroutine):
    try: coroutine.send(None)
    except StopIteration: pass
def count(n, f):
    global left
    left = n
    f()

KINDS = {
    "property": lambda n: count(n, lambda: Property().p),
    "__getitem__": lambda n: Item()[n],
    "__getitem__ by another": lambda n: ItemByOther()[n],
    "__init__": Init,
    "__init__ by a method": InitByMethod,
    "__init__ of two classes": InitOne,
    "__getattribute__": lambda n: count(n, lambda: Attribute().x),
    "for": lambda n: list(loop(n)),
    "yield from": lambda n: list(delegate(n)),
    "await": lambda n: run(wait(n)),
    "keyword": lambda n: keyword(n=n),
    "star": star,
    "method": lambda n: Method().m(n),
    "super": lambda n: Super().m(n),
}

def end_of(kind, n):
    child = os.fork()
    if child == 0:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
        try: KINDS[kind](n)
        except RecursionError: os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]

depths, warm = json.loads(sys.argv[1])
if warm:
    for i in range(6000):
        for kind in KINDS.values(): kind(2)
print(json.dumps({"%s %d" % (kind, n): end_of(kind, n) for kind in KINDS for n in depths}))
"""


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_recursion_of_every_kind_reaches_the_plain_depth(python, run, warm):
    if python.version < (3, 11):
        pytest.skip("%s inlines no calls" % python.label)
    # In 3.13 a class's own recursion ends, at 262,000, with its C calls, of
    # which a part is not left: see docs/python.md.
    argument = json.dumps([[15_000, 150_000], warm])
    plain = run(python, PROGRAM, argument, form=None).json
    ours = run(python, PROGRAM, argument).json
    reached = [kind for kind in plain if plain[kind] == 0]
    assert len(reached) >= 10, plain
    assert [kind for kind in reached if ours[kind] != 0] == []


# What is kept from being inlined, where no hook of ours sees that it goes deep.
KEPT = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import tickmap
sys.setrecursionlimit(1_000_000)
class Init:
    def __init__(self, n):
        if n: Init(n - 1)
class Item:
    def __getitem__(self, n): return 1 + self[n - 1] if n else 0
is_init = sys.version_info >= (3, 12)
def deep(): return Init(15_000) if is_init else Item()[15_000]
def often():
    for i in range(1000): Init(2) if is_init else Item()[2]
tickmap.activate("jitdump", sys.argv[2])
often()
# Another thread's deep call has taken the hook out.
arrived, done = threading.Event(), threading.Event()
def wait(n):
    if n: return wait(n - 1)
    arrived.set(); done.wait()
thread = threading.Thread(target=wait, args=(5000,))
thread.start(); arrived.wait()
try: deep()
finally: done.set()
thread.join()
often()
tickmap.deactivate()
often()
deep()
print("done")
"""


def test_what_is_kept_goes_deep_without_the_hook_too(python, run, tmp_path):
    keeps = (3, 11) <= python.version < (3, 11, 7) or (python.version[:2] == (3, 13) and not python.is_free_threaded)
    if not keeps:
        pytest.skip("%s asks before it inlines" % python.label)
    assert run(python, KEPT, str(HOME), str(tmp_path), form=None).out == "done\n"

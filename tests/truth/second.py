# SPDX-License-Identifier: MIT
"""Another program whose true profile is known, of another making than truth.py:
classes, decorators, partial objects, properties, descriptors, context managers,
exceptions through frames, deep `yield from`, callbacks out of sorted, ctypes,
sqlite3, json and re, timers, exec, garbage, atexit.

Three callers share the CPU time 50 : 35 : 15 by what time.thread_time says. Each
piece of work is one call of a leaf, for 3 to 30 ms, and each leaf notes the whole
stack that it was called with, so that the profile can be held against both.

    second.py [--seed N] [--seconds S] [--threads N]

Prints one JSON object at its end.
"""
import time

FIRST_NS = time.monotonic_ns()

import abc
import argparse
import atexit
import collections
import contextlib
import ctypes
import functools
import json
import operator
import random
import re
import sqlite3
import sys
import threading
import weakref

cpu = time.thread_time
SHARES = collections.OrderedDict(alpha=0.50, beta=0.35, gamma=0.15)
LOCAL = threading.local()
LEAVES = set()
STACKS = set()
CODES = {}


def published(code):
    return "py::%s:%s" % (getattr(code, "co_qualname", code.co_name),
                          code.co_filename)


def note():
    """Called by a leaf: the stack down to it is true."""
    frame, stack = sys._getframe(1), []
    LEAVES.add(id(frame.f_code))
    while frame is not None:
        CODES[id(frame.f_code)] = frame.f_code
        stack.append(id(frame.f_code))
        frame = frame.f_back
    STACKS.add(tuple(stack))


# ---- leaves: they work until LOCAL.end, and some way takes a few of them ----

def burn(*_, **__):
    note()
    end, x = max(LOCAL.end, cpu() + 0.001), 0
    while cpu() < end:
        for i in range(300):
            x = x * 3 + i & 0xfff
    return x


def burn_a_little(*_, **__):
    """For callbacks that are called several times in a piece of work."""
    note()
    now = cpu()
    end, x = now + max(0.0005, min(LOCAL.end - now, 0.001)), 0
    while cpu() < end:
        for i in range(300):
            x = x * 3 + i & 0xfff
    return x


# ---- ways to get there ----

def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class Counted:
    """A decorator that is a class, and a descriptor."""

    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, instance, owner):
        return functools.partial(self, instance)

    def __call__(self, *args):
        return self.function(*args)


class Base(abc.ABC):
    @abc.abstractmethod
    def run(self):
        raise NotImplementedError

    @property
    def value(self):
        return burn()

    @functools.cached_property
    def once(self):
        return burn()

    @classmethod
    def make(cls):
        return cls()

    @staticmethod
    def still():
        return burn()

    def __call__(self):
        return burn()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return burn()

    def __getitem__(self, key):
        return burn()

    def __add__(self, other):
        return burn()

    def __enter__(self):
        burn_a_little()
        return self

    def __exit__(self, *_):
        burn()
        return True

    def __contains__(self, item):
        return bool(burn())

    def __iter__(self):
        return self

    def __next__(self):
        burn()
        raise StopIteration


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.n = 1

    @traced
    @Counted
    def run(self):
        return burn()

    def chained(self, depth=12):
        return self.chained(depth - 1) if depth else self.run()


class Initial:
    def __init__(self, leaf):
        leaf()


class New:
    def __new__(cls):
        burn()
        return super().__new__(cls)


class Meta(type):
    def __call__(cls, *args):
        return burn()


class Made(metaclass=Meta):
    pass


class Subscribed:
    def __init_subclass__(cls):
        burn()

    def __class_getitem__(cls, item):
        return burn()

    def __set_name__(self, owner, name):
        burn()


def by_decorators():
    Derived.make().run()


def by_properties():
    thing = Derived()
    thing.value
    thing.once
    thing.dynamic
    Base.still()


def by_operators():
    thing = Derived()
    thing()
    thing[1]
    thing + 1
    1 in thing
    list(thing)


def by_chain():
    Derived().chained()


def by_constructor():
    Initial(burn)
    New()
    Made()


def by_class_statement():
    class Sub(Subscribed):
        attribute = Subscribed()
    Subscribed[int]


def by_partial():
    functools.partial(burn, 1, key=2)()
    functools.partial(operator.methodcaller("run"), Derived())()
    operator.call(burn) if hasattr(operator, "call") else burn()


def by_context():
    with Derived() as thing:
        raise LookupError(thing)
    with contextlib.suppress(KeyError), managed(), managed():
        burn()


@contextlib.contextmanager
def managed():
    try:
        burn_a_little()
        yield
    finally:
        burn_a_little()


def raiser(depth):
    if not depth:
        burn_a_little()
        raise KeyError("deep")
    try:
        raiser(depth - 1)
    finally:
        burn_a_little()


def by_exceptions():
    try:
        raiser(8)
    except KeyError:
        burn()


def nest(depth):
    if depth:
        yield from nest(depth - 1)
    else:
        while cpu() < LOCAL.end:
            burn_a_little()
            yield 1


def by_generators():
    return sum(nest(25))


def coroutine():
    total = 0
    while True:
        total += yield total
        burn_a_little()


def by_send():
    running = coroutine()
    next(running)
    while cpu() < LOCAL.end:
        running.send(1)
    with contextlib.suppress(ValueError):
        running.throw(ValueError)


def by_comprehensions():
    while cpu() < LOCAL.end:
        [burn_a_little(i) for i in range(2)]
        {i: burn_a_little(i) for i in range(2)}
        set(burn_a_little(i) for i in range(2))
        [[burn_a_little() for _ in range(1)] for _ in range(1)]


def key(n):
    return burn_a_little() and n


def by_sorting():
    while cpu() < LOCAL.end:
        sorted([3, 1, 2], key=key)
        min(4, 5, key=key)
        sorted([2, 1], key=functools.cmp_to_key(lambda a, b: key(a) - key(b)))
        list(map(key, filter(key, [1])))


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def foreign(a, b):
    return burn_a_little() & 1


def by_ctypes():
    array = (ctypes.c_int * 3)(3, 1, 2)
    while cpu() < LOCAL.end:
        ctypes.CDLL(None).qsort(array, 3, 4, foreign)


def by_sqlite():
    database = sqlite3.connect(":memory:")
    database.create_function("f", 1, burn_a_little)
    while cpu() < LOCAL.end:
        database.execute("select f(1), f(2)").fetchall()
    database.close()


def fallback(thing):
    return burn_a_little()


def by_json():
    while cpu() < LOCAL.end:
        json.dumps([{1}, {2}], default=fallback)
        json.loads('{"a": {"b": 1.5}}', object_hook=fallback,
                   parse_float=fallback)


def by_re():
    while cpu() < LOCAL.end:
        re.sub("a|b", lambda m: str(burn_a_little()), "a-b")


SOURCE = compile("""
def defined():
    return leaf()
defined()
""", "<made up>", "exec")


def by_exec():
    exec(SOURCE, {"leaf": burn})
    eval("leaf()", {"leaf": burn})


class Garbage:
    def __init__(self):
        self.finalizer = weakref.finalize(self, burn_a_little)

    def __del__(self):
        burn_a_little()


def by_garbage():
    while cpu() < LOCAL.end:
        Garbage()


def by_recursion(depth=60):
    return by_recursion(depth - 1) if depth else burn()


def tail(f, *args):
    return f(*args)


def by_closures():
    return tail(tail, tail, (lambda f: (lambda: f()))(burn))


WAYS = [value for name, value in sorted(globals().items())
        if name.startswith("by_")]


def in_timer(end, done):
    def fire():
        LOCAL.end = cpu() + end
        burn()
        done.append(cpu())
    timer = threading.Timer(0, fire)
    timer.start()
    timer.join()


# ---- the three that share the time ----

class Share:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.spent = dict.fromkeys(SHARES, 0.0)

    def alpha(self, way):
        way()

    def beta(self, way):
        way()

    def gamma(self, way):
        way()

    def behind(self):
        total = sum(self.spent.values()) or 1e-9
        return min(SHARES, key=lambda n: self.spent[n] / total / SHARES[n])

    def work(self, seconds):
        stop = cpu() + seconds
        while cpu() < stop:
            name, way = self.behind(), self.random.choice(WAYS)
            begin = cpu()
            LOCAL.end = begin + self.random.uniform(0.003, 0.030)
            getattr(self, name)(way)
            self.spent[name] += cpu() - begin


# ---- the calls that happen, as the interpreter tells them ----

def collect_calls():
    calls = set()

    def profile(frame, event, arg):
        if event == "call" and frame.f_back is not None:
            calls.add((frame.f_back.f_code, frame.f_code))

    share = Share(0)
    sys.setprofile(profile)
    try:
        share.work(0.02)
        for way in WAYS:
            for run in (share.alpha, share.beta, share.gamma):
                LOCAL.end = cpu() + 0.001
                run(way)
    finally:
        sys.setprofile(None)
    STACKS.clear()
    return sorted({(published(a), published(b)) for a, b in calls
                   if a is not collect_calls.__code__})


def at_the_end():
    LOCAL.end = cpu() + 0.005
    burn()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    atexit.register(at_the_end)
    calls = collect_calls()
    begin_ns = time.monotonic_ns()
    begin_cpu = time.process_time()
    if args.threads:
        # No comprehensions: those of the ways to a leaf have the same name.
        shares, threads = [], []
        for i in range(args.threads):
            shares.append(Share(args.seed * 100 + i))
            threads.append(threading.Thread(
                target=shares[-1].work, args=(args.seconds / args.threads,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        shares = [Share(args.seed)]
        shares[0].work(args.seconds)
    fired = []
    in_timer(0.02, fired)
    spent_cpu = time.process_time() - begin_cpu
    last_ns = time.monotonic_ns()
    names = {n: published(code) for n, code in CODES.items()}
    print(json.dumps({
        "spent": {n: sum(s.spent[n] for s in shares) for n in SHARES},
        "cpu": spent_cpu,
        "timer": fired,
        "first_ns": FIRST_NS,
        "begin_ns": begin_ns,
        "leaves": sorted({names[n] for n in LEAVES}),
        "calls": calls,
        "stacks": sorted([names[n] for n in reversed(s)] for s in STACKS),
        "last_ns": last_ns,
    }))


if __name__ == "__main__":
    main()

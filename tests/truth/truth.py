"""A program whose true profile is known: it says itself where its time went.

Three parts share the thread's CPU time 60 : 30 : 10, in units of 5 to 50 ms of
random length. At the end it prints one JSON object: the CPU seconds of each
part as time.thread_time counted them, and the times (CLOCK_MONOTONIC, ns) of
its first and last statement.

    truth.py [--seed N] [--seconds S] [--threads N] [--depth N] [--calls FILE]
             [--hook-off KIND]

--threads N   N threads, of which 4 work and the others sleep
--depth N     Python frames of the deepest stack, from <module> to the leaf
--calls FILE  no profile: runs every kind of work once under sys.setprofile and
              writes the calls that really happen, as published names
--hook-off K  a switch for tests of the tests: the trampolines are off while
              work of this kind runs, so its frames must be missed
"""
import time

FIRST_NS = time.monotonic_ns()

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import sys
import threading
import zlib

SHARES = {"part_a": 0.60, "part_b": 0.30, "part_c": 0.10}
DATA = bytes(random.Random(7).randrange(64) for _ in range(20000))
# Long enough that deflate, not the kernel's clearing of its memory, is the work.
PACKED = DATA * 5
cpu = time.thread_time
MAIN_FRAMES = 6  # <module>, main, work, part_x, unit, and the kind itself


# ---- kinds of work; each runs until `end` of this thread's CPU clock ----

def numbers(end):
    x = 1
    while cpu() < end:
        for i in range(400):
            x = (x * 31 + i) & 0xffff
    return x


def recursion_leaf(end):
    x = 0
    while cpu() < end:
        for i in range(400):
            x ^= i
    return x


def recurse(depth, end):
    if depth == 1:
        return recursion_leaf(end)
    return recurse(depth - 1, end) + 1


def recursion(end, depth=50):
    return recurse(depth, end)


def produce(end):
    i = 0
    while cpu() < end:
        for j in range(300):
            i += j & 3
        yield i


def generator(end):
    total = 0
    for value in produce(end):
        total += value
    return total


def comprehension(end):
    total = 0
    while cpu() < end:
        total += sum([i * i & 7 for i in range(400)])
    return total


async def coroutine_leaf(n):
    x = 0
    for i in range(n):
        x += i & 5
    return x


async def coroutine(end):
    total = 0
    while cpu() < end:
        total += await coroutine_leaf(400)
    return total


def asynchronous(end):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine(end))
    finally:
        loop.close()


class Thing:
    def __init__(self, n):
        x = 0
        for i in range(n):
            x += i & 3
        self.x = x


def constructing(end):
    total = 0
    while cpu() < end:
        total += Thing(300).x
    return total


def sort_key(x):
    y = x
    for i in range(20):
        y = (y * 7 + i) & 1023
    return y


def sorting(end):
    numbers_ = list(range(40))
    while cpu() < end:
        sorted(numbers_, key=sort_key)


def replacement(match):
    n = 0
    for i in range(60):
        n += i
    return match.group(0)


def substituting(end):
    pattern = re.compile("[a-e]")
    while cpu() < end:
        pattern.sub(replacement, "abcdefghij" * 4)


class Meter:
    @property
    def level(self):
        n = 0
        for i in range(300):
            n += i & 1
        return n

    @staticmethod
    def static_read(n):
        x = 0
        for i in range(n):
            x += i & 1
        return x

    def __getitem__(self, n):
        x = n
        for i in range(300):
            x += i & 1
        return x


def attributes(end):
    meter = Meter()
    while cpu() < end:
        meter.level
        meter[3]
        Meter.static_read(300)


def compressing(end):
    while cpu() < end:
        zlib.compress(PACKED, 6)


def hashing(end):
    while cpu() < end:
        hashlib.sha256(DATA).digest()


def plain_b(end):
    x = 0
    while cpu() < end:
        for i in range(400):
            x += i & 9
    return x


def plain_c(end):
    x = 0
    while cpu() < end:
        for i in range(400):
            x -= i & 9
    return x


def closure_maker(n):
    def closed_over(m):
        x = 0
        for i in range(m):
            x += i & n
        return x
    return closed_over


def closures(end):
    inner = closure_maker(3)
    while cpu() < end:
        inner(400)


# ---- the schedule ----

KINDS_A = [numbers, recursion, generator, comprehension, asynchronous,
           constructing, sorting, substituting, attributes]
KINDS_B = [compressing, plain_b, hashing, plain_b]  # half of it native
KINDS_C = [plain_c, closures]
HOOK_OFF = None


def unit(kind, length):
    kind(cpu() + length)


def unit_without_hook(kind, length):
    import tickmap
    assert tickmap.is_active()
    tickmap.deactivate()
    kind(cpu() + length)
    tickmap.activate()


def part_a(state, length):
    state.step(KINDS_A, length)


def part_b(state, length):
    state.step(KINDS_B, length)


def part_c(state, length):
    state.step(KINDS_C, length)


PARTS = {"part_a": part_a, "part_b": part_b, "part_c": part_c}


class State:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.spent = dict.fromkeys(SHARES, 0.0)
        self.turn = 0
        self.debt = {}

    def step(self, kinds, length):
        if kinds is KINDS_B:
            # Equal CPU time for the native and the plain kinds.
            native = self.debt.get("native", 0.0)
            plain = self.debt.get("plain", 0.0)
            self.turn += 1
            if native <= plain:
                kind, which = kinds[0 if self.turn % 2 else 2], "native"
            else:
                kind, which = kinds[1], "plain"
            begin = cpu()
            unit(kind, length)
            self.debt[which] = self.debt.get(which, 0.0) + cpu() - begin
            return
        kind = self.random.choice(kinds)
        if HOOK_OFF == kind.__name__:
            unit_without_hook(kind, length)
        else:
            unit(kind, length)

    def next_part(self):
        """The part that is furthest behind its share."""
        total = sum(self.spent.values()) or 1e-9
        return max(SHARES, key=lambda p: SHARES[p] - self.spent[p] / total)


def work(state, seconds):
    end = cpu() + seconds
    while cpu() < end:
        name = state.next_part()
        length = state.random.uniform(0.005, 0.050)
        begin = cpu()
        PARTS[name](state, length)
        state.spent[name] += cpu() - begin


def sleeper(event):
    event.wait()


def in_threads(count, seed, seconds):
    """4 of the threads work, the others wait."""
    event = threading.Event()
    states = [State(seed * 100 + i) for i in range(4)]
    threads = [threading.Thread(target=work, args=(s, seconds / 4))
               for s in states]
    threads += [threading.Thread(target=sleeper, args=(event,))
                for _ in range(count - 4)]
    for thread in threads:
        thread.start()
    for thread in threads[:4]:
        thread.join()
    event.set()
    for thread in threads[4:]:
        thread.join()
    return {p: sum(s.spent[p] for s in states) for p in SHARES}


def deep(depth, seconds):
    """<module>, main, deep, then recurse and its leaf: `depth` frames."""
    recursion_depth = depth - 4
    recurse(recursion_depth, cpu() + seconds)
    return {"deep": seconds}


# ---- the calls that really happen ----

def published(code):
    name = getattr(code, "co_qualname", code.co_name)
    return "py::%s:%s" % (name, code.co_filename)


def record_calls(path):
    calls = set()

    def profile(frame, event, arg):
        if event != "call":
            return
        caller = frame.f_back
        while caller is not None and caller.f_code is record_calls.__code__:
            caller = None
        calls.add((published(caller.f_code) if caller else "",
                   published(frame.f_code)))

    sys.setprofile(profile)
    threading.setprofile(profile)
    try:
        for _ in range(2):
            everything_once()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    with open(path, "w") as out:
        json.dump(sorted(calls), out)


def everything_once():
    class Once(State):
        pass
    state = State(1)
    for part, kinds in (("part_a", KINDS_A), ("part_b", KINDS_B),
                        ("part_c", KINDS_C)):
        for kind in kinds:
            state.random = OnlyOne(kind)
            for _ in range(4):
                PARTS[part](state, 0.001)
    for behind in SHARES:
        state = State(2)
        state.spent = {p: 0.0 if p == behind else 1.0 for p in SHARES}
        work(state, 0.001)
    in_threads(5, 1, 0.05)
    deep(20, 0.001)


class OnlyOne:
    """Stands in for random.Random: always chooses the same."""

    def __init__(self, chosen):
        self.chosen = chosen

    def choice(self, kinds):
        return self.chosen


def main():
    global HOOK_OFF
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=9.2)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--calls")
    parser.add_argument("--hook-off")
    args = parser.parse_args()
    HOOK_OFF = args.hook_off
    if HOOK_OFF:
        sys.path.append(os.environ["TICKMAP_PYTHON_HOME"])
    if args.calls:
        record_calls(args.calls)
        return
    begin_ns = time.monotonic_ns()
    if args.depth:
        spent = deep(args.depth, args.seconds)
    elif args.threads:
        spent = in_threads(args.threads, args.seed, args.seconds)
    else:
        state = State(args.seed)
        work(state, args.seconds)
        spent = state.spent
    print(json.dumps({
        "spent": spent,
        "begin_ns": begin_ns,
        "first_ns": FIRST_NS,
        "cpu": time.process_time(),
        "last_ns": time.monotonic_ns(),
    }))


if __name__ == "__main__":
    main()

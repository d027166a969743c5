"""A fixed amount of work; prints the CPU seconds that it took.

    work.py mixed N | calls N
"""
import hashlib
import json
import re
import sys
import time
import zlib

DATA = bytes(i * i % 251 for i in range(20000))


class Thing:
    def __init__(self, n):
        self.x = sum(i & 3 for i in range(n))


def recurse(depth):
    if depth == 0:
        x = 0
        for i in range(4000):
            x ^= i
        return x
    return recurse(depth - 1)


def replacement(match):
    return match.group(0)


def mixed():
    """What the truth program does, once each."""
    x = 1
    for i in range(12000):
        x = (x * 31 + i) & 0xffff
    recurse(50)
    sum(v for v in range(4000))
    sum([i * i & 7 for i in range(8000)])
    for _ in range(8):
        Thing(200)
    sorted(range(200), key=lambda v: v * 7 & 1023)
    re.sub("[a-e]", replacement, "abcdefghij" * 60)
    zlib.compress(DATA, 6)
    for _ in range(12):
        hashlib.sha256(DATA).digest()
    json.loads(json.dumps({str(i): i for i in range(300)}))


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def main(kind, n):
    for _ in range(n):
        if kind == "mixed":
            mixed()
        else:
            fib(20)
    print(time.process_time())


main(sys.argv[1], int(sys.argv[2]))

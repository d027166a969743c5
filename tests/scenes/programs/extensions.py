# SPDX-License-Identifier: MIT
"""C libraries that call Python and Python that calls C libraries: sqlite3 with
functions, aggregates, row factories and handlers; zlib, hashlib, json, re,
sorted, ctypes, pickle, bisect, itertools, struct, xml, decimal."""
import bisect
import ctypes
import functools
import hashlib
import io
import itertools
import json
import pickle
import re
import sqlite3
import sys
import xml.parsers.expat
import zlib

import truthful

truthful.begin()

UNIT = 0.001
DATA = bytes(i * i >> 3 & 63 for i in range(20000))


@truthful.marker
def spin(n=0):
    truthful.mark()
    end, x = truthful.work(UNIT), 0
    while truthful.cpu() < end:
        for i in range(100):
            x += i & 3
    return x


@truthful.marker
def compress():
    truthful.mark()
    end = truthful.work(4 * UNIT)
    while truthful.cpu() < end:
        zlib.decompress(zlib.compress(DATA, 6))


@truthful.marker
def digest():
    truthful.mark()
    end = truthful.work(4 * UNIT)
    while truthful.cpu() < end:
        hashlib.sha256(DATA).digest()
        hashlib.blake2b(DATA).digest()
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 20)


# ---- callbacks ----

class Total:
    def __init__(self):
        self.total = 0

    @truthful.marker
    def step(self, n):
        truthful.mark()
        end = truthful.work(UNIT)
        while truthful.cpu() < end:
            self.total += n & 1

    def finalize(self):
        return spin()


def database():
    connection = sqlite3.connect(":memory:")
    connection.create_function("slow", 1, lambda n: spin(n))
    connection.create_aggregate("total_of", 1, Total)
    connection.create_collation("mine", collate)
    connection.row_factory = row
    connection.execute("create table t (n integer, s text)")
    connection.executemany("insert into t values (?, ?)", rows(3))
    connection.execute("select slow(n) from t").fetchall()
    connection.execute("select total_of(n) from t").fetchall()
    connection.execute("select s from t order by s collate mine").fetchall()
    connection.set_progress_handler(progress, 5000)
    connection.execute("with recursive c(x) as (select 1 union all select x+1"
                       " from c where x < 4000) select sum(x) from c")
    connection.close()


def rows(count):
    for i in range(count):
        yield i, "%d" % (spin(i) & 7)


def row(cursor, values):
    return spin(len(values))


def collate(a, b):
    spin()
    return (a > b) - (a < b)


def progress():
    spin()
    return 0


@truthful.marker
def key(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        x = (x * 7 + 1) & 1023
    return n


def ordering():
    sorted(range(3), key=key)
    max([3, 1, 2], key=key)
    [1, 2].sort(key=functools.cmp_to_key(lambda a, b: spin() or a - b))
    list(map(spin, range(2)))
    list(filter(spin, range(2)))
    functools.reduce(lambda a, b: spin(b), range(3))
    list(itertools.groupby(range(2), key=spin))
    list(itertools.takewhile(key, [1, 2]))
    if sys.version_info >= (3, 10):
        bisect.bisect([1, 2, 3], 2, key=key)


class Odd:
    def __init__(self, n=0):
        self.n = n

    def __reduce__(self):
        return Odd, (spin(),)

    def __lt__(self, other):
        spin()
        return self.n < other.n

    def __hash__(self):
        spin()
        return 3

    def __eq__(self, other):
        spin()
        return True

    def __iter__(self):
        yield spin()
        yield spin()

    def __len__(self):
        spin()
        return 2

    def __str__(self):
        return str(spin())

    def __index__(self):
        spin()
        return 1

    def __format__(self, spec):
        return spec or self.__str__()

    def __del__(self):
        self.n = None


def protocols():
    pickle.loads(pickle.dumps(Odd()))
    sorted([Odd(2), Odd(1)])
    {Odd(): 1}[Odd()]
    list(Odd())
    tuple(Odd())
    len(Odd())
    str(Odd())
    "%s" % Odd()
    "{}".format(Odd())
    [1, 2][Odd()]


def encode(thing):
    spin()
    return list(thing)


def documents():
    text = json.dumps({"a": {1, 2}, "b": [{3}]}, default=encode)
    json.loads(text, object_hook=lambda d: spin() or d,
               parse_int=lambda s: spin() or int(s))
    re.sub("[ab]", lambda match: str(spin()), "xaybz")
    parser = xml.parsers.expat.ParserCreate()
    parser.StartElementHandler = lambda *a: spin()
    parser.CharacterDataHandler = characters
    parser.Parse("<a><b>text</b></a>", True)


def characters(text):
    spin()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                  ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    spin()
    return a[0] - b[0]


def foreign():
    array = (ctypes.c_int * 4)(4, 2, 3, 1)
    ctypes.CDLL(None).qsort(array, 4, ctypes.sizeof(ctypes.c_int), compare)
    assert list(array) == [1, 2, 3, 4]


class Stream(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        spin()
        return 0


def streams():
    io.BufferedReader(Stream()).read(10)
    io.TextIOWrapper(io.BufferedReader(Stream())).read()
    exec(compile("spin()", "<executed>", "exec"), {"spin": spin})
    eval("spin()")


def main(rounds):
    for _ in range(rounds):
        for part in (compress, database, digest, ordering, protocols,
                     documents, foreign, streams):
            part()


main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
truthful.end()

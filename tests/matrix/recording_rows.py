# SPDX-License-Identifier: MIT
"""What lies in recordings of newer kernels and with other options, and loses
other readers their place."""

import struct

from form import (
    JIT, MS, PID, START, Dump, Recording, put, recorded, row, sampled, simple, ten)

CHAIN, RAW, BRANCHES, REGISTERS, STACK = 1 << 5, 1 << 10, 1 << 11, 1 << 12, 1 << 13
USER, KERNEL, GUEST_USER = 2**64 - 512, 2**64 - 128, 2**64 - 2560


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def with_tails(r, kind, tail, count=10):
    """Samples with more fields behind IP, TID and TIME."""
    r.kind |= kind
    for i in range(count):
        address = JIT + 0x1000 * i + 8
        body = r.pack("QIIQ", address, PID, PID, START + (500 + i) * MS)
        r.record(9, 2, body + tail(address))
    return r


@row
def records_between(f):
    """Of every kind that is none of ours, some with bytes behind them."""
    r = recorded()
    for kind in 5, 6, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 200, 65:
        r.side(kind, 0, u64(1, 2, 3, kind), START + kind)
    r.record(66, 0, struct.pack("<I4x", 24))
    r.data += b"\xff" * 24  # tracing data
    r.record(71, 0, u64(40, 0, 0, 0) + bytes(8))
    r.data += b"\xee" * 40  # of a processor trace
    r.record(68, 0, b"")
    simple(f, ten(), sampled(r))


@row
def branch_stacks(f):
    simple(f, ten(), with_tails(recorded(), BRANCHES, lambda a: u64(
        3, a, a + 1, 0, a, a + 2, 0, a, a + 3, 0)))


@row
def raw_bytes(f):
    simple(f, ten(), with_tails(recorded(), RAW, lambda a: struct.pack("<I", 12) + b"\xff" * 12))


@row
def chain_contexts(f):
    """Kernel, guest and user parts; the leaf is a user's."""
    simple(f, ten(), with_tails(recorded(), CHAIN, lambda a: u64(5, GUEST_USER, USER, a, a + 8, 0)))


@row
def registers_without_ip(f):
    """None were taken: abi 0, and a stack of no bytes."""
    simple(f, ten(), with_tails(recorded(), REGISTERS | STACK, lambda a: u64(0, 0)))


@row
def unfinished(f):
    """The recorder was killed: the header does not say where the data end."""
    whole = sampled(recorded()).bytes()
    put(f, whole[:48] + bytes(8) + whole[56:], jit_PID_dump=ten())


@row
def unfinished_within_a_sample(f):
    whole = sampled(recorded(), 11).bytes()
    put(f, whole[:48] + bytes(8) + whole[56:-20], jit_PID_dump=ten())


@row
def last_events_first(f):
    """No rounds, and the samples before all that explains them."""
    r = sampled(Recording())
    samples, r.data = r.data, b""
    r.comm()
    r.map("//anon")
    r.marker()
    r.data = samples + r.data
    simple(f, ten(), r)


@row
def times_all_equal(f):
    """Loads and samples of one nanosecond: what was loaded then is there."""
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + MS)
    r = recorded()
    for i in range(10):
        r.sample(START + MS, JIT + 0x1000 * i + 8)
    simple(f, d, r)

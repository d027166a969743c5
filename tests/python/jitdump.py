# SPDX-License-Identifier: MIT
"""A strict reader of jitdumps, written apart from the project's own.

Every deviation from the format is an error, except a file that ends in the
middle of a record when `cut` is set.
"""

import os
import struct

LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)
MACHINE_X86_64, MACHINE_AARCH64 = 62, 183


class Function:
    def __init__(self, name, addr, size, code, index, stamp, pid, tid):
        self.name, self.addr, self.size, self.code = name, addr, size, code
        self.index, self.stamp, self.pid, self.tid = index, stamp, pid, tid
        self.lines = []
        self.has_unwinding = False

    @property
    def short(self):
        """The function's own name: what follows py:: and precedes :FILE."""
        assert self.name.startswith("py::"), self.name
        return self.name[4:].rsplit(":", 1)[0]

    @property
    def line(self):
        return self.lines[0][1] if self.lines else 0


class Dump:
    def __init__(self, path, elf_machine=MACHINE_X86_64):
        self.functions = []
        self.closed = False
        data = path.read_bytes()
        magic, version, size, machine, pad, self.pid, self.stamp, flags = struct.unpack_from("<IIIIIIQQ", data)
        assert (magic, version, size, machine, pad, flags) == (0x4A695444, 1, 40, elf_machine, 0, 0)
        offset, stamp = size, self.stamp
        lines, unwinding = {}, False
        indexes = set()
        while offset < len(data):
            assert not self.closed, "records behind the last one"
            kind, total, now = struct.unpack_from("<IIQ", data, offset)
            assert total >= 16 and offset + total <= len(data), "record at %#x does not fit" % offset
            assert now >= stamp, "time runs backwards at %#x" % offset
            stamp = now
            body = data[offset + 16 : offset + total]
            if kind == LOAD:
                function = self.read_load(body, now)
                assert function.index not in indexes
                indexes.add(function.index)
                function.lines = lines.pop(function.addr, [])
                function.has_unwinding = unwinding
                unwinding = False
                self.functions.append(function)
            elif kind == DEBUG_INFO:
                addr, entries = self.read_debug(body)
                lines[addr] = entries
            elif kind == UNWINDING_INFO:
                self.check_unwinding(body)
                unwinding = True
            elif kind == CLOSE:
                self.closed = True
            else:
                raise AssertionError("unknown record %d" % kind)
            offset += total

    @staticmethod
    def read_load(body, stamp):
        pid, tid, vma, addr, size, index = struct.unpack_from("<IIQQQQ", body)
        assert vma == addr
        end = body.index(b"\0", 40)
        name = body[40:end].decode("utf-8", "surrogateescape")
        code = body[end + 1 : end + 1 + size]
        assert len(code) == size
        return Function(name, addr, size, code, index, stamp, pid, tid)

    @staticmethod
    def read_debug(body):
        addr, count = struct.unpack_from("<QQ", body)
        offset, entries = 16, []
        for _ in range(count):
            where, line, _column = struct.unpack_from("<QII", body, offset)
            end = body.index(b"\0", offset + 16)
            entries.append((where, line, body[offset + 16 : end].decode("utf-8", "surrogateescape")))
            offset = end + 1
        return addr, entries

    @staticmethod
    def check_unwinding(body):
        size, header_size, _mapped = struct.unpack_from("<QQQ", body)
        assert 24 + size <= len(body) and header_size <= size

    def named(self, short):
        return [f for f in self.functions if f.short == short]

    def at(self, addr):
        """The one function that covers an address, or None."""
        found = [f for f in self.functions if f.addr <= addr < f.addr + f.size]
        assert len(found) <= 1
        return found[0] if found else None

    def shorts(self):
        return [f.short for f in self.functions]


def read_all(result, some_are_killed=False):
    """pid -> Dump, for one run whose processes have each made one at most. One
    that was killed while it began may leave a file without a byte."""
    dumps = {}
    for path in result.dumps():
        if some_are_killed and not path.stat().st_size:
            continue
        dump = Dump(path)
        assert path.name == "jit-%d.dump" % dump.pid
        assert dump.pid not in dumps
        dumps[dump.pid] = dump
        # Nobody but the owner may read or write what we publish.
        assert os.stat(str(path)).st_mode & 0o777 == 0o600
    return dumps


def read_one(result):
    dumps = read_all(result)
    assert len(dumps) == 1, sorted(dumps)
    return dumps.popitem()[1]

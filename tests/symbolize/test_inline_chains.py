# SPDX-License-Identifier: MIT
"""Chains of inlined functions against llvm-symbolizer's and addr2line's.

Names, files and lines of whole chains have to be equal. What may differ is
listed in CLASSES; each class has its own condition, and is counted.
"""
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", HERE.parents[1] / "build"))
CHAINS = BUILD / "tests/symbolize/inline_chains"
ADDRESSES = 3000

CLASSES = {
    "no function": "DWARF has none there (padding, assembly): we show the "
                   "symbol that holds the address, they that or none or the "
                   "nearest one, and for a file the symbol table's entry",
    "symbol": "the outermost function: we show the symbol, they the name in "
              "DWARF (NAME for NAME.cold, a constructor's C4 for C1, an alias)",
    "relative folder": "they join a relative compilation folder twice",
    "artificial": "addr2line takes the file of a line from a unit that LTO made",
    "unnamed lambda": "a function without a linkage name: addr2line shows the "
                      "symbol around it",
}


def output(command, addresses):
    text = "".join(f"{a:#x}\n" for a in addresses)
    return subprocess.run(command, input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True,
                          timeout=300).stdout


class Frame(collections.namedtuple("Frame", "name file line")):
    @classmethod
    def of(cls, name, file, line):
        known = not file.startswith("?")
        digits = line.split(" ")[0]
        return cls("?" if name == "??" else name,
                   os.path.normpath(file) if known else "?",
                   int(digits) if known and digits.isdigit() else 0)


def ours(path, addresses):
    chains, dwarf = [], []
    for line in output([CHAINS, path], addresses).splitlines():
        frames = [f.split("|") for f in line.split("\t")]
        chains.append([Frame.of(*f[:3]) for f in frames])
        dwarf.append(frames[-1][5])
    return chains, dwarf


def llvm(path, addresses):
    text = output(["llvm-symbolizer", "--obj=" + str(path), "--inlines",
                   "--no-demangle", "--functions=linkage"], addresses)
    chains = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines:
            chains.append([Frame.of(name, *place.rsplit(":", 2)[:2])
                           for name, place in zip(lines[::2], lines[1::2])])
    return chains


def addr2line(path, addresses):
    chains = []
    lines = iter(output(["addr2line", "-i", "-f", "-a", "-e", path],
                        addresses).splitlines())
    for line in lines:
        if line.startswith("0x"):
            chains.append([])
        else:
            chains[-1].append(Frame.of(line, *next(lines).rsplit(":", 1)))
    return chains


def addresses_of(path, count):
    """Of .text, spread by a fixed seed."""
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True,
                              text=True, check=True).stdout
    for line in sections.splitlines():
        word = line.replace("[ ", "[").split()
        if len(word) > 8 and word[1] == ".text":
            start, size = int(word[3], 16), int(word[5], 16)
    chosen = random.Random(1).sample(range(start, start + size),
                                     min(count, size))
    return sorted(chosen)


def same_place(mine, theirs):
    return mine[1:] == theirs[1:]


def doubled(mine, theirs):
    """libio/x.c and libio/libio/x.c"""
    return (mine.line == theirs.line and not mine.file.startswith("/")
            and theirs.file.endswith("/" + mine.file))


def judge(mine, dwarf, theirs, peer):
    """"equal", a class, or "different"."""
    if mine == theirs:
        return "equal"
    if dwarf == "?" and len(mine) == len(theirs) == 1:
        named = "?" in (mine[0].name, theirs[0].name) or \
            mine[0].name == theirs[0].name
        placed = mine[0].line == theirs[0].line
        if placed:
            return "no function" if named else "alias?"
        return "different"
    if len(mine) != len(theirs):
        return "different"
    found = "equal"
    for i, (m, t) in enumerate(zip(mine, theirs)):
        last = i == len(mine) - 1
        if not same_place(m, t):
            if doubled(m, t):
                found = "relative folder"
            elif t.file.endswith("<artificial>") and m.line == t.line:
                found = "artificial"
            else:
                return "different"
        if m.name == t.name:
            continue
        if last and t.name == dwarf:
            found = "symbol"
        elif (peer == "addr2line" and not m.name.startswith("_Z")
              and t.name in (dwarf, mine[-1].name)):
            found = "unnamed lambda"
        elif last:
            return "alias?"
        else:
            return "different"
    return found


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True,
                           text=True).stdout
    found = re.search(r"Build ID: (..)(\w+)", notes)
    file = found and pathlib.Path("/usr/lib/debug/.build-id", found[1],
                                  found[2] + ".debug")
    return [file] if file and file.exists() else []


def names_at(path):
    """All names of each function, by address."""
    table = collections.defaultdict(set)
    text = "".join(subprocess.run(["readelf", "-sW", file], text=True,
                                  capture_output=True).stdout
                   for file in (path, *debug_file(path)))
    for line in text.splitlines():
        word = line.split()
        if len(word) >= 8 and word[3] in ("FUNC", "IFUNC"):
            table[int(word[1], 16)].add(word[7].split("@")[0])
    return table


def without_files(chains):
    return [[f._replace(file="") for f in chain] for chain in chains]


def compare(path, peer_name, peer, least_inlined, files=True):
    addresses = addresses_of(path, ADDRESSES)
    mine, dwarf = ours(path, addresses)
    theirs = peer(path, addresses)
    if not files:
        mine, theirs = without_files(mine), without_files(theirs)
    assert len(mine) == len(theirs) == len(addresses)
    aliases = [names for names in names_at(path).values() if len(names) > 1]
    counts, inlined, bad = collections.Counter(), 0, []
    for a, m, d, t in zip(addresses, mine, dwarf, theirs):
        verdict = judge(m, d, t, peer_name)
        if verdict == "alias?":
            pair = {m[-1].name, t[-1].name}
            verdict = "symbol" if any(pair <= names for names in aliases) \
                else "different"
        counts[verdict] += 1
        inlined += len(m) > 1
        if verdict == "different":
            bad.append((hex(a), m, t))
    different = counts.pop("different", 0)
    equal = counts.pop("equal", 0)
    print(f"\n{path.name}: {equal + sum(counts.values())} of {len(addresses)} "
          f"chains as {peer_name} has them, {inlined} with inlined functions; "
          f"left out: {dict(counts) or 'none'}")
    assert not different, bad[:3]
    assert inlined >= least_inlined * len(addresses)
    assert equal >= len(addresses) / 4


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")


def compiled(folder, name, command, source):
    out = folder / name
    subprocess.run([*command, "-o", out, HERE / source], check=True,
                   timeout=300)
    return out


CPP = {
    "gcc-cpp-dwarf4": ["g++", "-O2", "-g", "-gdwarf-4"],
    "gcc-cpp-dwarf5": ["g++", "-O2", "-g", "-gdwarf-5", "-gz=zlib"],
    "gcc-cpp-lto": ["g++", "-O2", "-g", "-flto"],
    "clang-cpp-dwarf4": ["clang++", "-O2", "-g", "-gdwarf-4"],
    "clang-cpp-dwarf5": ["clang++", "-O2", "-g", "-gdwarf-5",
                         "-ffunction-sections", "-Wl,--gc-sections"],
}
C = {
    "gcc-c-dwarf2": ["gcc", "-O2", "-g", "-gdwarf-2", "-gstrict-dwarf"],
    "gcc-c-dwarf4": ["gcc", "-O2", "-g", "-gdwarf-4"],
    "gcc-c-dwarf5-64bit": ["gcc", "-O2", "-g", "-gdwarf64"],
    "clang-c-dwarf4": ["clang", "-O2", "-g", "-gdwarf-4"],
    "clang-c-dwarf5": ["clang", "-O2", "-g", "-gdwarf-5"],
    "clang-c-lines-only": ["clang", "-O2", "-gmlt"],
}


@pytest.mark.parametrize("name", [*CPP, *C])
def test_compiled_programs_have_the_chains_of_their_peers(name, tmp_path):
    command = {**CPP, **C}[name]
    need(command[0], "llvm-symbolizer", "addr2line")
    path = compiled(tmp_path, name, command,
                    "inline.cc" if name in CPP else "inline.c")
    least = 0.5 if name in CPP else 0.03
    compare(path, "llvm-symbolizer", llvm, least)
    # binutils 2.40 knows neither the names that clang keeps in
    # .debug_str_offsets nor inlined functions without a declaration nor all
    # lines of DWARF 2 and of 64-bit DWARF 5.
    if name not in ("clang-cpp-dwarf5", "gcc-c-dwarf2", "clang-c-dwarf5",
                    "clang-c-lines-only", "gcc-c-dwarf5-64bit"):
        compare(path, "addr2line", addr2line, least)


def test_an_installed_library_has_the_chains_of_its_peers():
    need("llvm-symbolizer", "addr2line")
    path = pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6").resolve()
    if not path.exists() or len(ours(path, addresses_of(path, 200))[0]) != 200:
        pytest.skip("no libc where Debian for x86-64 has it")
    if all(d == "?" for d in ours(path, addresses_of(path, 200))[1]):
        pytest.skip("libc6-dbg is not installed")
    compare(path, "llvm-symbolizer", llvm, 0.1)
    # Where a unit has several files of one name, addr2line takes another one
    # than llvm-symbolizer and we do.
    compare(path, "addr2line", addr2line, 0.1, files=False)


def test_what_dwz_moved_away_is_found_again(tmp_path):
    """References into another unit, and into a file that two share."""
    need("g++", "dwz")
    one = compiled(tmp_path, "one", CPP["gcc-cpp-dwarf4"], "inline.cc")
    two = tmp_path / "two"
    shutil.copy(one, two)
    addresses = addresses_of(one, 1000)
    before = ours(one, addresses)
    subprocess.run(["dwz", "-m", tmp_path / "shared", "-r", one, two],
                   check=True)
    sections = subprocess.run(["readelf", "-SW", one], capture_output=True,
                              text=True).stdout
    assert ".gnu_debugaltlink" in sections
    after = ours(one, addresses)
    same = sum(x == y for x, y in zip(zip(*before), zip(*after)))
    print(f"\n{same} of {len(addresses)} chains equal behind dwz -m")
    assert same == len(addresses)
    # Gone, or of another build: what it held is not made up.
    (tmp_path / "shared").unlink()
    lost, _ = ours(one, addresses)
    assert len(lost) == len(addresses)
    assert all(f.name == g.name or f.name == "?"
               for x, y in zip(lost, before[0]) for f, g in zip(x, y))


def test_a_separate_debug_file_answers_for_a_stripped_one(tmp_path):
    need("g++", "objcopy", "strip")
    full = compiled(tmp_path, "full", CPP["gcc-cpp-dwarf5"], "inline.cc")
    addresses = addresses_of(full, 1000)
    before = ours(full, addresses)
    subprocess.run(["objcopy", "--only-keep-debug", "full", "bare.debug"],
                   cwd=tmp_path, check=True)
    subprocess.run(["strip", "-o", "bare", "full"], cwd=tmp_path, check=True)
    bare = tmp_path / "bare"
    assert all(d == "?" for d in ours(bare, addresses)[1])
    subprocess.run(["objcopy", "--add-gnu-debuglink=bare.debug", "bare"],
                   cwd=tmp_path, check=True)
    assert ours(bare, addresses) == before


def test_functions_in_a_dwo_file_are_left_out(tmp_path):
    need("gcc")
    path = compiled(tmp_path, "split", ["gcc", "-O2", "-g", "-gsplit-dwarf"],
                    "inline.c")
    mine, _ = ours(path, addresses_of(path, 300))
    assert all(len(chain) == 1 for chain in mine)
    assert any(chain[0].name == "work" for chain in mine)

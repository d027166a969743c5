# SPDX-License-Identifier: MIT
"""What the command says to someone who types: help, mistakes, man pages."""

import re
import shutil
import subprocess

import pytest

from command import ROOT

COMMANDS = ["report", "export", "dump", "lint", "repair"]
MAN = ROOT / "docs/man"


def test_without_a_command_the_commands_are_listed_and_it_is_a_usage_error(tickmap):
    run = tickmap()
    assert run.code == 2 and run.out == ""
    assert tickmap("help").out == run.err == tickmap("--help").out
    assert tickmap("help").code == 0
    for command in COMMANDS:
        assert re.search(r"^  %s +\S" % command, run.err, re.M)


def test_what_is_not_built_is_not_listed_and_is_a_usage_error(tickmap):
    listed = re.findall(r"^  ([a-z]+) {2,}", tickmap("help").out, re.M)
    for command in ("view", "inject", "lint", "repair", "dump", "doctor"):
        if command not in listed:
            assert tickmap(command, "x").code == 2
    for form in ("speedscope", "firefox", "pprof", "chrome"):
        if form not in tickmap("export", "--help").out:
            run = tickmap("export", "--format", form, "-o", "x")
            assert run.code == 2 and form in run.err


def test_the_version_is_one_line(tickmap):
    run = tickmap("--version")
    assert run.code == 0 and re.fullmatch(r"tickmap \d+\.\d+\.\d+\n", run.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_the_same_both_ways_and_fits_a_terminal(tickmap, command):
    run = tickmap("help", command)
    assert run.code == 0 and run.err == ""
    assert run.out == tickmap(command, "--help").out == tickmap(command, "-h").out
    assert max(map(len, run.out.split("\n"))) <= 80


@pytest.mark.parametrize("typed, meant", [
    (["reprot"], "report"), (["exports"], "export"), (["repot"], "report"),
    (["help", "exprot"], "export"),
])
def test_a_mistyped_command_gets_the_nearest(tickmap, typed, meant):
    run = tickmap(*typed)
    assert run.code == 2 and "did you mean %s?" % meant in run.err


@pytest.mark.parametrize("typed, meant", [
    (["report", "--limti", "3"], "--limit"), (["report", "--jsn"], "--json"),
    (["report", "--children"], "--no-children"), (["report", "--codemaps=x"], "--code-maps"),
    (["export", "--fromat", "x"], "--format"), (["export", "--helpp"], "--help"),
])
def test_a_mistyped_option_gets_the_nearest(tickmap, typed, meant):
    run = tickmap(*typed)
    assert run.code == 2 and run.out == ""
    assert "did you mean %s?" % meant in run.err
    assert "try: tickmap %s --help" % typed[0] in run.err


@pytest.mark.parametrize("typed, said", [
    (["report", "--frobnicate"], "unknown option --frobnicate"),
    (["report", "-Z"], "unknown option -Z"),
    (["report", "-TZ"], "unknown option -Z"),
    (["report", "--by-"], "--by- could be more than one option"),
    (["report", "--limit"], "--limit needs a value"),
    (["report", "-n"], "--limit needs a value"),
    (["report", "--json=1"], "--json takes no value"),
    (["report", "--limit", "-3"], "--limit: '-3' is no number"),
    (["report", "--limit", "3x"], "--limit: '3x' is no number"),
    (["report", "--by", "cpu"], "process or thread, not 'cpu'"),
    (["report", "--pid", "1,x"], "--pid: '1,x' is no number"),
    (["report", "--tid", ""], "--tid: '' is no number"),
    (["report", "--time", "5"], "--time: '5' is no range"),
    (["report", "--time", "a,b"], "no range"),
    (["report", "--time", "1,2,3"], "no range"),
    (["report", "--time", "10%-120%"], "no range"),
    (["report", "--time", "99999999999999999999,"], "no range"),
    (["report", "--time", ".,"], "no range"),
    (["report", "--time", "3,2"], "ends before it starts"),
    (["report", "--code-maps", "/nonexistent"], "cannot read folder '/nonexistent'"),
    (["report", "a", "b"], "one FILE at a time"),
    (["export"], "--format is missing: folded, html or perf-script"),
    (["export", "--format", "html"], "-o is missing"),
    (["export", "--format", "fodled", "-o", "x"], "did you mean folded?"),
])
def test_mistakes_are_named(tickmap, typed, said):
    run = tickmap(*typed)
    assert said in run.err and run.out == ""
    assert run.code == 2


@pytest.mark.parametrize("command", [["report"], ["export", "--format", "folded"]])
def test_without_a_recording_it_says_what_to_type(tickmap, command):
    run = tickmap(*command)
    assert run.code == 3 and run.out == ""
    first, second = run.err.splitlines()
    assert first.startswith("tickmap: tickmap.data: ")
    assert second == "record first: tickmap record -- CMD"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_man_page_has_the_options_that_help_has(tickmap, command):
    listed = set(re.findall(r"--([a-z][a-z-]+)", tickmap(command, "--help").out
                            .split("options:")[1].split("\n\n")[0]))
    page = (MAN / ("tickmap-%s.1" % command)).read_text()
    body = page.split("The options are as follows")[1]
    items = [line for line in body.split("\n") if line.startswith(".It Fl")]
    assert {m for line in items for m in re.findall(r"(?:Fl|,) -([a-z][a-z-]+)", line)} == listed
    letters = set(re.findall(r"^  -(\w), --", tickmap(command, "--help").out, re.M))
    assert {m for line in items for m in re.findall(r"Fl (\w) ", line)} == letters


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("page", ["tickmap.1"] + ["tickmap-%s.1" % c for c in COMMANDS])
def test_man_pages_are_well_formed(page):
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", MAN / page],
                          stdout=subprocess.PIPE)
    assert lint.stdout.decode() == "" and lint.returncode == 0

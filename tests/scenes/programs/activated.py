# SPDX-License-Identifier: MIT
"""Switches tickmap on itself, long before anybody records it. Prints its pid
and that of a forked child, then waits for a line; functions of all kinds have
been entered by then.

    activated.py [TIMES]    TIMES: deactivated and activated again so often
"""
import os
import sys

import tickmap
import truthful

tickmap.activate()

UNIT = 0.003


@truthful.marker
def entered(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


@truthful.marker
def child_only(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x ^= i
    return x


class Loop:
    def __init__(self, functions):
        self.functions = functions

    def turn(self, count):
        for _ in range(count):
            for function in self.functions:
                function(1)

    def run(self, count):
        """Entered before, and on the stack while it is recorded."""
        self.turn(1)
        wait()
        truthful.begin(unseen=1)
        self.turn(count)
        truthful.end()


def wait():
    assert os.read(0, 1)


def main(times):
    entered(0)
    Loop([entered]).turn(1)
    child = os.fork()
    if child == 0:
        Loop([entered, child_only]).run(100)
        os._exit(0)
    for _ in range(times):
        tickmap.deactivate()
        tickmap.activate()
    print(os.getpid(), child, flush=True)
    Loop([entered]).run(200)
    os.waitpid(child, 0)


# The module's own frame began before it was switched on.
main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)

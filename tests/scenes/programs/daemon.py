# SPDX-License-Identifier: MIT
"""A daemon in the old way: fork, setsid, fork, chdir, streams to /dev/null.

    daemon.py wait       the first process stays until the daemon is done
    daemon.py leave FIFO the first process ends at once; the daemon works once
                         the FIFO is written to
"""
import os
import sys

import truthful

truthful.begin()

UNIT = 0.003


@truthful.marker
def before(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


@truthful.marker
def inside(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x ^= i
    return x


def daemonise():
    """True in the daemon, False in the first process."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    return True


class Daemon:
    def run(self, rounds):
        truthful.begin()
        for _ in range(rounds):
            before(1)
            self.work()
        truthful.end()

    def work(self):
        return inside(2)


def main(how):
    before(0)
    done, writer = os.pipe()
    if daemonise():
        os.close(done)
        if how == "leave":
            with open(sys.argv[2]) as go:
                go.read()
        Daemon().run(100)
        os._exit(0)
    os.close(writer)
    if how == "wait":
        os.read(done, 1)


main(sys.argv[1])
truthful.end()

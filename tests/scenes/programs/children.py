# SPDX-License-Identifier: MIT
"""multiprocessing with 8 children at once, by each start method."""
import multiprocessing
import sys

import truthful

UNIT = 0.002


@truthful.marker
def square(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


class Job:
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self):
        return self.loop()

    def loop(self):
        end = truthful.work(self.seconds)
        while truthful.cpu() < end:
            self.step(3)

    def step(self, depth):
        return square(depth) if depth == 0 else self.step(depth - 1)


def child(seconds, ready):
    truthful.begin()
    ready.put(len(list(map(square, range(2)))))
    Job(seconds)()
    truthful.end()


def in_pool(n):
    return square(n) >= n


def main(method, seconds):
    truthful.begin()
    context = multiprocessing.get_context(method)
    ready = context.Queue()
    children = [context.Process(target=child, args=(seconds, ready))
                for _ in range(8)]
    for process in children:
        process.start()
    for _ in children:
        ready.get()
    Job(seconds)()
    for process in children:
        process.join()
        assert process.exitcode == 0, process.exitcode
    truthful.end()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.15)

"""The smallest program there is: foo calls bar calls baz, which works."""
import os
import sys
import time


def baz(seconds):
    end = time.process_time() + seconds
    x = 0
    while time.process_time() < end:
        for i in range(1000):
            x += i
    return x


def bar(seconds):
    return baz(seconds)


def foo(seconds):
    return bar(seconds)


if __name__ == "__main__":
    foo(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
    print(os.getpid())

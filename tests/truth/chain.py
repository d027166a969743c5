"""The smallest program there is: foo calls bar calls baz, which works."""
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


foo(2.0)

# SPDX-License-Identifier: MIT
"""A kernel as notebooks have it: cells are compiled under names of their own
and run in a thread with an asyncio loop, awaiting what they await; functions
are defined again and again; cells fail."""
import ast
import asyncio
import inspect
import queue
import sys
import threading
import traceback

import truthful

truthful.begin()

CELLS = ["""
import truthful
UNIT = 0.004

@truthful.marker
def work(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x
""", """
total = sum(work(n) for n in range(8))
""", """
class Model:
    def __init__(self):
        self.weights = [work(n) for n in range(3)]
    def fit(self):
        return [self.step() for _ in range(4)]
    def step(self):
        return work(1)
Model().fit()
""", """
async def load(n):
    await asyncio.sleep(0)
    return work(n)
import asyncio
results = await asyncio.gather(*(load(n) for n in range(6)))
""", """
# The same name again, as when a cell is edited.
@truthful.marker
def work(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x ^= i
    return x
Model().fit()
""", """
import functools
@functools.lru_cache(None)
def cached(n):
    return work(n)
list(map(cached, range(5)))
Model().nothing
""", """
def outer():
    def inner():
        yield from (work(n) for n in range(5))
    return list(inner())
outer()
"""]


class Shell:
    def __init__(self):
        self.namespace = {"__name__": "__main__"}
        self.count = self.errors = 0

    async def run_cell(self, text):
        self.count += 1
        name = "<ipython-input-%d>" % self.count
        tree = ast.parse(text, name)
        for node in tree.body:
            code = compile(ast.Module([node], []), name, "exec",
                           flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            try:
                await self.run_code(code)
            except Exception:
                self.errors += 1
                traceback.format_exc()
                break

    async def run_code(self, code):
        if inspect.iscoroutinefunction(code) or \
                code.co_flags & inspect.CO_COROUTINE:
            await eval(code, self.namespace)
        else:
            exec(code, self.namespace)


class Kernel(threading.Thread):
    def __init__(self):
        super().__init__()
        self.requests = queue.Queue()
        self.shell = Shell()

    def run(self):
        asyncio.run(self.loop())

    async def loop(self):
        loop = asyncio.get_running_loop()
        while True:
            text = await loop.run_in_executor(None, self.requests.get)
            if text is None:
                return
            await self.shell.run_cell(text)


kernel = Kernel()
kernel.start()
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 6):
    for cell in CELLS:
        kernel.requests.put(cell)
kernel.requests.put(None)
kernel.join()
truthful.end()
print(kernel.shell.errors)

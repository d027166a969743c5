# SPDX-License-Identifier: MIT
"""asyncio: tasks, gather, queues, streams over 127.0.0.1, asynchronous
generators, context managers and comprehensions, futures, executors."""
import asyncio
import concurrent.futures
import contextlib
import sys

import truthful

truthful.begin()

UNIT = 0.002


@truthful.marker
def plain(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


@truthful.marker
async def leaf(n):
    """Suspended half-way: what follows is a resumed coroutine."""
    truthful.mark()
    end = truthful.work(UNIT / 2)
    while truthful.cpu() < end:
        n = sum(i & 1 for i in range(100))
    await asyncio.sleep(0)
    truthful.mark()
    end = truthful.work(UNIT / 2)
    while truthful.cpu() < end:
        n = sum(i & 1 for i in range(100))
    return n


async def deep(levels):
    if levels == 0:
        return await leaf(1)
    return await deep(levels - 1) + 1


@truthful.marker
async def numbers(count):
    for i in range(count):
        truthful.mark()
        end = truthful.work(UNIT / 2)
        while truthful.cpu() < end:
            for j in range(200):
                i ^= j
        yield i
        await asyncio.sleep(0)


async def consume(count):
    return [n async for n in numbers(count) if n >= 0]


@contextlib.asynccontextmanager
async def resource():
    await leaf(2)
    try:
        yield plain(1)
    finally:
        plain(2)


async def managed():
    async with resource() as value:
        plain(value)


class Awaitable:
    def __await__(self):
        yield from leaf(3).__await__()
        return plain(3)


async def custom():
    return await Awaitable()


async def failing():
    try:
        await deep(2)
        raise LookupError("on purpose")
    except LookupError:
        return plain(4)


async def answer(reader, writer):
    line = await reader.readline()
    writer.write(b"%d\n" % plain(int(line)))
    await writer.drain()
    writer.close()


async def ask(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d\n" % n)
    await writer.drain()
    line = await reader.readline()
    plain(int(line))
    writer.close()


async def producer(queue, count):
    for i in range(count):
        await queue.put(plain(i))
    await queue.put(None)


async def consumer(queue):
    while await queue.get() is not None:
        await leaf(0)


def callback(loop, future):
    future.set_result(plain(5))


async def called_back():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(callback, loop, future)
    loop.call_later(0.001, plain, 6)
    await future
    await asyncio.sleep(0.002)


async def main(rounds):
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            queue = asyncio.Queue(2)
            await asyncio.gather(
                deep(1), deep(5), deep(30), consume(4), managed(), custom(),
                failing(), ask(port, 3), ask(port, 4), called_back(),
                producer(queue, 3), consumer(queue),
                asyncio.wait_for(deep(3), 60),
                loop.run_in_executor(pool, plain, 7),
                asyncio.shield(asyncio.ensure_future(deep(2))))
    server.close()
    await server.wait_closed()


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
truthful.end()

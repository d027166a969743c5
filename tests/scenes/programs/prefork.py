# SPDX-License-Identifier: MIT
"""A server that forks its workers in advance, as gunicorn does: the master
loads the application and uses it, workers accept on its socket, end after so
many requests and are replaced; SIGTERM ends them all."""
import os
import signal
import socket
import sys

import truthful

truthful.begin()

UNIT = 0.003
WORKERS = 3
REQUESTS_A_WORKER = 15


@truthful.marker
def warmed(n):
    """Entered in the master already: workers inherit it."""
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


@truthful.marker
def worker_only(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x ^= i
    return x


class Application:
    def __init__(self):
        self.count = warmed(0)

    def __call__(self, path):
        if path == "/warm":
            return self.respond(warmed)
        return self.respond(worker_only)

    def respond(self, handler):
        return b"%d" % handler(1)


class Stop(Exception):
    pass


class Worker:
    def __init__(self, application, listener):
        self.application, self.listener = application, listener
        self.alive = True

    def stop(self, *_):
        raise Stop

    def run(self):
        truthful.begin()
        signal.signal(signal.SIGTERM, self.stop)
        try:
            for _ in range(REQUESTS_A_WORKER):
                self.serve()
        except Stop:
            pass
        truthful.end()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            path = connection.recv(100).decode()
            connection.sendall(self.application(path))


class Master:
    def __init__(self, application, listener):
        self.application, self.listener = application, listener
        self.workers = set()
        self.started = 0
        self.stopping = False

    def spawn(self):
        self.started += 1
        pid = os.fork()
        if pid == 0:
            try:
                Worker(self.application, self.listener).run()
            finally:
                os._exit(0)
        self.workers.add(pid)

    def stop(self, *_):
        self.stopping = True
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        for _ in range(WORKERS):
            self.spawn()
        while self.workers:
            pid, _ = os.wait()
            if pid not in self.workers:
                continue  # the client: SIGTERM is on its way
            self.workers.discard(pid)
            if not self.stopping:
                warmed(1)
                self.spawn()


def client(address, master, count):
    for i in range(count):
        with socket.create_connection(address) as connection:
            connection.sendall(b"/warm" if i & 1 else b"/new")
            assert connection.recv(100)
    os.kill(master, signal.SIGTERM)
    os._exit(0)


def main(count):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    application = Application()
    application("/warm")
    if os.fork() == 0:
        client(listener.getsockname(), os.getppid(), count)
    master = Master(application, listener)
    master.run()
    return master.started


started = main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
truthful.end()
print(started)

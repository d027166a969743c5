# SPDX-License-Identifier: MIT
"""The programs that the bench of the Python extension times.

    python workloads.py SCALE [NAME]...

Prints, for each, its name and its least CPU seconds of three runs after one
to warm up; SCALE stretches them all. Each is of the kind that CPython is
itself judged by, and checks its own result. Runs on CPython 3.9 and newer.
"""

import asyncio
import copy
import io
import json
import logging
import math
import pickle
import re
import string
import sys
import time

WORKLOADS = {}


def workload(count):
    def enter(function):
        WORKLOADS[function.__name__] = function, count
        return function

    return enter


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@workload(12)
def pure_calls(count):
    for _ in range(count):
        assert fib(22) == 17711


# Tasks that hand packets to each other under a scheduler.
class Packet:
    def __init__(self, kind, data):
        self.kind = kind
        self.data = data


class Task:
    def __init__(self, scheduler, number, priority):
        self.scheduler = scheduler
        self.number = number
        self.priority = priority
        self.queue = []
        self.holding = False
        scheduler.add(self)

    def receive(self, packet):
        self.queue.append(packet)
        return self if self.runnable() else None

    def runnable(self):
        return bool(self.queue) and not self.holding

    def step(self):
        return self.handle(self.queue.pop(0)) if self.queue else None


class Device(Task):
    handled = 0

    def handle(self, packet):
        self.handled += 1
        packet.data.append(self.number)
        self.scheduler.send((self.number + 1) % self.scheduler.size, packet)


class Worker(Task):
    total = 0

    def handle(self, packet):
        self.total += sum(packet.data[-3:])
        del packet.data[:-2]
        self.scheduler.send(self.choose(packet), Packet(packet.kind, packet.data))

    def choose(self, packet):
        return (self.number + packet.kind) % self.scheduler.size


class Scheduler:
    def __init__(self):
        self.tasks = []
        self.sent = 0

    @property
    def size(self):
        return len(self.tasks)

    def add(self, task):
        self.tasks.append(task)

    def send(self, number, packet):
        self.sent += 1
        self.tasks[number].receive(packet)

    def run(self, most):
        while self.sent < most:
            for task in self.tasks:
                if task.runnable():
                    task.step()
        return self.sent


@workload(6)
def objects(count):
    for _ in range(count):
        scheduler = Scheduler()
        for i in range(6):
            (Device if i % 2 else Worker)(scheduler, i, i * 10)
        for i in range(12):
            scheduler.send(i % 6, Packet(i % 5, [i]))
        assert scheduler.run(4000) >= 4000


# Vectors with operators: many small objects made by __init__.
class Vector:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x = x
        self.y = y
        self.z = z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def normal(self):
        return self * (1.0 / math.sqrt(self.dot(self)))


class Sphere:
    def __init__(self, centre, radius):
        self.centre = centre
        self.radius = radius

    def hit(self, origin, direction):
        between = self.centre - origin
        along = between.dot(direction)
        left = self.radius * self.radius - (between.dot(between) - along * along)
        return along - math.sqrt(left) if left > 0 else None


@workload(10)
def raytrace(count):
    spheres = [Sphere(Vector(i - 2.0, (i % 3) - 1.0, 6.0 + i), 1.0) for i in range(5)]
    eye = Vector(0.0, 0.0, -5.0)
    for _ in range(count):
        hits = 0
        for y in range(24):
            for x in range(24):
                direction = Vector((x - 12) / 12.0, (y - 12) / 12.0, 4.0).normal()
                far = None
                for sphere in spheres:
                    at = sphere.hit(eye, direction)
                    if at is not None and (far is None or at < far):
                        far = at
                if far is not None:
                    point = eye + direction * far
                    hits += point.z > 0
        assert hits > 50


# Generators within generators, as in a walk over a tree.
class Node:
    def __init__(self, left, value, right):
        self.left, self.value, self.right = left, value, right

    def __iter__(self):
        if self.left:
            yield from self.left
        yield self.value
        if self.right:
            yield from self.right


def tree_of(low, high):
    if low >= high:
        return None
    middle = (low + high) // 2
    return Node(tree_of(low, middle), middle, tree_of(middle + 1, high))


def pipeline(numbers):
    squares = (n * n for n in numbers)
    odd = (n for n in squares if n & 1)
    return sum(odd)


@workload(120)
def generators(count):
    tree = tree_of(0, 500)
    for _ in range(count):
        assert sum(tree) == 124750
        assert pipeline(range(1000)) == 166666500


# A tree of tasks that wait for each other.
async def leaf(cache, key):
    await asyncio.sleep(0)
    if key in cache:
        return cache[key]
    cache[key] = key * 2
    return cache[key]


async def branch(cache, depth, key):
    if depth == 0:
        return await leaf(cache, key % 20)
    return sum(await asyncio.gather(*[branch(cache, depth - 1, key * 4 + i) for i in range(4)]))


@workload(7)
def async_tree(count):
    for _ in range(count):
        assert asyncio.run(branch({}, 4, 1)) > 0


@workload(5)
def nbody(count):
    bodies = [
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 39.478],
        [[4.841, -1.160, -0.104], [0.606, 2.812, -0.025], 0.0377],
        [[8.343, 4.125, -0.403], [-1.011, 1.826, 0.008], 0.0113],
        [[12.894, -15.111, -0.223], [1.083, 0.869, -0.011], 0.0017],
    ]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1 :]]
    for _ in range(count * 2000):
        for (a, va, ma), (b, vb, mb) in pairs:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            magnitude = 0.001 * (dx * dx + dy * dy + dz * dz) ** -1.5
            fa, fb = mb * magnitude, ma * magnitude
            va[0] -= dx * fa
            va[1] -= dy * fa
            va[2] -= dz * fa
            vb[0] += dx * fb
            vb[1] += dy * fb
            vb[2] += dz * fb
        for position, velocity, _mass in bodies:
            for axis in range(3):
                position[axis] += 0.001 * velocity[axis]
    assert all(map(math.isfinite, bodies[0][0]))


def element(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(vector, part):
    return [sum(part(i, j) * v for j, v in enumerate(vector)) for i in range(len(vector))]


@workload(3)
def spectral_norm(count):
    for _ in range(count):
        u = [1.0] * 60
        for _ in range(3):
            v = times(times(u, element), lambda i, j: element(j, i))
            u = times(times(v, element), lambda i, j: element(j, i))
        assert sum(a * b for a, b in zip(u, v)) > 0


TEXT = "2026-11-30 20:51:18 host app[123]: GET /a/b?c=d HTTP/1.1 200 1532 'agent/1.0 (x; y)' 0.0123s\n" * 40


@workload(15)
def regex(count):
    for _ in range(count):
        re.purge()
        line = re.compile(r"^(\S+) (\S+) (\w+) (\w+)\[(\d+)\]: ([A-Z]+) (\S+) \S+ (\d{3}) (\d+)", re.M)
        word = re.compile(r"(?P<a>[a-z]+)|(?P<n>\d+(?:\.\d+)?)|(?:[^\w\s]|_)+")
        assert len(line.findall(TEXT)) == 40
        assert len(word.sub(lambda m: m.group()[::-1], TEXT)) == len(TEXT)
        assert sum(1 for m in re.finditer(r"\b(\w)(\w*)\1?\b", TEXT)) > 100


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def plain(self):
        return {"x": self.x, "y": self.y, "__point__": True}


def unplain(d):
    return Point(d["x"], d["y"]) if "__point__" in d else d


@workload(16)
def json_text(count):
    data = {"items": [{"id": i, "name": "n%d" % i, "at": Point(i, i * 0.5), "tags": ["a", "b"]} for i in range(100)]}
    for _ in range(count):
        text = json.dumps(data, default=Point.plain)
        back = json.loads(text, object_hook=unplain)
        assert back["items"][7]["at"].y == 3.5
        assert len("".join(json.JSONEncoder(default=Point.plain, indent=1).iterencode(data))) > len(text)


@workload(20)
def pickle_python(count):
    data = [{"id": i, "name": "n%d" % (i % 30), "pair": (i, i * 0.25), "bytes": b"x" * 20} for i in range(60)]
    for _ in range(count):
        out = io.BytesIO()
        pickle._Pickler(out, 4).dump(data)
        assert pickle._Unpickler(io.BytesIO(out.getvalue())).load() == data


@workload(20)
def deep_copy(count):
    data = {"rows": [{"id": i, "list": [1, [2, 3]], "point": Point(i, -i)} for i in range(60)], "t": (1, (2, [3]))}
    for _ in range(count * 2):
        other = copy.deepcopy(data)
        assert other["rows"][3]["point"].y == -3 and other["rows"][3]["point"] is not data["rows"][3]["point"]


@workload(5)
def logs(count):
    out = io.StringIO()
    logger = logging.Logger("bench")
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    for i in range(count * 500):
        logger.info("request %d from %s took %.2f", i, "host", i * 0.5)
        logger.debug("never seen %d", i)
    assert out.getvalue().count("\n") == count * 500


# What a template engine makes of a page: closures that append to a list.
def compile_template(source):
    parts = []
    for literal, name in re.findall(r"([^{]*)(?:\{\{(\w+)\}\})?", source):
        if literal:
            parts.append(lambda out, values, literal=literal: out.append(literal))
        if name:
            parts.append(lambda out, values, name=name: out.append(escape(str(values[name]))))

    def render(values):
        out = []
        for part in parts:
            part(out, values)
        return "".join(out)

    return render


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


@workload(40)
def templates(count):
    row = compile_template("<tr><td>{{id}}</td><td>{{name}}</td><td class='x'>{{when}}</td></tr>\n")
    page = string.Template("<html>$title<table>$rows</table>${footer}</html>")
    for _ in range(count):
        rows = "".join(row({"id": i, "name": "<n%d>" % i, "when": "%02d:%02d" % (i % 24, i % 60)}) for i in range(300))
        assert page.substitute(title="t", rows=rows, footer="f").count("&lt;n") == 300


def main():
    scale = float(sys.argv[1])
    for name in sys.argv[2:] or WORKLOADS:
        function, count = WORKLOADS[name]
        count = max(1, round(count * scale))
        function(max(1, count // 4))
        best = math.inf
        for _ in range(3):
            begun = time.process_time()
            function(count)
            best = min(best, time.process_time() - begun)
        print("%s %.6f" % (name, best))


if __name__ == "__main__":
    main()

"""A small service that answers pretend requests, to be profiled:

    tickmap record -- python3 examples/app.py
    tickmap report

Half of its time goes to zlib's native code, the rest to Python.
"""
import json
import sys
import time
import zlib


def parse(line):
    return json.loads(line)


def words_of(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def compress(counts):
    body = json.dumps(counts, sort_keys=True).encode() * 20
    return zlib.compress(body, 6)


def handle(line):
    request = parse(line)
    counts = words_of(request["text"])
    return compress(counts)


def requests(seconds):
    text = " ".join("word%d" % (i * i % 997) for i in range(3000))
    line = json.dumps({"text": text})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield line


def main(seconds):
    size = count = 0
    for line in requests(seconds):
        size += len(handle(line))
        count += 1
    print("%d requests, %d bytes" % (count, size))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)

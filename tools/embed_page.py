# SPDX-License-Identifier: MIT
"""Make src/output/page.h: the flame graph page of viewer/ as two C arrays, the
profile's JSON goes between them."""

import sys


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 20]) for i in range(0, len(data), 20)]
    return "static const unsigned char %s[] = {\n\t%s\n};\n" % (name, ",\n\t".join(lines))


def read(path):
    with open(path) as f:
        return f.read()


def main():
    html, css, *scripts, out = sys.argv[1:]
    page = read(html)
    script = "'use strict';\n(() => {\n%s})();\n" % "\n".join(map(read, scripts))
    for mark, text in (("@CSS@", read(css)), ("@JS@", script)):
        assert page.count(mark) == 1 and "</script" not in text and "</style" not in text
        page = page.replace(mark, text)
    head, tail = page.split("@DATA@")
    with open(out, "w") as f:
        f.write("/* Made by tools/embed_page.py from viewer/. */\n")
        f.write(array("tickmap_page_head", head))
        f.write(array("tickmap_page_tail", tail))


main()

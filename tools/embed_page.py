# SPDX-License-Identifier: MIT
"""Make src/output/page.h: the flame graph page of viewer/ as two C arrays, the
profile's JSON goes between them."""

import sys


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 20]) for i in range(0, len(data), 20)]
    return "static const unsigned char %s[] = {\n\t%s\n};\n" % (name, ",\n\t".join(lines))


def main():
    html, css, js, out = sys.argv[1:]
    with open(html) as f:
        page = f.read()
    for mark, path in (("@CSS@", css), ("@JS@", js)):
        with open(path) as f:
            text = f.read()
        assert page.count(mark) == 1 and "</script" not in text and "</style" not in text
        page = page.replace(mark, text)
    head, tail = page.split("@DATA@")
    with open(out, "w") as f:
        f.write("/* Made by tools/embed_page.py from viewer/. */\n")
        f.write(array("tickmap_page_head", head))
        f.write(array("tickmap_page_tail", tail))


main()

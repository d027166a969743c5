# SPDX-License-Identifier: MIT
"""The flame graph page in a real browser: what it draws, by its pixels."""

import json
import re

import pytest

import browser
from description import JIT, KERNEL, NOT_IN_MAP, UNRESOLVED, Profile, app

ROW = 19

pytestmark = pytest.mark.skipif(not browser.executable(), reason="no Chromium is installed")


def known():
    """1,000 samples: f 600 (of which g 200), jit 300 under main, kernel 100; the
    same half again in another thread."""
    p = Profile(command="known", event="cpu-clock", frequency=1000, lost=7,
                cpu_seconds="1.5", end_ns=8000000000)
    one, two = p.thread(1, 1, "one"), p.thread(1, 2, "two")
    ev = p.frame("_PyEval_EvalFrameDefault", dso="python3", interpreter=True)
    main = p.frame("main", dso="app")
    f, g = p.python("f:/srv/a.py"), p.python("g:/srv/b.py")
    jit = p.frame("kernel_17", JIT, "[jit]")
    sys = p.frame("vfs_read", KERNEL, "[kernel]")
    hole = p.frame("[jit+0x7f00]", UNRESOLVED, "[anon]", reason=NOT_IN_MAP)
    p.sample(one, 400, main, f, ev)
    p.sample(one, 200, main, f, ev, g, ev)
    p.sample(one, 300, main, jit)
    p.sample(one, 50, main, sys)
    p.sample(one, 50, main, hole)
    p.sample(two, 500, main, jit, truncated=1)
    return p


@pytest.fixture(scope="module")
def chromium():
    b = browser.Browser()
    yield b
    b.close()


@pytest.fixture
def page(chromium, tmp_path):
    """Opens a profile's page at an address' hash; the page must stay quiet."""
    path = tmp_path / "page.html"

    def visit(profile, fragment=""):
        path.write_bytes(profile.write("html"))
        chromium.open("file://%s%s" % (path, fragment))
        return chromium

    yield visit
    assert chromium.complaints() == []


# Runs of one colour in the row `depth` below the root, as [x, width, [r, g, b]];
# measured at the boxes' upper edge, above their text.
RUNS = """((depth, flame) => {
  const canvas = document.getElementById('canvas');
  const ratio = canvas.width / canvas.clientWidth;
  const y = flame ? canvas.clientHeight - (depth + 1) * %d - 1 : depth * %d + 1;
  /* A copy: the page's own canvas is not made for being read. */
  const copy = new OffscreenCanvas(canvas.width, 1);
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(canvas, 0, -Math.round(y * ratio));
  const data = pen.getImageData(0, 0, canvas.width, 1).data;
  const runs = [];
  for (let x = 0; x < canvas.width; x++) {
    const c = [...data.slice(4 * x, 4 * x + 4)];
    const last = runs[runs.length - 1];
    if (last && last[2].every((v, i) => v === c[i]))
      last[1]++;
    else
      runs.push([x, 1, c]);
  }
  return runs.filter(r => r[2][3] > 0 && r[1] > 2).map(r => [r[0] / ratio, r[1] / ratio, r[2]]);
})""" % (ROW, ROW)


def runs(page, depth, flame=False):
    return page.js("%s(%d, %s)" % (RUNS, depth, json.dumps(flame)))


def width(page):
    return page.js("document.getElementById('graph').clientWidth")


def colour_of(page, name):
    value = page.js("getComputedStyle(document.documentElement).getPropertyValue('--%s')" % name)
    value = value.strip().lstrip("#")
    return [int(value[i:i + 2], 16) for i in (0, 2, 4)]


def kind_of(page, rgba):
    """The kind whose colour is nearest: each has three shades."""
    kinds = ["python", "jit", "native", "kernel", "unresolved"]
    def distance(kind):
        c = colour_of(page, kind)
        return min(sum((a - b) ** 2 for a, b in zip(
            [v + (255 - v) * s if s > 0 else v * (1 + s) for v in c], rgba))
            for s in (-0.07, 0, 0.07))
    best = min(kinds, key=distance)
    assert distance(best) < 30, (best, rgba)
    return best


def middle_of(page, depth, share):
    """Where in the window a point of the graph is."""
    x, y = page.js("(() => { const r = document.getElementById('graph').getBoundingClientRect();"
                   "return [r.x + 1, r.y + 1]; })()")
    return x + width(page) * share, y + depth * ROW + ROW / 2


def rows_of(page):
    return {r[-1].split(" ")[0]: r[:-1] for r in page.js(
        "[...document.querySelectorAll('#rows tr')].map(tr => "
        "[...tr.children].map(td => td.textContent))")}


def test_frames_are_as_wide_as_their_share_and_coloured_by_kind(page):
    p = page(known())
    w = width(p)
    # Over both threads: jit 800, f 600, kernel and hole 50 each, of 1,500.
    got = runs(p, 2)
    want = [("jit", 800), ("python", 600)]
    at = 0
    for (kind, n), (x, run, rgba) in zip(want, got):
        assert abs(x - at) <= 1 and abs(run + 1 - w * n / 1500) <= 2
        assert kind_of(p, rgba) == kind
        at += w * n / 1500
    (x, run, rgba), = [r for r in got if kind_or_none(p, r[2]) == "kernel"]
    assert abs(run + 1 - w * 50 / 1500) <= 2
    (x, run, rgba), = runs(p, 1)
    assert kind_of(p, rgba) == "native" and abs(run + 1 - w) <= 2
    (x, run, rgba), = runs(p, 3)
    assert kind_of(p, rgba) == "python" and abs(run + 1 - w * 200 / 1500) <= 2
    assert runs(p, 4) == [], "the interpreter is not shown"


def kind_or_none(page, rgba):
    try:
        return kind_of(page, rgba)
    except AssertionError:
        return None


def test_unresolved_frames_are_hatched(page):
    p = page(known())
    w = width(p)
    kernel_or_hole = [r for r in p.js("%s(2, false)" % RUNS.replace("r[1] > 2", "r[1] > 0"))
                      if r[0] > w * 1400 / 1500]
    assert len(kernel_or_hole) > 4, "stripes are many short runs"


def test_interpreter_frames_come_on_demand(page):
    p = page(known())
    p.click_on("#interpreter")
    (x, run, rgba), = runs(p, 3)
    assert kind_of(p, rgba) == "native" and abs(run + 1 - width(p) * 600 / 1500) <= 2
    assert "interpreter=1" in p.js("location.hash")
    assert "_PyEval_EvalFrameDefault" in rows_of(p)


def test_the_header_says_how_good_the_data_is(page):
    p = page(known())
    facts = p.text("#facts")
    assert "1,500 of cpu-clock at 1,000 Hz" in facts
    assert "on CPU 1.50 of 3.00 s" in facts
    assert re.search(r"lost\s+7", facts) and "500 (33.3%)" in facts
    assert p.js("document.title") == "known \u2013 tickmap"
    legend = p.text("#legend")
    for word in ("Python", "JIT", "native", "kernel", "unresolved"):
        assert word in legend


def test_a_click_zooms_in_and_crumbs_and_escape_lead_out(page):
    p = page(known())
    p.click(*middle_of(p, 2, 1000 / 1500))
    w = width(p)
    assert [kind_of(p, r[2]) for r in runs(p, 3)] == ["python"]
    (x, run, _), = runs(p, 3)
    assert abs(run + 1 - w * 200 / 600) <= 2
    assert p.text("#crumbs").startswith("all") and "40.0% of all" in p.text("#crumbs")
    assert rows_of(p)["f"] == ["66.7%", "66.7%", "100.0%"]
    assert "zoom=" in p.js("location.hash")
    p.key("Escape")
    p.key("Escape")
    assert "zoom=" not in p.js("location.hash")
    assert abs(runs(p, 3)[0][1] + 1 - w * 200 / 1500) <= 2
    p.click(*middle_of(p, 2, 1000 / 1500))
    p.click_on("#crumbs button")
    assert "zoom=" not in p.js("location.hash")


def test_search_says_how_much_matches_and_dims_the_rest(page):
    p = page(known())
    p.key("/")
    p.type("kernel_\\d+|^vfs")
    assert p.text("#matched") == "56.7% matched (850 samples)"
    jit, f = runs(p, 2)[:2]
    assert kind_or_none(p, jit[2]) == "jit" and jit[2][3] == 255
    assert f[2][3] < 100
    assert set(rows_of(p)) == {"kernel_17", "vfs_read"}
    p.key("Escape")
    assert p.text("#matched") == "" and runs(p, 2)[1][2][3] == 255
    # What holds other matches counts once.
    p.key("/")
    p.type("a\\.py|b\\.py")
    assert p.text("#matched") == "40.0% matched (600 samples)"


def test_a_search_that_is_no_expression_is_taken_literally(page):
    p = page(known(), "#search=%5Bjit%2B")
    assert p.text("#matched") == "3.3% matched (50 samples)"
    assert p.js("document.getElementById('search').className") == "bad"


def test_a_view_can_be_passed_on(page):
    p = page(known())
    p.click(*middle_of(p, 2, 1000 / 1500))
    p.click_on("#flame")
    p.key("/")
    p.type("g:")
    hash_, crumbs, matched = p.js("location.hash"), p.text("#crumbs"), p.text("#matched")
    assert matched == "33.3% matched (200 samples)"
    p = page(known(), hash_)
    assert (p.text("#crumbs"), p.text("#matched")) == (crumbs, matched)
    assert p.js("document.getElementById('flame').getAttribute('aria-pressed')") == "true"
    (x, run, _), = [r for r in runs(p, 3, True) if r[2][3] == 255]
    assert abs(run + 1 - width(p) / 3) <= 2


def test_a_thread_can_be_chosen(page):
    p = page(known(), "#thread=t1")
    (x, run, rgba), = runs(p, 2)
    assert kind_of(p, rgba) == "jit" and abs(run + 1 - width(p)) <= 2
    assert p.text("#thread option:checked").strip() == "thread 2 two: 33.3%"
    p.js("(() => { const s = document.getElementById('thread'); s.value = 't0';"
         "s.dispatchEvent(new Event('change')); })()")
    p.settle()
    assert abs(runs(p, 2)[0][1] + 1 - width(p) * 0.6) <= 2


def test_the_tip_names_the_function_and_its_samples(page):
    p = page(known())
    p.hover(*middle_of(p, 2, 1000 / 1500))
    tip = p.text("#tip")
    assert "py::f:/srv/a.py" in tip and "Python" in tip
    assert re.search(r"total\s+600\s+40\.0%", tip) and re.search(r"self\s+400\s+26\.7%", tip)
    p.hover(*middle_of(p, 2, 1425 / 1500))
    assert "generated code that the process did not publish" in p.text("#tip")


def test_keys_move_through_the_graph(page):
    p = page(known())
    p.js("document.getElementById('graph').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        p.key(key)
    assert p.text("#said").startswith("py::f:/srv/a.py, Python, total 40.0%")
    p.key("ArrowDown")
    assert p.text("#said").startswith("py::g:")
    p.key("Enter")
    assert "13.3% of all" in p.text("#crumbs")


def test_the_table_has_what_the_text_report_has(page):
    p = page(known())
    assert rows_of(p) == {
        "kernel_17": ["53.3%", "53.3%", "53.3%"], "f": ["26.7%", "26.7%", "40.0%"],
        "g": ["13.3%", "13.3%", "13.3%"], "vfs_read": ["0", "3.3%", "3.3%"],
        "[jit+0x7f00]": ["0", "3.3%", "3.3%"], "main": ["0", "0", "100.0%"]}
    p.click_on("th button[data-sort=total]")
    assert next(iter(rows_of(p))) == "main"
    p.click_on("#rows tr:nth-child(2)")
    assert p.js("location.hash") == "#search=%5Ekernel_17%24"


def luminance(rgb):
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page, scheme):
    p = page(known())
    p.call("Emulation.setEmulatedMedia",
           features=[dict(name="prefers-color-scheme", value=scheme)])
    p.settle()
    for kind in ("python", "jit", "native", "kernel", "unresolved"):
        c = colour_of(p, kind)
        for shade in ([v * 0.93 for v in c], c):
            assert contrast(colour_of(p, "frame-ink"), shade) >= 4.5, kind
    for ink in ("ink", "soft", "accent", "warn"):
        for ground in ("page", "card"):
            assert contrast(colour_of(p, ink), colour_of(p, ground)) >= 4.5, (ink, ground)
    assert kind_of(p, runs(p, 2)[0][2]) == "jit", "drawn again in the scheme's colours"


def test_names_cannot_break_out_of_the_page(page):
    q = Profile(command="</script><script>document.title='broken'</script>")
    t = q.thread(1, 1, "<b>c</b>")
    q.sample(t, 5, q.frame("</script><img src=http://example.invalid/x onerror=alert(1)>"),
             q.frame("<!--"))
    p = page(q)
    assert p.text("#title") == "</script><script>document.title='broken'</script>"
    assert p.js("document.images.length") == 0
    assert p.js("document.querySelectorAll('#rows tr').length") == 2


def test_the_page_may_load_nothing(page):
    html = app().write("html").decode()
    assert "default-src 'none'" in html
    assert not re.search(r"""(src|href)\s*=\s*["']?(?!data:)[a-z]+:""", html)
    p = page(app())
    assert p.js("fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'refused')") == "refused"
    p.events.clear()


def test_deep_stacks_scroll(page):
    q = Profile()
    t = q.thread(1, 1, "deep")
    fs = [q.frame("level_%d" % i) for i in range(2500)]
    q.sample(t, 10, *fs)
    p = page(q)
    p.js("document.getElementById('graph').scrollTop = 1e9")
    p.settle()
    assert p.js("document.getElementById('graph').scrollTop") > 2400 * ROW
    x, y = middle_of(p, 0, 0.5)
    h = p.js("document.getElementById('graph').clientHeight")
    p.hover(x, y + h - ROW)
    assert "level_2499" in p.text("#tip")


def test_a_hundred_thousand_nodes_are_shown_in_time(page):
    import random
    r = random.Random(3)
    q = Profile()
    t = q.thread(1, 1, "big")
    fs = [q.frame("fn_%d" % i) for i in range(400)]
    for _ in range(6000):
        q.sample(t, 1, *(fs[min(r.randrange(400), r.randrange(400), r.randrange(400))]
                         for _ in range(20)))
    p = page(q)
    assert p.js("JSON.parse(document.getElementById('profile').textContent).nodeUp.length") > 100000
    took = p.js("""new Promise(done => {
      const start = performance.now();
      document.getElementById('flame').click();
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
    })""")
    assert took < 2000, "milliseconds"

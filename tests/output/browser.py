# SPDX-License-Identifier: MIT
"""
A headless Chromium, driven by its own protocol over a pipe: JSON messages, each
with a NUL behind it, on file descriptors 3 and 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]


def executable():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    def __init__(self, width=1200, height=800):
        self.profile = tempfile.mkdtemp(prefix="tickmap-browser-")
        read_3, self.write_fd = os.pipe()
        self.read_fd, write_4 = os.pipe()
        command = [executable(), *FLAGS, "--user-data-dir=" + self.profile,
                   "--window-size=%d,%d" % (width, height), "about:blank"]
        shell = 'exec 3<&%d 4>&%d; exec "$@"' % (read_3, write_4)
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "-", *command], pass_fds=(read_3, write_4),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_3)
        os.close(write_4)
        self.buffer = b""
        self.last_id = 0
        self.events = []
        self.session = self.target = None

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, timeout):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_fd], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.read_fd, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("the browser said nothing")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, timeout=60, **params):
        self.last_id += 1
        message = dict(id=self.last_id, method=method, params=params)
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        while True:
            got = self.receive(timeout)
            if got.get("id") == self.last_id:
                assert "error" not in got, got
                return got["result"]
            if "method" in got:
                self.events.append(got)

    def open(self, url):
        self.session = None
        if self.target:
            self.call("Target.closeTarget", targetId=self.target)
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target,
                                 flatten=True)["sessionId"]
        self.events = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 60
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            assert time.monotonic() < end
            self.events.append(self.receive(60))
        self.settle()

    def settle(self):
        """Two frames later everything is drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => "
                "requestAnimationFrame(() => done(1))))")

    def js(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                        awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def key(self, key, text=""):
        code = {"Escape": 27, "Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37,
                "ArrowRight": 39}.get(key, ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            params = dict(type=kind, key=key, windowsVirtualKeyCode=code)
            if kind == "keyDown" and text:
                params["text"] = text
            self.call("Input.dispatchKeyEvent", **params)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def mouse(self, kind, x, y):
        button = {} if kind == "mouseMoved" else dict(button="left", clickCount=1)
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def hover(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)
        self.settle()

    def click_on(self, selector):
        self.click(*self.js(
            "(() => { const r = document.querySelector(%s).getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()" % json.dumps(selector)))

    def text(self, selector):
        return self.js("document.querySelector(%s).innerText" % json.dumps(selector))

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def complaints(self):
        """Errors on the console, exceptions, and requests for anything but the page."""
        out = []
        for e in self.events:
            p = e.get("params", {})
            if e["method"] == "Runtime.exceptionThrown":
                out.append(p["exceptionDetails"])
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning"):
                out.append(p["args"])
            elif e["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                out.append(p["entry"])
            elif e["method"] == "Network.requestWillBeSent" and \
                    not p["request"]["url"].startswith(("file:", "data:")):
                out.append(p["request"]["url"])
        return out

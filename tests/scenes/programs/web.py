# SPDX-License-Identifier: MIT
"""A web application as frameworks build them: routes by regular expression, a
stack of middleware, views, templates, an ORM-like layer over sqlite3; behind a
threading WSGI server, asked by clients of its own over 127.0.0.1."""
import functools
import http.client
import json
import re
import socketserver
import sqlite3
import sys
import threading
import wsgiref.simple_server

import truthful

truthful.begin()

UNIT = 0.002
ROUTES = []


def route(pattern):
    def decorate(view):
        ROUTES.append((re.compile(pattern), view))
        return view
    return decorate


class Request:
    def __init__(self, environ):
        self.environ = environ
        self.path = environ["PATH_INFO"]

    @property
    @truthful.marker
    def user(self):
        truthful.mark()
        end, x = truthful.work(UNIT), 0
        while truthful.cpu() < end:
            for i in range(200):
                x += i & 3
        return "user%d" % (x & 7)


class Response(Exception):
    def __init__(self, body, status="200 OK", kind="text/html"):
        super().__init__(status)
        self.body, self.status, self.kind = body, status, kind


# ---- middleware ----

def timing(get_response):
    @functools.wraps(get_response)
    def middleware(request):
        return get_response(request)
    return middleware


class Sessions:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        request.session = {"user": request.user}
        return self.get_response(request)


def errors(get_response):
    def middleware(request):
        try:
            return get_response(request)
        except LookupError as error:
            return failure(request, error)
    return middleware


@truthful.marker
def failure(request, error):
    truthful.mark()
    end = truthful.work(UNIT)
    while truthful.cpu() < end:
        text = "".join(c.upper() for c in str(error))
    return Response(text, "404 Not Found")


def resolve(request):
    for pattern, view in ROUTES:
        match = pattern.fullmatch(request.path)
        if match:
            return view(request, **match.groupdict())
    raise LookupError("nothing at " + request.path)


# ---- templates ----

class Template:
    TAG = re.compile(r"\{\{ *(\w+)(?:\|(\w+))? *\}\}")

    def __init__(self, text):
        self.text = text

    def render(self, context):
        def value(match):
            name, which = match.groups()
            return getattr(self, "filter_" + (which or "plain"))(context[name])
        return self.TAG.sub(value, self.text)

    @staticmethod
    def filter_plain(value):
        return str(value)

    @truthful.marker
    def filter_slow(self, value):
        truthful.mark()
        end, x = truthful.work(UNIT), 0
        while truthful.cpu() < end:
            x = sum(i for i in (1, 2, 3) for _ in range(40))
        return "%s %d" % (value, x)


PAGE = Template("<h1>{{ title }}</h1><p>{{ body|slow }}</p>")


# ---- views ----

class View:
    @classmethod
    def as_view(cls, **settings):
        def view(request, *args, **kwargs):
            return cls(**settings).dispatch(request, *args, **kwargs)
        return view

    def __init__(self, title="none"):
        self.title = title

    def dispatch(self, request, *args, **kwargs):
        method = request.environ["REQUEST_METHOD"].lower()
        return getattr(self, method)(request, *args, **kwargs)


class Article(View):
    def get(self, request, number):
        rows = list(self.rows(int(number)))
        return Response(PAGE.render({"title": self.title, "body": rows}))

    @truthful.marker
    def rows(self, number):
        """A generator: a marker that is entered many times."""
        truthful.mark()
        database = sqlite3.connect(":memory:")
        database.execute("create table t (n)")
        database.executemany("insert into t values (?)",
                             ((i,) for i in range(50)))
        end = truthful.work(UNIT)
        while truthful.cpu() < end:
            database.execute("select sum(a.n * b.n) from t a, t b").fetchone()
        yield from database.execute("select n from t where n < ?", (number,))
        database.close()


@route("/json/(?P<name>[a-z]+)")
@truthful.marker
def as_json(request, name):
    truthful.mark()
    end = truthful.work(UNIT)
    while truthful.cpu() < end:
        text = json.dumps({"name": name, "list": list(range(100))}, indent=1)
        json.loads(text)
    return Response(text, kind="application/json")


route("/article/(?P<number>[0-9]+)")(Article.as_view(title="An article"))


# ---- the server ----

def application(environ, start_response):
    response = HANDLER(Request(environ))
    start_response(response.status, [("Content-Type", response.kind)])
    return [response.body.encode()]


HANDLER = resolve
for layer in (errors, Sessions, timing):
    HANDLER = layer(HANDLER)


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = False
    request_queue_size = 64

    def server_bind(self):
        """Without asking for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]
        self.setup_environ()


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass


PATHS = ["/json/abc", "/article/12", "/article/40", "/nothing", "/json/xyz"]


def client(port, count):
    for i in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", PATHS[i % len(PATHS)])
        answer = connection.getresponse()
        answer.read()
        assert answer.status == (404 if i % len(PATHS) == 3 else 200)
        connection.close()


def main(count):
    server = wsgiref.simple_server.make_server(
        "127.0.0.1", 0, application, Server, Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    clients = [threading.Thread(target=client,
                                args=(server.server_port, count))
               for _ in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    server.shutdown()
    serving.join()
    server.server_close()


main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
truthful.end()

"""An S3 server on loopback for tests, and a proxy before it that adds latency and faults.

`moto` answers the requests, in a separate process. The proxy forwards whole requests and answers, counts
them, and can answer with an error, wait, or close the connection in the middle of an answer.
"""

from __future__ import annotations

import html
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

_START = """
import sys
from werkzeug.serving import make_server
from moto.server import DomainDispatcherApplication, create_backend_app
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.port, flush=True)
server.serve_forever()
"""


class MotoServer:
    """moto's S3 server in a process; `port` is its port."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass
class Request:
    """A request that the proxy got."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def key(self) -> str:
        """Key of the object."""
        return unquote(self.path.partition("?")[0].lstrip("/").partition("/")[2])

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


# What to do with a request: None forwards it; an int is the status of an error; a float waits so many seconds
# and forwards it; "cut" forwards it, and closes the connection in the middle of the answer; "drop" closes the
# connection at once; "lose" forwards it, and closes the connection without an answer.
Fault = int | float | str | None


@dataclass
class Proxy:
    """A proxy before a server on loopback."""

    server_port: int
    latency: float = 0.0
    is_public: bool = False
    fault: Callable[[Request], Fault] | None = None
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self) -> None:
                proxy._handle(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, method: str = "GET", ending: str = "") -> int:
        """Return the number of requests so far."""
        with self._lock:
            return sum(each.method == method and each.key.endswith(ending) for each in self.requests)

    def clear(self) -> None:
        with self._lock:
            self.requests.clear()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(handler.command, handler.path, headers)
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        with self._lock:
            self.requests.append(request)
            fault = self.fault(request) if self.fault is not None else None
        if self.latency:
            time.sleep(self.latency)
        if isinstance(fault, float):
            time.sleep(fault)
        if fault == "drop":
            _cut(handler)
            return
        if isinstance(fault, int):
            text = b"<Error><Code>InternalError</Code></Error>"
            handler.send_response(fault)
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(text)
            return
        backend = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        forwarded = dict(handler.headers.items())
        if self.is_public:
            forwarded |= AUTHORIZATION
        backend.request(handler.command, handler.path, body, forwarded)
        answer = backend.getresponse()
        data = answer.read()
        backend.close()
        if fault == "lose":
            _cut(handler)
            return
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "server", "date"):
                handler.send_header(name, value)
        size = answer.getheader("content-length") if handler.command == "HEAD" else len(data)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if fault == "cut":
            handler.wfile.write(data[: len(data) // 2])
            handler.wfile.flush()
            _cut(handler)
            return
        handler.wfile.write(data)


def _cut(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    try:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        handler.connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def set_environment(url: str, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables with which every tool of S3 reaches the server."""
    return {
        **environment,
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "AKIAPENSTOCKTESTS",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-K7MDENG-penstock",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


# moto checks no signature, but refuses changes without an account.
AUTHORIZATION = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKIAPENSTOCKTESTS/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=00"
}


def send(port: int, method: str, target: str, data: bytes = b"") -> tuple[int, bytes]:
    """Send a request past the proxy, as another program does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, data, AUTHORIZATION)
    answer = connection.getresponse()
    result = answer.status, answer.read()
    connection.close()
    return result


def make_bucket(port: int, bucket: str) -> None:
    assert send(port, "PUT", f"/{bucket}")[0] == 200


def put_object(port: int, bucket: str, key: str, data: bytes) -> None:
    assert send(port, "PUT", f"/{bucket}/{quote(key)}", data)[0] == 200


def get_object(port: int, bucket: str, key: str) -> bytes | None:
    """Return the content of an object, or None."""
    status, data = send(port, "GET", f"/{bucket}/{quote(key)}")
    return data if status == 200 else None


def list_keys(port: int, bucket: str, prefix: str = "") -> list[str]:
    data = send(port, "GET", f"/{bucket}?list-type=2&prefix={prefix}")[1]
    return [html.unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", data.decode())]


def upload_folder(port: int, folder: Path, bucket: str, prefix: str) -> None:
    """Copy a local folder to a bucket, as other tools do."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            put_object(port, bucket, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def empty_bucket(port: int, bucket: str) -> None:
    """Delete all objects, up to 1000 per request."""
    while keys := list_keys(port, bucket):
        entries = "".join(f"<Object><Key>{html.escape(key)}</Key></Object>" for key in keys)
        body = f"<Delete><Quiet>true</Quiet>{entries}</Delete>".encode()
        assert send(port, "POST", f"/{bucket}?delete", body)[0] == 200

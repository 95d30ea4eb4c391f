"""A web server on loopback for tests, with one file and answers as odd as of any server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


@dataclass
class WebServer:
    """A server that has the same content at each path that does not end in ".json".

    Attributes:
        content: Bytes of the file.
        etag: ETag of the file, or None.
        modified: Last-Modified of the file, or None.
        has_ranges: Whether it supports ranges.
        checks: Whether it compares If-Match and If-Unmodified-Since.
        seconds: How long the body of an answer takes, which is sent in small pieces.
        status: Status of all answers, or None.
        on_get: Called before each answer to GET.
        requests: Method, decoded path and range of each request.
    """

    content: bytes
    etag: str | None = None
    modified: str | None = None
    has_ranges: bool = True
    checks: bool = True
    seconds: float = 0.0
    status: int | None = None
    on_get: Callable[[WebServer], None] | None = None
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                web.answer(self)

            do_HEAD = do_GET  # noqa: N815

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, method: str = "GET") -> int:
        return sum(each[0] == method for each in self.requests)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers
        self.requests.append((handler.command, unquote(handler.path), asked.get("Range")))
        if handler.command == "GET" and self.on_get is not None:
            self.on_get(self)
        is_missing = handler.path.endswith(".json")  # of a data set, which this is not
        body, status, span = self.content, 404 if is_missing else self.status or 200, None
        if status != 200:
            body = b"no"
        elif self.checks and self._is_refused(asked):
            body, status = b"", 412
        elif self.has_ranges and (given := asked.get("Range")):
            first, last = given.removeprefix("bytes=").split("-")
            start, stop = int(first), min(int(last or len(body)) + 1, len(body))
            span = f"bytes {start}-{stop - 1}/{len(body)}"
            body, status = body[start:stop], 206
        handler.send_response(status)
        for name, value in (
            ("ETag", self.etag),
            ("Last-Modified", self.modified),
            ("Content-Range", span),
            ("Content-Length", str(len(body))),
        ):
            if value is not None:
                handler.send_header(name, value)
        handler.end_headers()
        if handler.command == "HEAD":
            return
        num_pieces = 20 if self.seconds else 1
        size = len(body) // num_pieces + 1
        for start in range(0, len(body), size):
            time.sleep(self.seconds / num_pieces)
            handler.wfile.write(body[start : start + size])
            handler.wfile.flush()

    def _is_refused(self, asked: object) -> bool:
        match = asked.get("If-Match")  # type: ignore[attr-defined]
        since = asked.get("If-Unmodified-Since")  # type: ignore[attr-defined]
        # RFC 9110: a weak ETag equals no other in If-Match.
        if match is not None:
            return match.startswith("W/") or match != self.etag
        return since is not None and since != self.modified

"""A stand-in for Google Cloud Storage and Azure Blob Storage on loopback, for tests.

It is not a server of these clouds: it answers the requests that `obstore` sends for ranges, listings,
conditional writes and deletions, keeps the objects in memory, and notes how each request was authorized. It
checks no signatures. It shows that paths, credentials, conditions and errors are passed as these protocols
have them.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "penstocktests"


@dataclass
class StoredObject:
    data: bytes
    generation: int

    @property
    def etag(self) -> str:
        return f'"0x{self.generation:08X}"'


@dataclass
class CloudServer:
    """Objects by bucket and key; `requests` has the method, the path and the headers of each request."""

    objects: dict[tuple[str, str], StoredObject] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    refuses: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = 100
        cloud = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self) -> None:
                with cloud._lock:
                    cloud._handle(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, bucket: str, key: str, data: bytes) -> StoredObject:
        self._generation += 1
        self.objects[bucket, key] = found = StoredObject(data, self._generation)
        return found

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        self.requests.append((handler.command, handler.path, headers))
        target = urlsplit(handler.path)
        path = target.path.lstrip("/").removeprefix(f"{ACCOUNT}/")
        bucket, _, key = path.partition("/")
        query = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        if self.refuses:
            _send(handler, 403, b"<Error><Code>AuthenticationFailed</Code></Error>")
        elif query.get("comp") == "batch":
            self._delete_batch(handler, body, bucket)
        elif not key:
            is_azure = "comp" in query
            _send(handler, 200, (self._list_azure if is_azure else self._list_google)(bucket, query).encode())
        else:
            self._handle_object(handler, headers, (bucket, unquote(key)), body)

    def _handle_object(
        self, handler: BaseHTTPRequestHandler, headers: dict[str, str], name: tuple[str, str], body: bytes
    ) -> None:
        found = self.objects.get(name)
        if handler.command == "PUT":
            status = _check_conditions(headers, found)
            if status is not None:
                _send(handler, status, b"<Error><Code>ConditionNotMet</Code></Error>")
                return
            if source := headers.get("x-goog-copy-source") or headers.get("x-ms-copy-source"):
                path = urlsplit(source).path.lstrip("/").removeprefix(f"{ACCOUNT}/")
                bucket, _, key = path.partition("/")
                body = self.objects[bucket, unquote(key)].data
            _send(handler, 201 if "x-ms-version" in headers else 200, b"", self.put(*name, body))
        elif found is None:
            _send(handler, 404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif handler.command == "DELETE":
            del self.objects[name]
            _send(handler, 204)
        elif headers.get("if-match", found.etag) != found.etag:
            _send(handler, 412)
        else:
            start, stop = 0, len(found.data)
            given = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", ""))
            if given:
                start, stop = int(given[1]), min(int(given[2] or stop) + 1, stop)
            _send(handler, 206 if given else 200, found.data[start:stop], found, start)

    def _select(self, bucket: str, query: dict[str, str]) -> tuple[dict[str, StoredObject], list[str]]:
        prefix = query.get("prefix", "")
        found = {key: each for (name, key), each in self.objects.items() if name == bucket}
        found = {key: each for key, each in sorted(found.items()) if key.startswith(prefix)}
        if "delimiter" not in query:
            return found, []
        folders = {
            prefix + key[len(prefix) :].partition("/")[0] + "/" for key in found if "/" in key[len(prefix) :]
        }
        return {key: each for key, each in found.items() if "/" not in key[len(prefix) :]}, sorted(folders)

    def _list_google(self, bucket: str, query: dict[str, str]) -> str:
        objects, folders = self._select(bucket, query)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(each.etag)}</ETag><Size>{len(each.data)}</Size>"
            f"<Generation>{each.generation}</Generation></Contents>"
            for key, each in objects.items()
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"

    def _list_azure(self, bucket: str, query: dict[str, str]) -> str:
        objects, folders = self._select(bucket, query)
        blobs = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{formatdate(usegmt=True)}</Last-Modified>"
            f"<Content-Length>{len(each.data)}</Content-Length><Content-Type>application/octet-stream"
            f"</Content-Type><Etag>{escape(each.etag)}</Etag></Properties></Blob>"
            for key, each in objects.items()
        )
        blobs += "".join(f"<BlobPrefix><Name>{escape(each)}</Name></BlobPrefix>" for each in folders)
        return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"

    def _delete_batch(self, handler: BaseHTTPRequestHandler, body: bytes, bucket: str) -> None:
        paths = re.findall(rb"DELETE (\S+) HTTP", body)
        numbers = re.findall(rb"Content-ID: (\d+)", body, re.IGNORECASE)
        parts = []
        for number, path in zip(numbers, paths, strict=True):
            key = unquote(path.decode()).split(f"/{bucket}/", 1)[1]
            status = "202 Accepted" if self.objects.pop((bucket, key), None) else "404 Not Found"
            parts.append(
                f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number.decode()}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nx-ms-version: 2023-11-03\r\n\r\n"
            )
        answer = "\r\n".join(parts) + "\r\n--batch--\r\n"
        _send(handler, 202, answer.encode(), kind="multipart/mixed; boundary=batch")


def _check_conditions(headers: dict[str, str], found: StoredObject | None) -> int | None:
    """Return the status by which a write is refused, or None."""
    wanted = headers.get("x-goog-if-generation-match")
    if wanted is not None and int(wanted) != (0 if found is None else found.generation):
        return 412
    if headers.get("if-none-match") == "*" and found is not None:
        return 409
    if "if-match" in headers and (found is None or headers["if-match"] != found.etag):
        return 412
    return None


def _send(
    handler: BaseHTTPRequestHandler,
    status: int,
    data: bytes = b"",
    found: StoredObject | None = None,
    start: int = 0,
    kind: str = "application/xml",
) -> None:
    handler.send_response(status)
    if found is not None:
        handler.send_header("ETag", found.etag)
        handler.send_header("Last-Modified", formatdate(usegmt=True))
        handler.send_header("x-goog-generation", str(found.generation))
    if status == 206 and found is not None:
        handler.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{len(found.data)}")
    handler.send_header("Content-Type", kind)
    if status != 204:
        handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(data)

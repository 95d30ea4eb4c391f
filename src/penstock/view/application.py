"""The web application of the viewer, and its server: one process on one port, until Ctrl-C.

In: a `Browser`, rules of access, a host and a port. Out: answers to requests. Pages are made on the server
from the templates; everything from a record is escaped there, and no address contains a path. The port is
taken before anything is printed, so that a port in use is an error.
"""

from __future__ import annotations

import errno
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from penstock.decode.pixels import PixelError
from penstock.decode.sample import show_number
from penstock.errors import OptionError, PenstockError, UnknownNameError
from penstock.foundation.wording import format_size, show
from penstock.score.score_text import format_answer, format_score
from penstock.settings.advice import to_flags
from penstock.training.left_out import ADVICE
from penstock.view.access import TOKEN, Access, AccessMiddleware
from penstock.view.browser import Browser, Page
from penstock.view.cell import CHART_HEIGHT, CHART_WIDTH, SIZES, Cell
from penstock.view.predictions import Outcome
from penstock.view.query import MAX_PAGE_SIZE, Query, parse_number, parse_query
from penstock.view.records import DUMP_BYTES
from penstock.view.scan_jobs import Progress

_FOLDER: Final = Path(__file__).parent
_STATIC: Final = {"view.css": "text/css", "view.js": "text/javascript"}
_PROGRESS: Final = "X-Progress"
"""Header of an answer that is not complete yet: the page asks again."""

_NUMBERED: Final = ("row", "at", "shard")
"""Parameters that are the number of something; one that does not exist is not found."""

_USUAL_HOST: Final = "127.0.0.1"
_END_SECONDS: Final = 2
_WAITING: Final = 64


def make_application(browser: Browser, access: Access) -> Starlette:
    """Return the application."""
    pages = _Pages(browser)
    routes = [
        Route("/", pages.browse),
        Route("/record", pages.record),
        Route("/statistics", pages.statistics),
        Route("/picture", pages.picture),
        Route("/bytes", pages.payload),
        Route("/predictions", pages.predictions),
        Route("/favicon.ico", lambda _: Response(status_code=204)),  # browsers ask for it
        *(Route(f"/static/{name}", partial(_send_static, name)) for name in _STATIC),
    ]
    application = Starlette(
        routes=routes,
        middleware=[Middleware(AccessMiddleware, access=access)],
        exception_handlers={HTTPException: pages.not_found, Exception: pages.failed},
    )
    application.router.redirect_slashes = False  # no redirect to an address made of the `Host` header
    return application


async def _send_static(name: str, _: Request) -> Response:
    return FileResponse(_FOLDER / "static" / name, media_type=_STATIC[name])


def make_templates() -> Environment:
    """Return the templates; every value in them is escaped."""
    templates = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["number"] = show_number
    templates.filters["answer"] = format_answer
    templates.filters["score"] = format_score
    templates.filters["count"] = lambda number: f"{number:,}"
    templates.filters["size"] = format_size
    templates.globals.update(CHART_WIDTH=CHART_WIDTH, CHART_HEIGHT=CHART_HEIGHT, DUMP_BYTES=DUMP_BYTES)
    templates.tests["wide"] = _is_wide
    return templates


def _is_wide(cell: Cell) -> bool:
    """Return whether a cell needs the whole width of a card."""
    return cell.kind == "chart" or (cell.kind in ("text", "list", "bytes") and len(cell.text) > 24)


class _Pages:
    """The pages; each method answers one address, in a separate thread."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._templates = make_templates()
        for name in self._templates.list_templates():
            self._templates.get_template(name)  # compiled now, so that the first page is fast

    def browse(self, request: Request) -> Response:
        """Show a page of records."""
        query, error = self._read_query(request)
        found: Page | Progress | None = None
        if error is None:
            try:
                found = self._browser.read_page(query)
            except PenstockError as fault:
                error = fault
        if query.split not in self._browser.data.splits:
            query = query.change(split=self._browser.first_split, shard=None)
        progress = found if isinstance(found, Progress) else None
        page = found if isinstance(found, Page) else None
        outcome = self._browser.find_outcome(query.split)
        return self._render(
            "browse.html",
            _status(error),
            query=query if page is None else page.query,
            page=page,
            progress=progress,
            error=error,
            sorts=self._list_sorts(outcome),
            example=self._browser.example_filter,
            sizes=sorted({12, 24, 48, MAX_PAGE_SIZE, query.size}),
            outcome=outcome if isinstance(outcome, Outcome) else None,
            outcome_progress=outcome if isinstance(outcome, Progress) else None,
            outcome_error=outcome if isinstance(outcome, PenstockError) else None,
        )

    def record(self, request: Request) -> Response:
        """Show one record: by its row number, or by its number among the selected ones."""
        query, error = self._read_query(request)
        parameters = request.query_params
        try:
            if error is not None:
                raise error
            at = parse_number("at", parameters["at"]) if parameters.get("at") else None
            if at is not None:
                found = self._browser.find_row(query, at)
                if isinstance(found, Progress):
                    return self._render("message.html", 200, query=query, progress=found, error=None)
                row, num_rows = found
            else:
                row = parse_number("row", parameters.get("row") or "")
                num_rows = len(self._browser.data.rows(query.split))
            start = parse_number("from", parameters.get("from") or "0")
            shown = self._browser.read_record(query.split, row, at or 0, start)
        except PenstockError as fault:
            return self._fail(query, fault)
        return self._render(
            "record.html",
            200,
            query=query,
            at=at,
            row=row,
            num_rows=num_rows,
            detail=shown,
            is_dump_open="from" in parameters or bool(shown.shown.record.error),
            record=shown.shown.record,
            predictions=shown.shown.predictions,
        )

    def statistics(self, request: Request) -> Response:
        """Show statistics of the selected records: as a page, or as a part of another page."""
        query, error = self._read_query(request)
        is_part = request.query_params.get("part") == "1"
        try:
            if error is not None:
                raise error
            found = self._browser.summarize(query)
        except PenstockError as fault:
            if is_part:
                return PlainTextResponse(str(fault), _status(fault))
            return self._fail(query, fault)
        progress = found if isinstance(found, Progress) else None
        template = "statistics_part.html" if is_part else "statistics.html"
        answer = self._render(
            template,
            200,
            query=query,
            progress=progress,
            error=None,
            summary=None if progress is not None else found,
        )
        if progress is not None:
            answer.headers[_PROGRESS] = f"{progress.share:.3f}"
        return answer

    def picture(self, request: Request) -> Response:
        """Send the picture of a field of a record, as a PNG file."""
        parameters = request.query_params
        try:
            row = parse_number("row", parameters.get("row") or "")
            size = parameters.get("size") or next(iter(SIZES))
            name, split = parameters.get("field") or "", parameters.get("split") or self._browser.first_split
            drawn = self._browser.draw_picture(split, row, name, size)
        except PixelError as fault:
            return PlainTextResponse(f"{fault}. {fault.advice}".strip(), 422)
        except PenstockError as fault:
            return PlainTextResponse(str(fault), _status(fault))
        return Response(drawn, media_type="image/png")

    def payload(self, request: Request) -> Response:
        """Send the bytes of a record as a file to download."""
        parameters = request.query_params
        split = parameters.get("split") or self._browser.first_split
        try:
            row = parse_number("row", parameters.get("row") or "")
            size, parts = self._browser.read_payload(split, row)
        except PenstockError as fault:
            return PlainTextResponse(str(fault), _status(fault))
        disposition = f'attachment; filename="record-{row}.bin"'
        headers = {"Content-Disposition": disposition, "Content-Length": str(size)}
        return StreamingResponse(parts, media_type="application/octet-stream", headers=headers)

    def predictions(self, request: Request) -> Response:
        """Send how many records of a split are predicted; a page that waits for them asks for it."""
        query, error = self._read_query(request)
        if error is not None or query.split not in self._browser.data.splits:
            return PlainTextResponse("no such split", 404)
        found = self._browser.find_outcome(query.split)
        progress = found if isinstance(found, Progress) else None
        done, total = (0, 0) if progress is None else (progress.done, progress.total)
        return JSONResponse({"is_done": progress is None, "done": done, "total": total})

    def not_found(self, request: Request, error: Exception) -> Response:
        """Answer an address that does not exist."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        missing = OptionError(
            "address", field="address", expected="/, /record or /statistics", got=show(request.url.path)
        )
        return self._fail(self._usual_query(), missing, status)

    def failed(self, _: Request, error: Exception) -> Response:
        """Answer a request that failed by a fault of the viewer; the traceback is on stderr."""
        what = f"internal error ({type(error).__name__})"
        return self._fail(self._usual_query(), PenstockError(what, advice="Please report it."), 500)

    def _usual_query(self) -> Query:
        return Query(split=self._browser.first_split)

    def _read_query(self, request: Request) -> tuple[Query, PenstockError | None]:
        try:
            return parse_query(request.query_params, self._browser.first_split), None
        except PenstockError as error:
            return self._usual_query(), error

    def _list_sorts(self, outcome: object) -> list[tuple[str, str]]:
        sorts = self._browser.list_sorts()
        if isinstance(outcome, Outcome):
            names = list(outcome.targets)
            sorts += [
                (f"loss:{name}", f"{each.measure} of {name}" if len(names) > 1 else each.measure)
                for name, each in outcome.targets.items()
            ]
        return sorts

    def _fail(self, query: Query, error: PenstockError, status: int | None = None) -> Response:
        return self._render("message.html", status or _status(error), query=query, error=error, progress=None)

    def _render(self, template: str, status: int, **values: Any) -> Response:
        data = self._browser.data
        known: dict[str, Any] = {
            "progress": None,
            "data": data,
            "schema": data.schema,
            "is_run": self._browser.predictions is not None,
            "picture_address": _picture_address,
            "advice": to_flags(ADVICE),
        }
        return HTMLResponse(self._templates.get_template(template).render(**{**known, **values}), status)


def _picture_address(split: str, row: int, name: str, size: str) -> str:
    # `Query` has another `size`, which is a number.
    return Query(split=split).to_address("/picture", row=row, field=name, size=size)


def _status(error: PenstockError | None) -> int:
    """Return the status of an answer: 400 and 404 for wrong requests, 422 for data that cannot be read."""
    if error is None:
        return 200
    is_beyond = error.field in _NUMBERED and isinstance(error.got, int)
    if isinstance(error, UnknownNameError) or is_beyond:
        return 404
    return 400 if isinstance(error, OptionError) else 422


def serve(
    browser: Browser, host: str, port: int, announce: Callable[[str], None], allowed_hosts: Sequence[str] = ()
) -> None:
    """Answer requests until SIGINT or SIGTERM.

    `port`: port; 0 for any free one. `announce`: called with the address once the server can be reached.
    `allowed_hosts`: further names of this machine, under which requests are answered.
    """
    listener = bind(host, port)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as with Ctrl-C
    try:
        access = Access.make(host, listener.getsockname()[1], allowed_hosts)
        config = uvicorn.Config(
            make_application(browser, access),
            log_level="error",  # requests that are not HTTP get an answer, and no line each
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        announce(make_address(access))
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # the usual way to end a viewer: the server has already stopped
    finally:
        listener.close()
        if is_main:
            signal.signal(signal.SIGTERM, before)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port."""
    if not 0 <= port <= 65535:
        raise OptionError("--port", field="port", expected="0 to 65535", got=port)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _refuse_host(host, error) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _refuse_host(host, error) from error
        is_used = error.errno == errno.EADDRINUSE
        raise OptionError(
            "--port",
            field="port",
            expected="a free port",
            got=f"{port}, which is in use" if is_used else f"{port} ({error.strerror})",
            advice="Pass another one, or --port 0 for any free port.",
        ) from error
    listener.set_inheritable(False)
    return listener


def _refuse_host(host: str, error: Exception) -> OptionError:
    return OptionError(
        "--host",
        field="host",
        expected="a name or address of this machine",
        got=f"{host!r} ({error})",
        advice=f"Leave it out for {_USUAL_HOST}, or pass 0.0.0.0 for all addresses.",
    )


def make_address(access: Access) -> str:
    """Return the address to open, with the token if there is one."""
    host = access.host
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound to
        host = socket.gethostname()
    elif ":" in host:
        host = f"[{host}]"
    token = "" if access.token is None else f"?{TOKEN}={access.token}"
    return f"http://{host}:{access.port}/{token}"

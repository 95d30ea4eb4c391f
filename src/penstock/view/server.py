"""The server of the viewer: one process on one port, until Ctrl-C.

In: a browser of data, a host and a port. Out: the address, and answers to requests. The port is taken before
anything is printed, so that a port in use is an error and not a surprise.
"""

from __future__ import annotations

import errno
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

import uvicorn

from penstock.errors import OptionError
from penstock.view.access import TOKEN, Access
from penstock.view.application import make_application
from penstock.view.browser import Browser

USUAL_HOST: Final = "127.0.0.1"
_END_SECONDS: Final = 2
_WAITING: Final = 64


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
        advice=f"Leave it out for {USUAL_HOST}, or pass 0.0.0.0 for all addresses.",
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

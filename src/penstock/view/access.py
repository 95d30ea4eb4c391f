"""Who may read the pages: checks of every request before it reaches the application, and safe headers.

In: requests. Out: the same requests, or a refusal. The name in the address must be the name of this machine,
so that no other web site can read the data through the user's browser; a viewer that other machines can reach
asks for a token.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import OptionError
from penstock.foundation.wording import show

POLICY: Final = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy: nothing from elsewhere, no inline scripts or styles, no frames."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN: Final = "token"  # noqa: S105 - the name of the parameter
_METHODS: Final = ("GET", "HEAD")
_MAX_ADDRESS_BYTES: Final = 100_000
_PORT: Final = re.compile(r"(:[0-9]{1,5})?")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine alone, unreachable from other machines."""
    address = _parse_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class Access:
    """Which requests are answered.

    Attributes:
        host: Name or address that the server is bound to.
        port: Port of the server, for the name of the cookie.
        token: Token that requests must have; None if only this machine can reach the server.
        names: Names that requests with the token may use beside addresses, in lower case.
    """

    host: str
    port: int = 0
    token: str | None = field(default=None, repr=False)
    names: frozenset[str] = frozenset()

    @classmethod
    def make(cls, host: str, port: int, allowed_hosts: Sequence[str] = ()) -> Access:
        """Return the rules for a server.

        It has a new random token, unless it is bound to loopback and no other name is allowed: a proxy that
        answers under another name may let other machines in.
        """
        for name in allowed_hosts:
            if not _HOST_NAME.fullmatch(name):
                raise OptionError(
                    "--allowed-host",
                    field="allowed_host",
                    expected="a host name, such as vm.example.com",
                    got=show(name),
                )
        if is_loopback(host) and not allowed_hosts:
            return cls(host, port)
        names = (host, socket.gethostname(), socket.getfqdn(), *allowed_hosts)
        return cls(host, port, secrets.token_urlsafe(32), frozenset(name.lower() for name in names))

    @property
    def cookie(self) -> str:
        """Name of the cookie that holds the token; cookies are shared by all ports of a host."""
        return f"penstock_view_{self.port}"

    def allows_host(self, header: str) -> bool:
        """Return whether the `Host` header of a request is allowed.

        An attack by DNS rebinding needs a name that its owner can point at this machine: so only addresses
        and names that belong to this machine, or that the user allows, are accepted.
        """
        name = _strip_port(header).lower()
        if is_loopback(name):
            return True
        if self.token is None:
            return False
        return _parse_address(name) is not None or name in self.names

    def allows_token(self, given: str | None) -> bool:
        """Return whether a token is the right one, in a time that does not depend on it."""
        if self.token is None:
            return True
        return hmac.compare_digest((given or "").encode(), self.token.encode())


def _strip_port(header: str) -> str:
    """Return the host of a `Host` header, without port and brackets."""
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        return name if bracket and _PORT.fullmatch(port) else header
    name, colon, port = header.partition(":")
    return name if _PORT.fullmatch(colon + port) else header


class AccessMiddleware:
    """Refuses requests that `Access` does not allow, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self._app)(scope, receive, send_safely)

    def _refuse(self, scope: Scope) -> Response | None:
        headers, access = Headers(scope=scope), self._access
        if scope["method"] not in _METHODS:
            return _answer("only GET and HEAD are answered", 405)
        if len(scope["query_string"]) > _MAX_ADDRESS_BYTES:
            return _answer("the address is too long", 414)
        if len(headers.getlist("host")) != 1 or not access.allows_host(headers["host"]):
            return _answer(
                "this name is not known to be one of this machine: open the address that 'penstock view' "
                "printed, or start it with --allowed-host NAME",
                421,
            )
        # A redirect to `//host/path` or `/\\host` would lead to another host.
        if not re.match(r"/(?![/\\])", scope["path"]):
            return _answer("no such address", 404)
        # Pages of other sites may link here, but not use these files as their pictures or scripts.
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and headers.get("sec-fetch-mode") != "navigate":
            return _answer("requests by pages of other sites are not answered", 403)
        return self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        access = self._access
        if access.token is None or access.allows_token(_read_cookie(headers, access.cookie)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == TOKEN), None)
        if not access.allows_token(given):
            return _answer("a token is needed: open the address that 'penstock view' printed", 403)
        # The token leaves the address, so that no history or link holds it.
        rest = urlencode([(name, value) for name, value in query if name != TOKEN])
        answer = RedirectResponse(f"{scope['path']}{'?' if rest else ''}{rest}", 303)
        answer.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
        return answer


def _read_cookie(headers: Headers, name: str) -> str | None:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[name].value if name in cookies else None


def _answer(message: str, status: int) -> Response:
    return PlainTextResponse(f"penstock view: {message}.\n", status)

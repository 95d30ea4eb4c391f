"""X18, Y15: hostile requests to the viewer are refused, hostile records escaped; nothing else can be read."""

import asyncio
import re
from urllib.parse import unquote

import pytest

from penstock.view.access import Access
from penstock.view.application import make_application
from penstock.view.browser import Browser
from penstock.view.opened_data import open_data
from viewed_data import HOSTILE_NAME, HOSTILE_ROW, write_gallery

HIDDEN = "kept from the viewer"
TOKEN = "t" * 43
CHUNK = b"x" * (1 << 20)


class Answer:
    """What an application answered, and how many parts of the body of the request it read."""

    def __init__(self):
        self.status, self.headers, self.body, self.num_read = 0, {}, b"", 0

    @property
    def text(self):
        return self.body.decode(errors="replace")


def ask(app, target, method="GET", headers=(), host="127.0.0.1:8765"):
    """Send one request as it is: no client removes `..` from its path, and its body has no end."""
    path, _, query = target.partition("?")
    answer = Answer()

    async def receive():
        answer.num_read += 1
        return {"type": "http.request", "body": CHUNK, "more_body": True}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), *headers],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8765),
    }
    asyncio.run(app(scope, receive, send))
    return answer


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "secret.txt").write_text(HIDDEN)
    write_gallery(folder / "gallery")
    (folder / "gallery" / "secret.txt").write_text(HIDDEN)
    made = Browser(open_data([str(folder / "gallery")]))
    yield made
    made.close()


@pytest.fixture(scope="module")
def local(browser):
    return make_application(browser, Access("127.0.0.1", 8765))


@pytest.fixture(scope="module")
def remote(browser):
    return make_application(browser, Access("0.0.0.0", 8765, TOKEN))


@pytest.mark.parametrize("path", ["../secret.txt", "secret.txt", "../../../../../../../etc/passwd"])
@pytest.mark.parametrize(
    "address",
    [
        "/{}",
        "/static/{}",
        "/static/view.css/{}",
        "/static//{}",
        "/record?row=0&split={}",
        "/record?row={}",
        "/bytes?row=0&split={}",
        "/bytes?row={}",
        "/picture?row=0&field={}",
        "/statistics?split={}",
        "/predictions?split={}",
        "/?split={}",
        "/?shard={}",
    ],
)
@pytest.mark.parametrize("encode", [str, lambda path: path.replace(".", "%2e").replace("/", "%2f")])
def test_path_in_an_address_leads_nowhere(local, address, path, encode):
    answer = ask(local, address.format(encode(path)))
    assert answer.status in (400, 404)
    assert HIDDEN not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "address",
    ["/", "/?layout=table", f"/record?row={HOSTILE_ROW}", "/statistics", "/statistics?part=1"],
)
def test_script_in_a_record_or_a_name_is_text(local, address):
    answer = ask(local, address)
    assert answer.status == 200
    assert "&lt;script&gt;" in answer.text
    assert HOSTILE_NAME not in answer.text
    assert set(re.findall(r"<script[^>]*>", answer.text)) <= {'<script src="/static/view.js">'}
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_script_in_the_bytes_of_a_record_is_a_download(local):
    answer = ask(local, f"/bytes?row={HOSTILE_ROW}")
    assert b"<script>" in answer.body
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("method", "status"), [("POST", 405), ("PUT", 405), ("GET", 200)])
def test_body_without_an_end_is_not_read(local, method, status):
    answer = ask(local, "/", method, [(b"content-length", b"1000000000000")])
    assert (answer.status, answer.num_read) == (status, 0)


def test_address_of_a_megabyte_is_refused(local):
    assert ask(local, "/?filter=" + "a" * (1 << 20)).status == 414


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""])
@pytest.mark.parametrize("address", ["/", "/bytes?row=0", "/static/view.js", "/nothing"])
def test_foreign_host_is_refused_with_and_without_a_token(local, remote, host, address):
    for app in (local, remote):
        answer = ask(app, address, host=host, headers=[(b"cookie", f"penstock_view_8765={TOKEN}".encode())])
        assert (answer.status, len(answer.body) < 200) == (421, True)


@pytest.mark.parametrize(
    "address", ["/", "/record?row=0", "/bytes?row=0", "/picture?row=0&field=photo", "/static/view.js", "/x"]
)
def test_without_the_token_nothing_is_answered(remote, address):
    for headers in ([], [(b"cookie", b"penstock_view_8765=" + b"u" * 43)]):
        answer = ask(remote, address, host="192.168.1.7:8765", headers=headers)
        assert (answer.status, len(answer.body) < 200) == (403, True)
    cookie = (b"cookie", f"penstock_view_8765={TOKEN}".encode())
    assert ask(remote, address, host="192.168.1.7:8765", headers=[cookie]).status in (200, 404)


@pytest.mark.parametrize(
    "path",
    ["//evil.example/x", "///evil.example", "/%2fevil.example/record", "/\\evil.example", "/%5cevil.example"],
)
@pytest.mark.parametrize("has_token", [True, False])
def test_y15_address_of_another_host_is_refused_with_a_valid_token(local, remote, path, has_token):
    answer = ask(remote if has_token else local, f"{path}?token={TOKEN}")
    assert (answer.status, "location" in answer.headers) == (404, False)


def test_y15_no_redirect_leads_to_the_name_in_a_request(local, remote):
    answer = ask(local, "/record/?row=0")
    assert (answer.status, "location" in answer.headers) == (404, False)
    for host in ("127.0.0.1:80@evil.example", "[::1]@evil.example", "localhost:evil.example"):
        assert ask(local, "/record?row=0", host=host).status == 421
        assert ask(remote, f"/?token={TOKEN}", host=host).status == 421


def test_y15_redirect_with_a_valid_token_stays_on_this_host(remote):
    answer = ask(remote, f"/record?row=0&token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/record?row=0")

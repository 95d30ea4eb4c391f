"""Requests that are not answered: other hosts, no token, other sites, other methods."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from penstock.errors import OptionError
from penstock.view import access as module
from penstock.view.access import Access, AccessMiddleware, is_loopback

TOKEN = "x" * 43


def client_of(access, host="127.0.0.1:8765"):
    app = Starlette(
        routes=[Route("/", lambda request: PlainTextResponse("secret"))],
        middleware=[Middleware(AccessMiddleware, access=access)],
    )
    return TestClient(app, base_url=f"http://{host}", follow_redirects=False)


@pytest.fixture
def loopback():
    return client_of(Access("127.0.0.1", 8765))


@pytest.fixture
def remote():
    return client_of(Access("0.0.0.0", 8765, TOKEN), host="192.168.1.7:8765")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:9999", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_answered(loopback, host):
    assert loopback.get("/", headers={"host": host}).text == "secret"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "0.0.0.0",
        "10.0.0.1",
        "[::1",
        "127.0.0.1@evil.example",
    ],
)
def test_other_names_are_not_answered_on_loopback(loopback, host):
    answer = loopback.get("/", headers={"host": host})
    assert (answer.status_code, "secret" in answer.text) == (421, False)


def test_name_that_an_attacker_can_point_here_is_not_answered_elsewhere_either(remote):
    answer = remote.get(f"/?token={TOKEN}", headers={"host": "evil.example:8765"})
    assert answer.status_code == 421


def test_names_of_the_machine_and_allowed_ones_are_answered_with_the_token(monkeypatch):
    monkeypatch.setattr(module.socket, "gethostname", lambda: "vm")
    monkeypatch.setattr(module.socket, "getfqdn", lambda: "VM.internal.example")
    access = Access.make("0.0.0.0", 8765, ["data.example.com", "Other.Example"])
    client = client_of(access, host="192.168.1.7:8765")
    for name in ("vm", "vm.internal.example", "DATA.example.com:8765", "other.example", "10.1.2.3"):
        assert client.get("/", headers={"host": name}).status_code == 403
        answer = client.get("/", params={"token": access.token}, headers={"host": name})
        assert answer.status_code == 303
        client.cookies.clear()
    for name in ("example.com", "evil.data.example.com", "internal.example"):
        answer = client.get("/", params={"token": access.token}, headers={"host": name})
        assert answer.status_code == 421


def test_allowed_name_on_loopback_needs_the_token():
    access = Access.make("127.0.0.1", 8765, ["data.example.com"])
    client = client_of(access)
    assert client.get("/", headers={"host": "data.example.com"}).status_code == 403
    assert client.get("/").status_code == 403
    assert client.get("/", params={"token": access.token}).status_code == 303


@pytest.mark.parametrize(
    "name", ["*", "*.example.com", "http://a.example", "a.example:80", "", "a b", "a..b"]
)
def test_allowed_host_that_is_not_a_name_is_an_error(name):
    with pytest.raises(OptionError) as caught:
        Access.make("0.0.0.0", 8765, [name])
    assert (caught.value.field, name in caught.value.got) == ("allowed_host", True)


def test_token_is_needed_if_other_machines_can_reach_the_viewer(remote):
    answer = remote.get("/")
    assert (answer.status_code, "secret" in answer.text) == (403, False)


@pytest.mark.parametrize("token", ["", "x", "x" * 44, TOKEN[:-1] + "y", "é", "%00"])
def test_wrong_token_is_refused(remote, token):
    assert remote.get("/", params={"token": token}).status_code == 403
    assert (
        remote.get("/", headers={"cookie": f"penstock_view_8765={token.encode().hex()}"}).status_code == 403
    )


def test_right_token_moves_from_the_address_into_a_cookie(remote):
    answer = remote.get("/", params={"token": TOKEN, "filter": "a < 3"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?filter=a+%3C+3")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert remote.get("/").text == "secret"  # the client keeps the cookie


def test_token_is_random_and_only_made_where_it_is_needed():
    assert Access.make("127.0.0.1", 1).token is None
    assert Access.make("localhost", 1).token is None
    first, second = Access.make("0.0.0.0", 1).token, Access.make("0.0.0.0", 1).token
    assert first != second
    assert len(first) >= 40
    assert first not in repr(Access("0.0.0.0", 1, first))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_reading_is_answered(loopback, method):
    assert loopback.request(method, "/").status_code == 405


def test_pages_of_other_sites_may_link_here_but_not_use_the_data(loopback):
    for site in ("cross-site", "same-site"):
        used = loopback.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})
        assert used.status_code == 403
    linked = loopback.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    assert linked.status_code == 200


def test_every_answer_has_safe_headers(loopback):
    for answer in (loopback.get("/"), loopback.get("/nothing"), loopback.post("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_address_of_any_length_is_refused_early(loopback, monkeypatch):
    monkeypatch.setattr(module, "_MAX_ADDRESS_BYTES", 100)
    assert loopback.get("/?filter=" + "a" * 92).status_code == 200
    assert loopback.get("/?filter=" + "a" * 200).status_code == 414


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("box", False),
    ],
)
def test_loopback_addresses_are_known(host, expected):
    assert is_loopback(host) == expected

"""The server: its port, its address, its end."""

import socket

import pytest

from penstock.errors import OptionError
from penstock.view.access import Access
from penstock.view.application import bind, make_address


def test_free_port_is_found():
    with bind("127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 0


def test_port_in_use_is_an_error_that_says_what_to_do():
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OptionError) as caught:
            bind("127.0.0.1", port)
    assert caught.value.field == "port"
    assert str(port) in caught.value.got
    assert "--port 0" in caught.value.advice


@pytest.mark.parametrize("port", [-1, 65536])
def test_port_out_of_range_is_an_error(port):
    with pytest.raises(OptionError) as caught:
        bind("127.0.0.1", port)
    assert (caught.value.field, caught.value.got) == ("port", port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "a" * 300])
def test_host_of_another_machine_is_an_error(host):
    with pytest.raises(OptionError) as caught:
        bind(host, 0)
    assert caught.value.field == "host"


def test_address_can_be_opened():
    assert make_address(Access("127.0.0.1", 8765)) == "http://127.0.0.1:8765/"
    assert make_address(Access("::1", 8765)) == "http://[::1]:8765/"
    assert make_address(Access("0.0.0.0", 80, "t")) == f"http://{socket.gethostname()}:80/?token=t"

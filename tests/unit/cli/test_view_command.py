"""`penstock view`: it prints an address, answers, and ends with Ctrl-C."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from pasted_lines import find_next, run_pasted
from penstock.cli import view as module
from penstock.cli.main import main
from penstock.errors import NoSuchPathError
from viewed_data import write_gallery


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return write_gallery(tmp_path_factory.mktemp("data") / "gallery")


@contextmanager
def viewing(*arguments):
    """Start the command in a separate process."""
    command = [sys.executable, "-c", "from penstock.cli.main import main; raise SystemExit(main())", "view"]
    process = subprocess.Popen(
        [*command, *map(os.fspath, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_page(address):
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - the address that was printed
        return answer.status, answer.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_viewer_answers_until_it_is_interrupted(gallery, number):
    with viewing(gallery, "--json") as process:
        said = json.loads(process.stdout.readline())
        assert (said["records"], said["splits"]) == (64, {"train": 60, "test": 4})
        status, text = read_page(said["address"])
        assert (status, "Record 0" in text) == (200, True)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def test_viewer_that_was_closed_suggests_a_command_that_works(gallery, capsys):
    with viewing(gallery, "--host", "127.0.0.1") as process:
        while "Ctrl-C" not in (line := process.stdout.readline()):
            pass
        read_page(line.split()[1])  # it answers, so it also handles signals
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert find_next(errors) == ["penstock", "inspect", str(gallery)]
    assert run_pasted(errors) == 1  # one record is damaged
    assert find_next(capsys.readouterr().err) == ["penstock", "verify", str(gallery)]


def test_quiet_viewer_prints_its_address_alone(gallery):
    with viewing(gallery, "--quiet") as process:
        line = process.stdout.readline()
        assert re.match(r"Open http://127\.0\.0\.1:\d+", line)
        read_page(line.split()[1])
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")


def test_viewer_that_others_can_reach_prints_a_token(gallery):
    with viewing(gallery, "--host", "0.0.0.0") as process:
        process.stdout.readline()
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        port, token = re.search(r":(\d+)/\?token=(\S+)", address).groups()
        with pytest.raises(urllib.error.HTTPError) as caught:
            read_page(f"http://127.0.0.1:{port}/")
        assert caught.value.code == 403
        caught.value.close()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(f"http://127.0.0.1:{port}/?token={token}", timeout=30) as answer:
            assert answer.status == 200
            assert "token" not in answer.url


def test_port_in_use_is_one_line_and_status_2(gallery, capsys):
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        assert main(["view", str(gallery), "--port", str(port)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert str(port) in errors


def test_path_that_does_not_exist_is_status_2(tmp_path, capsys):
    assert main(["view", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


def test_progress_is_shown_while_files_are_opened(tmp_path, monkeypatch, capsys):
    shown = threading.Event()

    class Bar(module.ProgressBar):
        def show_line(self, make):
            assert "12 s" in make(12.0)
            shown.set()

    def open_data(*_):
        assert shown.wait(30)
        raise NoSuchPathError("missing", path="a")

    monkeypatch.setattr(module, "_TICK_SECONDS", 0.001)
    monkeypatch.setattr(module, "ProgressBar", Bar)
    monkeypatch.setattr(module, "open_data", open_data)
    assert main(["view", str(tmp_path)]) == 2
    assert not [each for each in threading.enumerate() if each.name.endswith("(tick)")]


def test_model_without_a_run_is_an_error(gallery, capsys):
    assert main(["view", str(gallery), "--model", "model.py:build"]) == 2
    assert "--model" in capsys.readouterr().err

"""`penstock view`: browse data in a web page."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from penstock.cli.arguments import read_declaration
from penstock.cli.next_command import (
    has_model_fields,
    list_paths,
    name_output,
    repeat_words,
    suggest_next,
    suggest_use,
)
from penstock.cli.terminal import ProgressBar, format_count, format_duration, is_quiet, print_note
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import show
from penstock.settings.command_line import Call
from penstock.settings.commands import ModelOfRun, Server
from penstock.settings.groups import ReadOptions
from penstock.view.application import serve
from penstock.view.browser import Browser
from penstock.view.opened_data import OpenedData, open_data

_TICK_SECONDS: Final = 0.5


def run(call: Call) -> int:
    """Open the data, answer requests until Ctrl-C, and return the exit status."""
    server, model, read = call.read(Server), call.read(ModelOfRun).model, call.read(ReadOptions)
    first = call.arguments[0]
    with _showing_time():
        data = open_data(list(call.arguments), read_declaration(call), read)
    if model is not None:
        if data.run is None:
            raise OptionError("--model", field="model", expected="the folder of a run", got=show(first))
        data = replace(data, model=model)
    browser = Browser(data)

    def announce(address: str) -> None:
        if call.common.json:
            print(json.dumps(_describe(data, address)), flush=True)
            return
        if not is_quiet():
            splits = ", ".join(f"{escape(name)} {len(rows):,}" for name, rows in data.splits.items())
            print(f"{escape(data.name)}: {format_count(data.num_records, 'record')} ({splits})")
        for name, note in data.notes.items():
            if name not in data.schema:
                print_note(f"{name}: {note}")
        print(f"Open {address} in a browser. Ctrl-C ends the viewer.", flush=True)

    try:
        serve(browser, server.host, server.port, announce, server.allowed_host)
    finally:
        browser.close()
    if data.run is not None:
        own = [] if model is None else ["--model", model]
        suggest_next(call, "report", *list_paths(call), "--out", name_output(first, ".html"), *own)
    else:
        words = repeat_words(call, [each.flag for each in Server.list_settings()])
        is_usual = read == ReadOptions()  # training has no options for other files
        suggest_use(call, words, has_target=is_usual and has_model_fields(data.schema))
    return 0


@contextmanager
def _showing_time() -> Iterator[None]:
    """Show on a terminal that files are opened, and for how long: those without an index are read once."""
    is_done = threading.Event()
    with ProgressBar("view") as bar:

        def tick() -> None:
            while not is_done.wait(_TICK_SECONDS):
                bar.show_line(
                    lambda seconds: f"view: reading and indexing the files, {format_duration(seconds)}"
                )

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            is_done.set()
            ticker.join()


def _describe(data: OpenedData, address: str) -> dict[str, object]:
    return {
        "address": address,
        "records": data.num_records,
        "fields": len(data.schema),
        "splits": {name: len(rows) for name, rows in data.splits.items()},
    }

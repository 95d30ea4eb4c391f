"""`penstock view`: browse data in a web page."""

from __future__ import annotations

import argparse
import json

from penstock.cli.option_values import read_declaration, read_options
from penstock.cli.terminal import format_count
from penstock.foundation.terminal import escape
from penstock.view.browser import Browser
from penstock.view.opened_data import OpenedData, open_data
from penstock.view.server import serve


def run(args: argparse.Namespace) -> int:
    """Open the data, answer requests until Ctrl-C, and return the exit status."""
    data = open_data(args.paths, read_declaration(args), read_options(args))
    browser = Browser(data)

    def announce(address: str) -> None:
        if args.json:
            print(json.dumps(_describe(data, address)), flush=True)
            return
        splits = ", ".join(f"{escape(name)} {len(rows):,}" for name, rows in data.splits.items())
        print(f"{escape(data.name)}: {format_count(data.num_records, 'record')} ({splits})")
        for name, note in data.notes.items():
            if name not in data.schema:
                print(f"note: {escape(name)}: {escape(note)}")
        print(f"Open {address} in a browser. Ctrl-C ends the viewer.", flush=True)

    try:
        serve(browser, args.host, args.port, announce, args.allowed_host)
    finally:
        browser.close()
    return 0


def _describe(data: OpenedData, address: str) -> dict[str, object]:
    return {
        "address": address,
        "records": data.num_records,
        "fields": len(data.schema),
        "splits": {name: len(rows) for name, rows in data.splits.items()},
    }

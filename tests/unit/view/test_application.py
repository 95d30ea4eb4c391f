"""The pages: what they show, and what hostile requests and hostile records get."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from starlette.testclient import TestClient

from penstock import _native
from penstock.training.left_out import LeftOutPart
from penstock.view import application as module
from penstock.view.access import Access
from penstock.view.application import make_application
from penstock.view.browser import Browser
from penstock.view.opened_data import open_data
from penstock.view.predictions import Outcome, RunPredictions, TargetOutcome
from penstock.view.scan_jobs import Progress
from record_files import example, write_plain
from viewed_data import BAD_IMAGE_ROW, DAMAGED_ROW, HOSTILE_NAME, HOSTILE_ROW, LOST_ROW, NUM_RECORDS
from wire.frame import write_record


def client_of(browser):
    app = make_application(browser, Access("127.0.0.1", 8765))
    return TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(gallery):
    """One viewer for all requests that only read."""
    browser = Browser(open_data([str(gallery)]))
    yield client_of(browser)
    browser.close()


def links_of(text, rel):
    return [found.replace("&amp;", "&") for found in re.findall(rf'<a rel="{rel}" href="([^"]*)"', text)]


def attributes_of(text):
    """Return the names of the attributes that a browser would find."""
    found = set()

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.update(name for name, _ in attributes)

    Parser().feed(text)
    assert found
    return found


def rows_of(text):
    return [int(row) for row in re.findall(r">Record (\d+)</a>", text)]


def test_first_page_shows_the_first_records_and_the_next_link_the_next(client):
    first = client.get("/?size=10")
    assert first.status_code == 200
    assert rows_of(first.text) == list(range(10))
    (following,) = links_of(first.text, "next")
    assert rows_of(client.get(following).text) == list(range(10, 20))
    (last,) = links_of(first.text, "last")
    assert rows_of(client.get(last).text) == list(range(50, 60))


def test_filter_and_search_select_records(client):
    assert rows_of(client.get("/", params={"filter": "age == 2"}).text) == [2, 19, 36, 53]
    assert rows_of(client.get("/", params={"search": "number 12 likes"}).text) == [12]
    found = client.get("/", params={"filter": "age == 2", "sort": "field:weight", "order": "descending"})
    assert rows_of(found.text) == [53, 36, 2, 19]  # the weight of record 19 is missing


def test_table_shows_the_same_records(client):
    text = client.get("/", params={"filter": "age == 2", "layout": "table"}).text
    assert re.findall(r"at=\d+\">(\d+)</a>", text) == ["2", "19", "36", "53"]


def test_pages_show_pictures_that_the_viewer_made(client):
    address = re.search(r'<img src="([^"]*)"', client.get("/").text)[1].replace("&amp;", "&")
    answer = client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content.startswith(b"\x89PNG")


def test_picture_that_cannot_be_decoded_is_an_error_with_a_reason(client):
    answer = client.get(f"/picture?split=train&row={BAD_IMAGE_ROW}&field=photo&size=small")
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")
    assert "png" in answer.text


def test_hostile_text_and_hostile_name_are_escaped_everywhere(client):
    for address in (
        "/",
        "/?layout=table",
        f"/record?row={HOSTILE_ROW}",
        "/statistics",
        "/statistics?part=1",
        "/?search=%3Cscript%3E",
    ):
        text = client.get(address).text
        assert "<script>document" not in text
        assert "<img src=x" not in text
        assert re.findall(r"<script[^>]*>", text) in ([], ['<script src="/static/view.js">'])
        assert not [name for name in attributes_of(text) if name.startswith("on") or name == "style"]
    assert "&lt;script&gt;document" in client.get("/").text


def test_no_page_has_inline_code_or_styles(client):
    for address in (
        "/",
        "/?layout=table",
        "/record?row=1",
        f"/record?row={DAMAGED_ROW}",
        "/statistics",
        "/nothing",
    ):
        text = client.get(address).text
        assert not [name for name in attributes_of(text) if name.startswith("on") or name == "style"]
        assert "<style" not in text
        assert "javascript:" not in text


def test_damaged_records_are_marked_and_their_bytes_are_shown(client):
    text = client.get("/").text
    assert text.count('class="card bad"') == 1
    text = client.get(f"/record?row={DAMAGED_ROW}").text
    assert "wrong" in text
    assert "Payload" in text
    text = client.get(f"/record?row={LOST_ROW}").text
    assert "Damage" in text
    assert rows_of(client.get("/?show=damaged").text) == [DAMAGED_ROW, LOST_ROW]


def test_record_has_links_to_its_neighbours_in_the_selection(client):
    text = client.get("/record", params={"filter": "age == 2", "at": "1"}).text
    assert "Record 19" in text
    (following,) = links_of(text, "next")
    assert "Record 36" in client.get(following).text
    last = client.get("/record", params={"filter": "age == 2", "at": "3"}).text
    assert "Record 53" in last
    assert (len(links_of(last, "prev")), links_of(last, "next")) == (1, [])


def test_value_of_the_statistics_is_added_to_the_filter(client):
    text = client.get("/statistics", params={"filter": "age == 2 or age == 3"}).text
    links = [found.replace("&amp;", "&") for found in re.findall(r'<a href="([^"]*)"><bdi>siamese<', text)]
    expected = [row for row in range(NUM_RECORDS) if row % 17 in (2, 3) and row % 3 == 0]
    assert [rows_of(client.get(link).text) for link in links] == [expected]


def test_payload_is_a_download_and_never_a_page(client):
    answer = client.get("/bytes?split=train&row=0")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert b"Cat number 0" in answer.content


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/?size=1000000", 400),
        ("/?size=-1", 400),
        ("/?page=-5", 400),
        ("/?page=99999999999999999999999", 400),
        ("/?page=1000000", 200),
        ("/?filter=age%20<", 400),
        ("/?filter=().__class__", 400),
        ("/?filter=nothing%20<%203", 404),
        ("/?filter=" + "(" * 1500, 400),
        ("/?sort=field:nothing", 404),
        ("/?sort=;DROP", 400),
        ("/?split=../../etc", 404),
        ("/?split=%00", 404),
        ("/?shard=99", 404),
        ("/?show=mistakes", 400),
        ("/?column=100000", 200),
        ("/record", 400),
        ("/record?row=-1", 400),
        ("/record?row=60", 404),
        ("/record?row=999999999999999999", 404),
        ("/record?row=abc", 400),
        ("/record?row=1&from=99999999999", 200),
        ("/record?row=1&from=-1", 400),
        ("/record?at=60", 404),
        ("/picture?row=0&field=../../etc/passwd", 404),
        ("/picture?row=0&field=photo&size=huge", 400),
        ("/picture?row=0&field=note", 422),
        ("/picture?row=-1&field=photo", 400),
        ("/bytes?row=99", 404),
        ("/bytes?row=0&split=../x", 404),
        ("/static/../application.py", 404),
        ("/static/%2e%2e/application.py", 404),
        ("/static/..%2f..%2fdataset.py", 404),
        ("/static/", 404),
        ("//etc/passwd", 404),
        ("/etc/passwd", 404),
        ("/%ff%fe", 404),
        ("/?split=%ff%fe", 404),
        ("/?filter=%ff%fe", 400),
        ("/?filter=age%20<%20nan", 404),
        ("/?filter=weight%20<%201e999", 200),
        ("/?filter=age%20<%20-1", 200),
        ("/?filter=age%20==%20" + "9" * 400, 200),
        ("/?search=%00%ff", 200),
        ("/?search=" + "a" * 201, 400),
        ("/?split=" + "a" * 60_000, 404),
        ("/?sort=field:../../etc/passwd", 404),
        ("/?sort=loss:../x", 400),
        ("/?shard=../x", 400),
        ("/?shard=-1", 400),
        ("/?column=-1", 400),
        ("/?layout=../x", 400),
        ("/?size=nan", 400),
        ("/record?row=NaN", 400),
        ("/record?row=1e3", 400),
        ("/record?at=99999999999999999999999", 400),
        ("/record?row=0&split=../../etc/passwd", 404),
        ("/statistics?split=../../etc/passwd", 404),
        ("/statistics?part=1&filter=age%20<", 400),
        ("/predictions?split=../x", 404),
    ],
)
def test_hostile_request_gets_an_answer_without_harm(client, address, status):
    answer = client.get(address)
    assert answer.status_code == status
    assert "root:" not in answer.text
    assert "Traceback" not in answer.text


def test_pages_are_answered_by_their_head_alone(client):
    for address in ("/", "/record?row=1", "/picture?row=0&field=photo", "/bytes?row=0", "/static/view.css"):
        answer = client.head(address)
        assert (answer.status_code, answer.content) == (200, b"")
    assert client.options("/").status_code == 405


@pytest.mark.parametrize("change", ["truncated", "deleted", "replaced"])
def test_file_that_changes_under_the_viewer_is_an_error_on_its_pages(tmp_path, change):
    path = write_plain(tmp_path / "a.tfrecord", [example(n=row, text="x" * 5000) for row in range(40)])
    browser = Browser(open_data([str(path)]))
    client = client_of(browser)
    if change == "truncated":
        assert client.get("/record?row=39").status_code == 200  # the file is open when it changes
        os.truncate(path, path.stat().st_size // 2)
    elif change == "deleted":
        path.unlink()
    else:
        write_plain(path, [b"other"])
    for address in (
        "/",
        "/?layout=table&page=1",
        "/record?row=39",
        "/statistics",
        "/?filter=n<3",
        "/?show=damaged",
        "/?sort=field:n",
        "/bytes?row=39",
    ):
        answer = client.get(address)
        assert answer.status_code in (200, 422)
        assert "Traceback" not in answer.text
    text = client.get("/record?row=39").text
    assert ('class="notice fault"' in text) == (change != "deleted")  # a deleted file is still open
    assert "a.tfrecord" in text
    browser.close()


def test_requests_of_several_browsers_get_their_own_answers(client):
    def ask(age):
        answer = client.get("/", params={"filter": f"age == {age}", "sort": "bytes:", "layout": "grid"})
        return sorted(rows_of(answer.text))

    with ThreadPoolExecutor(6) as browsers:
        found = list(browsers.map(ask, [*range(12), *range(12)]))
    expected = [
        [row for row in range(NUM_RECORDS) if row % 17 == age and row not in (DAMAGED_ROW, LOST_ROW)]
        for age in range(12)
    ]
    assert found == expected * 2


def test_record_of_100_mb_is_shown_by_its_bytes(tmp_path):
    size, path = 100 << 20, tmp_path / "a.tfrecord"
    header = size.to_bytes(8, "little")
    with path.open("wb") as file:
        file.write(b"".join(write_record(example(n=row)) for row in range(3)))
        file.write(header + _native.masked_crc32c(header).to_bytes(4, "little"))
        file.truncate(file.tell() + size + 4)  # zeros that take no room on the disk
    browser = Browser(open_data([str(path)]))
    client = client_of(browser)
    for address in ("/", "/?layout=table", "/record?row=3", "/statistics", "/?filter=n<2", "/?show=damaged"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert len(answer.content) < 30_000
    assert rows_of(client.get("/?filter=n<2").text) == [0, 1]
    assert client.get("/record?row=3&from=104000000").status_code == 200
    assert client.head("/bytes?row=3").headers["content-length"] == str(size)
    browser.close()


def test_wrong_filter_keeps_the_form_and_names_the_position(client):
    text = client.get("/", params={"filter": 'breed = "siamese"'}).text
    assert "Use == to compare" in text
    assert 'value="breed = &#34;siamese&#34;"' in text


def test_progress_is_shown_while_a_scan_runs(browser, monkeypatch):
    monkeypatch.setattr(browser, "read_page", lambda query: Progress(25, 100))
    text = client_of(browser).get("/").text
    assert 'http-equiv="refresh"' in text
    assert 'value="0.250"' in text
    monkeypatch.setattr(browser, "summarize", lambda query: Progress(1, 4))
    assert client_of(browser).get("/statistics?part=1").headers["x-progress"] == "0.250"


def test_fault_of_the_viewer_itself_is_an_answer_without_its_details(browser, monkeypatch):
    def fail(query):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(browser, "read_page", fail)
    answer = client_of(browser).get("/")
    assert (answer.status_code, "secret detail" in answer.text) == (500, False)


def test_static_files_are_sent_with_their_type(client):
    assert client.get("/static/view.css").headers["content-type"].startswith("text/css")
    assert client.get("/static/view.js").headers["content-type"].startswith("text/javascript")


def test_records_that_are_no_examples_are_shown_by_their_bytes(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [b"\xff\xff<script>alert(1)</script>"] * 3)
    browser = Browser(open_data([str(path)]))
    client = client_of(browser)
    for address in ("/", "/?layout=table", "/record?row=0", "/statistics", "/?show=damaged"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
    assert client.get("/?filter=a<3").status_code == 400
    browser.close()


def test_empty_and_strange_values_do_not_break_a_page(tmp_path):
    payloads = [
        example(text="", many=[1.0], bytes=b"\xff\xfe"),
        example(text="\u202egnp.exe\x00\x1b[2J", many=[float("nan")] * 5, bytes=b""),
        example(text="x" * 100_000, many=[1e38, -1e38], bytes=bytes(5000)),
    ]
    browser = Browser(open_data([str(write_plain(tmp_path / "a.tfrecord", payloads))]))
    client = client_of(browser)
    for address in ("/", "/?layout=table", "/record?row=1", "/statistics"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert len(answer.content) < 40_000
        assert "\x00" not in answer.text
        assert "\x1b" not in answer.text
    browser.close()


def test_record_of_a_thousand_fields_is_shown_in_parts(tmp_path):
    payloads = [example(**{f"field {number}": number + row for number in range(1000)}) for row in range(3)]
    browser = Browser(open_data([str(write_plain(tmp_path / "a.tfrecord", payloads))]))
    client = client_of(browser)
    for address in ("/", "/?layout=table", "/?layout=table&column=980", "/statistics"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert len(answer.content) < 200_000
    assert "next fields" in client.get("/statistics").text
    assert client.get("/statistics?column=900").text.count('class="field"') == 100
    browser.close()


def test_every_template_escapes():
    assert module.make_templates().autoescape is True
    assert HOSTILE_NAME not in module.make_templates().from_string("{{ x }}").render(x=HOSTILE_NAME)


def show_run(browser, monkeypatch, kind="binary", **known):
    """Return a client of the browser of a run that has predicted the first three records."""
    rows = np.arange(3)
    target = TargetOutcome(kind, ("no", "yes"), rows % 2, rows * 0, rows / 4, rows / 2, rows > 0)
    monkeypatch.setattr(browser, "data", replace(browser.data, **known))
    monkeypatch.setattr(browser, "predictions", RunPredictions.__new__(RunPredictions))
    monkeypatch.setattr(browser, "find_outcome", lambda split: Outcome(rows, {"breed": target}))
    monkeypatch.setattr(RunPredictions, "usual_split", "train")
    monkeypatch.setattr(RunPredictions, "close", lambda self: None)
    return client_of(browser)


@pytest.mark.parametrize(("kind", "has_choices"), [("binary", True), ("regression", False)])
def test_only_labels_have_mistakes_to_choose(browser, monkeypatch, kind, has_choices):
    text = show_run(browser, monkeypatch, kind).get("/").text
    assert ('<option value="mistakes">wrong</option>' in text) == has_choices
    assert ('<option value="correct">correct</option>' in text) == has_choices
    assert ("show=mistakes" in text) == has_choices
    assert "sort=loss%3Abreed" in text
    assert ("absolute error</option>" in text) != has_choices
    assert ("(1 if always no)" in text) == has_choices
    badges = re.findall('<span class="badge">([a-z]*)</span>', text)
    assert badges[:3] == (["correct", "wrong", "wrong"] if has_choices else ["predicted"] * 3)


def test_target_is_beside_its_prediction_in_a_table(browser, monkeypatch):
    client = show_run(browser, monkeypatch, targets=("breed",))
    text = client.get("/?layout=table").text
    header = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', text, re.DOTALL)
    names = [unescape(re.sub("<[^>]*>", "", each)).strip() for each in header]
    assert names[:3] == ["Record", "breed", "Prediction"]
    assert names[3:] == [name for name in browser.data.schema if name != "breed"][:20]
    first = re.search(r'<tr class="">(.*?)</tr>', text, re.DOTALL)[1]
    cells = re.findall("<td[^>]*>(.*?)</td>", first, re.DOTALL)
    assert len(cells) == len(names) - 1
    assert "correct" in cells[1]
    assert all(f">{name}<" in client.get("/?layout=table&column=5").text for name in ("breed", "Prediction"))


def test_fields_that_the_model_does_not_read_are_named_and_marked(browser, monkeypatch):
    part = LeftOutPart("image", ("photo",), "The loss is <b>lower</b> without it.")
    client = show_run(browser, monkeypatch, left_out=(part,), unread=("photo", "age"))
    for address in ("/", "/?layout=table", "/record?row=1"):
        text = client.get(address).text
        assert "Not read by the model: <bdi>image (photo)</bdi>." in text
        assert "The loss is &lt;b&gt;lower&lt;/b&gt; without it." in text
        assert "--parts all" in text
        assert text.count("not read") == (2 if address != "/" else 2 * text.count('<dt title="age">'))


def test_table_without_a_run_has_no_predictions_and_the_order_of_the_schema(client):
    text = client.get("/?layout=table").text
    assert "Prediction" not in text
    assert text.index("sort=field%3Aphoto") < text.index("sort=field%3Abreed")


def test_hex_dump_is_folded_unless_it_is_wanted(client):
    assert '<details id="payload">' in client.get("/record?row=4").text
    assert '<details id="payload" open>' in client.get("/record?row=4&from=0").text
    assert '<details id="payload" open>' in client.get(f"/record?row={DAMAGED_ROW}").text

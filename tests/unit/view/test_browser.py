"""Pages of records, single records and pictures."""

import pytest

from penstock.decode.pixels import PixelError
from penstock.errors import CorruptRecordError, OptionError, UnknownNameError
from penstock.filter.expression import parse_expression
from penstock.view.query import Query
from viewed_data import BAD_IMAGE_ROW, DAMAGED_ROW, HOSTILE_NAME, NUM_RECORDS


def test_page_has_its_records_with_cells(browser):
    page = browser.read_page(Query(split="train", page=1, size=10))
    assert [shown.record.row for shown in page.records] == list(range(10, 20))
    assert (page.num_selected, page.num_pages, page.picture) == (NUM_RECORDS, 6, "photo")
    cells = page.records[0].cells
    assert (cells["age"].text, cells["photo"].width, cells["heartbeat"].kind) == ("10", 64, "chart")
    assert cells[HOSTILE_NAME].text == "10"


def test_page_beyond_the_last_is_the_last(browser):
    page = browser.read_page(Query(split="train", page=10**15, size=50))
    assert (page.query.page, len(page.records)) == (1, 10)


def test_table_shows_a_part_of_many_fields(browser):
    page = browser.read_page(Query(split="train", layout="table", column=6))
    assert page.fields == tuple(browser.data.schema)[6:]


def test_record_has_its_values_and_its_bytes(browser):
    page = browser.read_record("train", 4)
    assert page.shown.cells["note"].text.startswith("Cat number 4")
    assert page.frame.payload_crc.is_correct
    assert len(page.dump) == 64
    assert page.pictures == {}
    assert browser.read_record("train", 4, dump_start=2000).dump_start == 2000


def test_damaged_record_has_its_error_and_its_bytes(browser):
    page = browser.read_record("train", DAMAGED_ROW)
    assert page.shown.record.state == "damaged"
    assert page.frame.payload_crc.is_correct is False
    assert page.dump


def test_picture_that_cannot_be_decoded_has_a_reason(browser):
    assert "photo" in browser.read_record("train", BAD_IMAGE_ROW).pictures
    with pytest.raises(PixelError):
        browser.draw_picture("train", BAD_IMAGE_ROW, "photo", "small")


def test_picture_needs_a_record_a_field_and_a_size_that_exist(browser):
    assert browser.draw_picture("train", 0, "photo", "large").startswith(b"\x89PNG")
    with pytest.raises(CorruptRecordError):
        browser.draw_picture("train", DAMAGED_ROW, "photo", "small")
    with pytest.raises(UnknownNameError):
        browser.draw_picture("train", 0, "../photo", "small")
    with pytest.raises(OptionError):
        browser.draw_picture("train", 0, "photo", "1000000")
    with pytest.raises(PixelError):
        browser.draw_picture("train", 0, "note", "small")


def test_selected_record_is_found_by_its_number_in_the_selection(browser):
    query = Query(split="train", filter="age == 2")
    assert [browser.find_row(query, at) for at in range(4)] == [(2, 4), (19, 4), (36, 4), (53, 4)]
    with pytest.raises(OptionError) as caught:
        browser.find_row(query, 4)
    assert caught.value.field == "at"


def test_hint_is_a_valid_filter(browser):
    assert parse_expression(browser.example_filter, browser.data.schema)

"""What whole numbers and strings stand for, by their name and their counts."""

import pytest

from penstock.schema.value_kind import ValueCounts, classify_numbers, classify_strings, has_key_name

KEYS = """
id ID customer_id CustomerId customerid RowNumber row_no zip ZIP zipcode zip_code postal-code PLZ sku
article_number articleno key Unnamed:_0 index image/object/id EAN order.id billing_zip_code
"""
OTHERS = """paid humid number code ring-number rooms NumOfProducts casual income age type_code casino grid 7
heat_index body_mass_index uv_index rooms_no doors_no item_num num_ids
"""


@pytest.mark.parametrize("name", KEYS.split())
def test_name_suggests_a_key(name):
    assert has_key_name(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_name_does_not_suggest_a_key(name):
    assert not has_key_name(name)


def test_column_without_a_name_is_a_key():
    assert has_key_name("")
    assert has_key_name("Unnamed: 0")


@pytest.mark.parametrize(
    ("name", "counts", "kind"),
    [
        ("y", (1000, 2, 0, 1), "classes"),
        ("y", (1000, 2, 7, 900), "classes"),
        ("stars", (1000, 5, 1, 5), "classes"),
        ("y", (1000, 12, 1, 12), "classes"),
        ("y", (1000, 13, 1, 13), "quantity"),
        ("rings", (4177, 28, 1, 29), "quantity"),
        ("digit", (1000, 100, 0, 99), "classes"),
        ("y", (1000, 101, 0, 100), "quantity"),
        ("y", (1000, 50, 0, 50), "quantity"),
        ("label", (1000, 101, 0, 100), "classes"),
        ("image/class/label", (1000, 26, 1, 26), "classes"),
        ("label", (100_000, 20_000, 0, 19_999), "quantity"),
        ("label", (100, 60, 0, 59), "quantity"),
        ("y", (1000, 5, 0, 1000), "classes"),
        ("y", (1000, 5, -2, 2), "classes"),
        ("y", (40, 5, 0, 1000), "quantity"),
        ("status_code", (40, 5, 200, 500), "classes"),
        ("y", (1000, None, 0, 5000), "quantity"),
    ],
)
def test_target_of_whole_numbers(name, counts, kind):
    assert classify_numbers(name, ValueCounts(*counts), is_target=True) == kind


@pytest.mark.parametrize(
    ("name", "counts", "kind"),
    [
        ("RowNumber", (10_000, 10_000, 1, 10_000), "index"),
        ("n", (10_000, 10_000, 0, 9_999), "index"),
        ("n", (999, 999, 0, 998), "quantity"),
        ("Unnamed: 0", (5, 5, 0, 4), "index"),
        ("Unnamed: 0", (4, 4, 0, 3), "quantity"),
        ("n", (8_000, 7_900, 0, 9_999), "index"),  # estimated, and a split of the rows
        ("n", (8_000, 8_000, 40, 9_990), "index"),
        ("day", (1_500, 1_500, 19_000, 20_499), "quantity"),
        ("customer_id", (1_500, 1_498, 5_000, 6_500), "index"),
        ("price", (10_000, 10_000, 1, 40_000), "quantity"),
        ("CustomerId", (10_000, 10_000, 15_565_701, 15_815_690), "identifier"),
        ("customer_id", (10_000, 6_000, 15_565_701, 15_815_690), "identifier"),
        ("customer_id", (10_000, 4_000, 15_565_701, 15_815_690), "codes"),
        ("zip_code", (10_000, 800, 10_115, 99_998), "codes"),
        ("store_id", (10_000, 45, 1, 45), "codes"),
        ("customer_id", (10_000, None, 1, 2**40), "identifier"),
        ("id", (10_000, 4_000, -5, 4_000), "quantity"),
        ("rooms", (10_000, 9, 0, 8), "quantity"),
        ("year", (10_000, 40, 1980, 2019), "quantity"),
    ],
)
def test_input_of_whole_numbers(name, counts, kind):
    assert classify_numbers(name, ValueCounts(*counts), is_target=False) == kind


@pytest.mark.parametrize(
    ("name", "counts", "kind"),
    [
        ("city", (20_000, 300), "category"),
        ("city", (20_000, 3_000), "category"),
        ("city", (20_000, 10_000), "category"),
        ("city", (20_000, 10_001), "text"),
        ("city", (1_000_000, 65_537), "text"),
        ("city", (20_000, None), "text"),
        ("ticket_no", (20_000, None), "identifier"),
        ("ticket_no", (20_000, 15_000), "identifier"),
        ("ticket_no", (20_000, 5_000), "category"),
        ("ticket_no", (4, 4), "text"),
        ("title", (20_000, 3_000, None, None, 2.0), "text"),
        ("title", (20_000, 2_000, None, None, 2.0), "category"),
        ("title", (20_000, 2_000, None, None, 5.0), "text"),
        ("answer", (20_000, 20, None, None, 9.0), "category"),
        ("constant", (3, 1), "category"),
        ("one", (1, 1), "text"),
    ],
)
def test_strings(name, counts, kind):
    assert classify_strings(name, ValueCounts(*counts), is_target=False) == kind


def test_target_of_strings_that_repeat_is_a_category_and_never_an_identifier():
    prose = ValueCounts(100, 50, mean_words=7.0)
    assert classify_strings("y", prose, is_target=True) == "category"
    assert classify_strings("y", prose, is_target=False) == "text"
    assert classify_strings("user_id", ValueCounts(100, 90), is_target=True) == "text"

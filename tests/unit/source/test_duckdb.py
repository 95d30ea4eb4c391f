"""Tables and queries of DuckDB files, and other Arrow streams."""

import sys

import adbc_driver_sqlite.dbapi
import duckdb
import polars as pl
import pytest

import penstock as ps
from penstock.errors import MissingPackageError, NoSuchPathError, OptionError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source.duckdb import parse_url
from penstock.source.opening import open_source
from penstock.source.recognition import is_dataset
from raising import containing, raises_with


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Make a file in the working directory."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("pets.db") as connection:
        connection.execute("CREATE TABLE pets AS SELECT i AS age, 'n' || i AS name FROM range(5) t(i)")
        connection.execute('CREATE TABLE "other pets" AS SELECT 1 AS x')
    return tmp_path / "pets.db"


def test_table_and_query_are_read_in_order(database, read):
    assert read("duckdb:///pets.db?table=pets")["age"] == [0, 1, 2, 3, 4]
    assert read("duckdb:///pets.db?table=other%20pets") == {"x": [1]}
    sql = "SELECT name FROM pets WHERE name LIKE '%3%' OR age=0 ORDER BY age DESC"
    url = f"duckdb:///{database}?query={sql}"
    assert read(url) == {"name": ["n3", "n0"]}
    assert read("duckdb:///pets.db?query=SELECT%20age%2B1%20AS%20b%20FROM%20pets%20LIMIT%202") == {
        "b": [1, 2]
    }
    assert not is_dataset(url)


def test_query_is_converted_and_resumed_by_its_content(database, tmp_path):
    url = "duckdb:///pets.db?query=SELECT age, name FROM pets"
    data = ps.convert(url, tmp_path / "out")
    assert sum(len(data[split]) for split in data.splits) == 5
    assert ps.convert(url, tmp_path / "out", resume=True).manifest == data.manifest
    with raises_with(OptionError, what=containing("content")):
        ps.convert(
            "duckdb:///pets.db?query=SELECT age+1 AS age, name FROM pets", tmp_path / "out", resume=True
        )


@pytest.mark.parametrize(
    ("sql", "facts"),
    [
        ("DROP TABLE pets", "SELECT DROP"),
        ("SELECT 1; SELECT 2", "SELECT 2 statements"),
        ("COPY pets TO 'x.csv'", "SELECT COPY"),
        ("ATTACH 'other.db'", "SELECT ATTACH"),
        ("SELECT * FROM read_csv('/etc/passwd')", "failed"),
        ("SELECT * FROM 'secret.csv'", "failed"),
        ("SELECT nothing FROM pets", "failed nothing"),
        ("SELEC 1", "failed"),
    ],
)
def test_query_that_does_more_than_read_the_file_is_refused(database, tmp_path, sql, facts):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises((OptionError, SourceError)) as caught:
        list(open_source(f"duckdb:///pets.db?query={sql}", TextFiles()).blocks())
    assert str(caught.value) == containing(*facts.split())
    assert open_source("duckdb:///pets.db?table=pets", TextFiles()).is_repeatable
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    "url",
    [
        "duckdb://pets.db",
        "duckdb:///pets.db",
        "duckdb:///pets.db?sql=x",
        "duckdb:///?query=x",
        "duckdb:///a?table=",
    ],
)
def test_url_without_a_file_or_table_is_refused(url):
    with raises_with(OptionError, what="source"):
        parse_url(url)


def test_file_table_or_package_that_is_missing_is_named(database, monkeypatch):
    with raises_with(NoSuchPathError, path="cats.db"):
        open_source("duckdb:///cats.db?table=pets", TextFiles())
    with raises_with(OptionError, expected=containing("'pets'"), got="'cats'"):
        open_source("duckdb:///pets.db?table=cats", TextFiles())
    database.with_name("no.db").write_bytes(b"no database" * 100)
    with raises_with(SourceError, what=containing("DuckDB")):
        open_source("duckdb:///no.db?table=pets", TextFiles())
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with raises_with(MissingPackageError, advice=containing("penstock[sql]")):
        open_source("duckdb:///pets.db?table=pets", TextFiles())


def test_stream_of_an_adbc_driver_is_read(read):
    with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'")
        assert read(cursor.fetch_record_batch()) == {"a": [1, 2], "b": ["x", "y"]}


def test_lazy_frame_of_polars_is_collected(read):
    frame = pl.DataFrame({"a": [1, 2, 3]}).lazy().filter(pl.col("a") > 1)
    assert read(frame) == {"a": [2, 3]}

"""Tables of a DuckDB file, and SQL queries on it, as a source.

In: `duckdb:///file.db?query=SELECT …` or `duckdb:///file.db?table=NAME`. Out: a source of Arrow batches in
the order of the query. The file is opened for reading alone, and a query can neither write nor name other
files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from penstock.errors import NoSuchPathError, OptionError, SourceError, importing
from penstock.foundation.wording import list_texts, show
from penstock.source.recognition import DUCKDB_SCHEME
from penstock.source.table import TableSource

_EXAMPLE: Final = "duckdb:///pets.db?table=pets or 'duckdb:///pets.db?query=SELECT * FROM pets'"
_CONFIG: Final = {
    "enable_external_access": "false",  # no other files, and no network
    "lock_configuration": "true",
    "threads": "1",  # rows without an order come in the same order every time
}


class DuckdbUrl(NamedTuple):
    """A table or a query: the path of the file, and SQL."""

    path: Path
    query: str | None
    table: str | None


def parse_url(url: str) -> DuckdbUrl:
    """Return the parts of a URL. SQL with white space is taken as it is, other SQL is decoded."""
    location, _, parameters = url[len(DUCKDB_SCHEME) :].partition("?")
    name, equals, value = parameters.partition("=")
    if not location.startswith("/") or len(location) < 2 or not equals or name not in ("query", "table"):
        raise OptionError("source", expected=_EXAMPLE, got=show(url))
    value = value if any(map(str.isspace, value)) else unquote(value)
    if not value.strip():
        raise OptionError("source", expected=f"a {name} in the URL", got=show(url))
    path = Path(unquote(location[1:]))  # four slashes begin an absolute path
    return DuckdbUrl(path, value if name == "query" else None, value if name == "table" else None)


def open_duckdb(url: str) -> TableSource:
    """Return the source of a table or a query; the query runs once for each pass."""
    given = parse_url(url)
    with importing("a duckdb:// source", "sql"):
        import duckdb  # noqa: PLC0415 - for such sources alone

    if not given.path.is_file():
        raise NoSuchPathError("no such file", path=given.path, advice=f"Use {_EXAMPLE}.")

    def begin() -> Iterator[pa.Table]:
        with _connect(duckdb, given.path) as connection:
            sql = _select(duckdb, connection, given)
            try:
                for batch in pa.RecordBatchReader.from_stream(connection.sql(sql)):
                    yield pa.Table.from_batches([batch])
            except duckdb.Error as error:
                raise _refuse_query(given, error) from error

    with _connect(duckdb, given.path) as connection:
        _select(duckdb, connection, given)
    return TableSource(begin, name=given.path.name, kind="duckdb")


def _connect(duckdb: Any, path: Path) -> Any:
    try:
        return duckdb.connect(str(path), read_only=True, config=dict(_CONFIG))
    except duckdb.Error as error:
        raise SourceError(
            f"the file cannot be opened with DuckDB ({_first_line(error)})",
            path=path,
            advice="Check that it is a DuckDB file, and that no other program writes to it.",
        ) from error


def _select(duckdb: Any, connection: Any, given: DuckdbUrl) -> str:
    """Return the SQL of a table or query, after checking it."""
    if given.table is not None:
        names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
        if given.table not in names:
            expected = f"one of {list_texts(names)}" if names else "a file with tables"
            raise OptionError("table", path=given.path, expected=expected, got=show(given.table))
        name = given.table.replace('"', '""')
        return f'SELECT * FROM "{name}"'  # noqa: S608 - a quoted name that exists
    query = given.query or ""
    try:
        statements = duckdb.extract_statements(query)
        if len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT:
            connection.execute(f"EXPLAIN {statements[0].query}").fetchall()
            return str(statements[0].query)
    except duckdb.Error as error:
        raise _refuse_query(given, error) from error
    got = (
        f"{len(statements)} statements" if len(statements) != 1 else f"a {statements[0].type.name} statement"
    )
    raise OptionError("query", path=given.path, expected="one SELECT statement", got=got)


def _refuse_query(given: DuckdbUrl, error: Exception) -> SourceError:
    return SourceError(
        f"the query failed ({_first_line(error)})",
        path=given.path,
        expected="SQL that reads the tables of the file",
        got=show(given.query or given.table),
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")[:300]

"""Rows of files in batches: from any batch on, in bounded memory, with the faults of single rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.data_formats import FormatError, write_data
from bespeak.documents.row_batches import ROW_FORMATS, Mark, read_batches

CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n\r",'), max_size=8)
TABLES = st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS}), min_size=1, max_size=12)


def read(path: Path, form: str, size: int = 2, mark: Mark | None = None) -> list[Any]:
    """Return the rows, or the reason and the number of each that is not valid."""
    found = [row for batch in read_batches(path, form, size, mark) for row in batch.rows]
    return [(number, row.reason) if isinstance(row, FormatError) else row for number, row in found]


@given(TABLES, st.sampled_from(["csv", "jsonl", "json", "yaml"]), st.sampled_from(["", "\ufeff"]))
def test_reading_goes_on_behind_any_batch(
    tmp_path_factory: pytest.TempPathFactory, table: list[Any], form: str, mark: str
) -> None:
    path = tmp_path_factory.mktemp("rows") / "table"
    text = mark + write_data(table, form)
    path.write_text(text, "utf-8", newline="")
    expected = read(path, form, 1000)
    if "'" not in text:  # a text that a spreadsheet would run gets a quote mark
        assert expected == table
    batches = list(read_batches(path, form, 2))
    for number, batch in enumerate(batches):
        behind = [row for later in batches[number + 1 :] for _, row in later.rows]
        assert read(path, form, 2, batch.after) == behind


BROKEN = rows(
    "form, text, faults",
    ("csv", b"a,b\n1,2\n1\nx,\xff\n3,4\n", [(3, "cells"), (4, "UTF-8")]),
    ("csv", b'a,b\n1,x"y\n1,"x"y\n3,4\n', [(2, "quote"), (3, "quote")]),
    ("csv", b"a,b\n1,2\r3,4\n", [(2, "carriage")]),
    ("csv", b"a,b\n" + b"x" * 3_000_000 + b",1\n3,4\n", [(2, "MiB")]),
    ("jsonl", b'{"a": 1}\n{"a": }\n{"a": NaN}\n\n"\xff"\n', [(2, "JSON"), (3, "JSON"), (5, "UTF-8|utf-8")]),
    ("jsonl", b"[" * 5000 + b"]" * 5000 + b"\n" + b"[" * 150 + b"]" * 150 + b"\n", [(1, "JSON"), (2, "nested")]),
    ("json", b'[{"a": "\xff"}, {"a": 1e999}, {"a": 123456789012345678901}]', [(0, "JSON"), (1, "range"), (2, "64")]),
)


@BROKEN
def test_a_row_that_is_not_valid_is_told_with_its_place(
    form: str, text: bytes, faults: list[tuple[int, str]], tmp_path: Path
) -> None:
    path = tmp_path / "table"
    path.write_bytes(text)
    found = [row for row in read(path, form) if isinstance(row, tuple)]
    assert [number for number, _ in found] == [number for number, _ in faults]
    for (_, reason), (_, part) in zip(found, faults, strict=True):
        assert any(one in reason for one in part.split("|")), reason


UNREADABLE = rows(
    "form, text, message",
    ("csv", b'a,b\n1,2\n3,"open\n' + b"5,6\n" * 400_000, "line 3: a quote mark is opened"),
    ("csv", b"a,a\n1,2\n", "twice"),
    ("csv", b"a,\xff\n1,2\n", "UTF-8"),
    ("csv", ",".join(map(str, range(150_000))).encode(), "10,000 columns"),
    ("json", b'[{"a": 1}, {"a": 2}', "row 2 is followed"),
    ("json", b'[{"a": 1}] 7', "row 1 is followed"),
    ("json", b'{"rows": [' + b'{"a": 1},' * 200_000 + b"]}", "MiB"),
    ("json", b"[" * 100_000, "row 1"),
    ("xlsx", b"PK\x03\x04", "workbook"),
    ("parquet", b"PAR1" * 100, "Parquet"),
    ("yaml", b"a: [", "line"),
)


@UNREADABLE
def test_a_file_whose_rest_has_no_meaning_is_an_error(form: str, text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(text)
    with pytest.raises(FormatError, match=message):
        read(path, form)


@given(st.binary(max_size=200), st.sampled_from(ROW_FORMATS))
def test_any_bytes_are_rows_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes, form: str) -> None:
    path = tmp_path_factory.mktemp("rows") / "table"
    path.write_bytes(content)
    try:
        found = read(path, form)
    except FormatError:
        return
    json.dumps(found)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(b"")
    assert [read(path, form) for form in ("csv", "jsonl", "json")] == [[], [], []]

"""Forms are read alike however they arrive, and bytes that are not one do no harm."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.file_schema import FileField
from bespeak.faces.http.files import FormReader
from bespeak.protocol.exchange.messages import Malformed

FIELDS = {"one": FileField(70_000), "many": FileField(1000, many=3)}
TYPE = "multipart/form-data; boundary=edge"
CONTENT = st.one_of(
    st.binary(max_size=50), st.lists(st.sampled_from([b"\r\n", b"--", b"edge", b"-", b"\r", b"x" * 300])).map(b"".join)
).filter(lambda data: b"\r\n--edge" not in b"\r\n" + data + b"\r\n--edg")
NAME = st.text(st.characters(exclude_characters='"\\\r\n\0', exclude_categories=("Cs", "Cc")), min_size=1, max_size=9)


@st.composite
def forms(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, bytes]], list[tuple[str, str]]]:
    """Return a form, its files and its texts, in order."""
    files = [("one", draw(CONTENT))] if draw(st.booleans()) else []
    files += [
        ("many", content) for content in draw(st.lists(CONTENT.filter(lambda data: len(data) < 1000), max_size=3))
    ]
    texts = draw(st.lists(st.tuples(NAME.filter(lambda name: name not in FIELDS), NAME), max_size=3))
    parts = [(f'; name="{name}"; filename="f"', content) for name, content in files]
    parts += [(f'; name="{name}"', text.encode()) for name, text in texts]
    body = b"".join(
        b"--edge\r\nContent-Disposition: form-data%b\r\n\r\n%b\r\n" % (head.encode(), content)
        for head, content in parts
    )
    return body + b"--edge--\r\n", files, texts


def read(pieces: list[bytes], folder: Path) -> tuple[FormReader, Malformed | None]:
    form = FormReader(TYPE, FIELDS, folder)
    for piece in pieces:
        if (fault := form.feed(piece)) is not None:
            return form, fault
    return form, form.finish()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(forms(), st.lists(st.integers(0, 2000), max_size=8))
def test_files_and_texts_are_the_same_however_the_form_is_cut(
    form: tuple[bytes, list[tuple[str, bytes]], list[tuple[str, str]]], places: list[int]
) -> None:
    body, files, texts = form
    with tempfile.TemporaryDirectory() as folder:
        reader, fault = read(cut(body, places), Path(folder))
        assert fault is None
        values: dict[str, Any] = msgspec.json.decode(reader.input({}))
        assert reader.texts == texts
        lists = {name: value if name == "many" else [value] for name, value in values.items() if name in FIELDS}
        sent = [(name, one) for name, value in lists.items() for one in value]
        assert [(name, reader.files.uploads[tuple(one.values())].read()) for name, one in sent] == files
        reader.close()
        assert list(Path(folder).iterdir()) == []


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"--edge", b"\r\n", b": ", b"x" * 70_001]),
    forms().map(lambda form: form[0]),
)


@given(st.lists(PIECES, max_size=6))
def test_other_bytes_are_refused_or_read_and_leave_nothing(pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader, fault = read(pieces, Path(folder))
        assert fault is None or 400 <= fault.status < 432
        assert fault is None or list(Path(folder).iterdir()) == []
        assert fault is None or reader.feed(b"more") == fault
        reader.close()
        assert list(Path(folder).iterdir()) == []

"""The data files beside the code."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import bespeak.text.language
from bespeak.text.language.lexicon import read_data

DATA = Path(bespeak.text.language.__file__).with_name("data")


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.gz")))
def test_a_packed_file_is_read_as_it_was_written(name: str) -> None:
    assert read_data(name) == gzip.decompress((DATA / name).read_bytes()).decode("ascii") != ""


def test_missing_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_data("none.txt.gz")

"""A PDF is set from data, so that the same data make the same bytes and markup stays text."""

from __future__ import annotations

import msgspec
import pytest
from tests.runtime.reports.sample import SAMPLE

from bespeak.runtime.reports.formats import has_typst, write_pdf


def test_a_report_becomes_the_same_pdf_each_time() -> None:
    assert has_typst()
    made = write_pdf(SAMPLE)
    assert made is not None
    assert made.startswith(b"%PDF-")
    assert made == write_pdf(SAMPLE)


def test_a_report_without_rows_or_chart_is_a_pdf_too() -> None:
    empty = msgspec.structs.replace(SAMPLE, rows=(), chart={}, columns=("Id",))
    assert (write_pdf(empty) or b"").startswith(b"%PDF-")


def test_what_cannot_be_set_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    import typst

    def fail(*_: object, **__: object) -> bytes:
        raise typst.TypstError("no font", [], "")

    monkeypatch.setattr(typst, "compile", fail)
    assert write_pdf(SAMPLE) is None
    assert "could not be written as PDF" in caplog.text

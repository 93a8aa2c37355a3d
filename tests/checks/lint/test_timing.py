"""Where the time of a run goes."""

from __future__ import annotations

from bespeak.checks.lint.document import Times
from bespeak.checks.lint.passes import PASSES
from bespeak.checks.lint.reading import read_subject
from bespeak.checks.lint.subject import Context, Subject
from bespeak.contract.catalog.document import load_bundled

TEXT = 'agis: "1.0"\nendpoints:\n  - method: BOOK\n    path: /room\n'


def test_every_pass_has_its_line() -> None:
    subject = read_subject(TEXT, "x.agis")
    assert isinstance(subject, Subject)
    times = Times()
    times.measure(subject, Context(catalog=load_bundled()))
    first, *rows = times.rows()
    assert "1 documents" in first
    assert any(row.endswith("reading, pass 1") for row in rows)
    assert all(any(f"pass {step.number}, " in row for row in rows) for step in PASSES if step.document or step.endpoint)
    numbers = [float(row.split()[0]) for row in rows]
    assert numbers == sorted(numbers, reverse=True)

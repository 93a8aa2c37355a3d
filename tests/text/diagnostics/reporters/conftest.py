"""A report with one finding of every kind."""

from __future__ import annotations

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule
from bespeak.text.diagnostics.report import Finding, Replacement, Report
from bespeak.text.source.tree import Change, Location

TEXT = "agis: 1.0\nendpoints:\n  - method: BOOKING\n    path: /room/\n"

PATH = Diagnostic(
    "P321",
    "error",
    "the path '/room/' ends with a slash",
    Location("a/rooms.agis", 4, 11, 4, 17),
    "/endpoints/0/path",
    "Write '/room'.",
    Fix("Write /room", (Change("replace", "/endpoints/0/path", "/room"),)),
)
METHOD = Diagnostic(
    "M230",
    "warning",
    "BOOKING is 100% a participle:\nno, really",
    Location("a/rooms.agis", 3, 13, 3, 20),
    "/endpoints/0/method",
    fix=Fix("Write BOOK", (Change("replace", "/endpoints/0/method", "BOOK"),), safe=False),
)
WHOLE = Diagnostic("D113", "info", "nothing to serve <here> & \x1b[31m\ud800 there", Location("b, c: d"))
NOWHERE = Diagnostic("Z999", "error", "a rule nobody knows")


@pytest.fixture
def report() -> Report:
    return Report(
        findings=[
            Finding(PATH, "f1", (Replacement(4, 11, 4, 17, "/room"),)),
            Finding(METHOD, "f2"),
            Finding(WHOLE, "f3"),
            Finding(NOWHERE),
        ],
        files=["a/rooms.agis", "b, c: d", "clean.toml"],
        rules={
            rule.id: rule
            for rule in (
                Rule("P321", "trailing-slash", "MUST", "AGIS 4.1"),
                Rule("M230", "participle", "SHOULD", ""),
                Rule("D113", "nothing", "style", ""),
            )
        },
        source={"a/rooms.agis": TEXT}.get,
        version="1.2.3",
        ignored=2,
        baselined=1,
    )

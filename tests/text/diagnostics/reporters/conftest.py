"""A report with one finding of every kind."""

from __future__ import annotations

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.report import Finding, Replacement, Report, RuleText
from bespeak.text.source.change import Change
from bespeak.text.source.span import Location

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
            "P321": RuleText(
                id="P321",
                name="trailing-slash",
                severity="error",
                summary="A path does not end with a slash.",
                why="Two names for one thing.",
                source="AGIS 4.1",
            ),
            "M230": RuleText(id="M230", name="participle", severity="warning", summary="A method is a base form."),
            "D113": RuleText(id="D113", name="nothing", severity="info", summary="Nothing."),
        },
        source={"a/rooms.agis": TEXT}.get,
        version="1.2.3",
        ignored=2,
        baselined=1,
    )

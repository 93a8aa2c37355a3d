"""The rules of the readers: each id has one meaning, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

import bespeak
from bespeak.documents.agis.rules import RULES as AGIS_RULES
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.findings import RULES


def test_every_rule_that_is_reported_is_in_the_table_and_the_other_way_round() -> None:
    packages = (Path(bespeak.__path__[0]) / name for name in ("text", "state", "documents", "app", "agent"))
    texts = [path.read_text() for package in packages for path in package.rglob("*.py")]
    used = {rule for text in texts for rule in re.findall(r'"([DY]\d{3}|W1\d{2})"(?!:)', text)}
    assert used == {*RULES, *(rule.id for rule in AGIS_RULES)}


def test_a_value_in_a_message_is_short() -> None:
    assert len(brief("x" * 10_000)) < 100
    assert len(brief([["x" * 1000] * 1000] * 1000)) < 200
    assert brief(1 << 100_000) == "..."

"""A drawing shows every step with its state, whatever its caller has named it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bespeak.app.cli.workflows import draw_lines, draw_mermaid, draw_svg
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.workflows.spec import Spec, StepSpec
from bespeak.state.store.commands.records import NEVER, Record
from bespeak.state.store.commands.steps import StepRow

RECORD = Record("chain-1", "workflow", "a" * 64, None, "failed", 3, "{}", 1.0, 2.0, None, 0, NEVER)
ROWS = {1: StepRow(1, 1, "done", 200, "{}"), 2: StepRow(2, 2, "failed", 422, '{"message": "No money."}')}
HOSTILE = 'x"]; click s1 call alert(1)\n<script>&\x1b[31m'


def spec(*names: str, parallel: bool = False) -> Spec:
    steps = tuple(StepSpec("BOOK", "/rooms", name=name, compensate=StepSpec("CANCEL", "/rooms")) for name in names)
    authority = Authority(agent_id="a" * 64, scopes=(), headers={})
    return Spec(method="CHAIN", steps=steps, authority=authority, deadline=1e12, parallel=parallel)


def texts(svg: str) -> list[str]:
    return [text for element in ElementTree.fromstring(svg).iter() if (text := (element.text or "").strip())]


def test_a_picture_has_a_box_with_the_state_of_every_step() -> None:
    shown = texts(draw_svg(RECORD, spec("book", "pay", "tell"), ROWS))
    assert [text for text in shown if text in ("done", "failed", "pending")] == ["failed", "done", "failed", "pending"]
    assert "2  pay: BOOK /rooms" in shown
    assert "422  attempt 2 · undone by CANCEL /rooms" in shown


def test_a_batch_branches_from_its_beginning() -> None:
    assert draw_svg(RECORD, spec("a", "b", parallel=True), {}).count("M24 ") == 2
    assert [edge for edge in draw_mermaid(spec("a", "b", parallel=True), {}) if "-->" in edge] == [
        "  s0 --> s1",
        "  s0 --> s2",
    ]


def test_a_flowchart_follows_the_steps() -> None:
    drawn = list(draw_mermaid(spec("book", "pay"), ROWS))
    assert drawn[2:6] == [
        '  s1["book: BOOK /rooms<br/>done"]:::done',
        "  s0 --> s1",
        '  s2["pay: BOOK /rooms<br/>failed"]:::failed',
        "  s1 --> s2",
    ]


@pytest.mark.parametrize("name", [HOSTILE, HOSTILE * 50, "\u202e", "]]>"])
def test_names_stay_text_in_every_form(name: str) -> None:
    hostile = spec(name)
    svg = draw_svg(RECORD, hostile, {})
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()} <= {
        *("svg", "title", "rect", "text", "path")
    }
    [label] = [drawn for drawn in draw_mermaid(hostile, {}) if drawn.startswith("  s1[")]
    assert re.fullmatch(r'  s1\["[^"<>]*<br/>pending"\]:::pending', label)
    assert all(drawn.plain.isprintable() for drawn in draw_lines(RECORD, hostile, {}))


def test_a_thousand_steps_are_drawn() -> None:
    assert draw_svg(RECORD, spec(*map(str, range(1000))), {}).count(">pending<") == 1000

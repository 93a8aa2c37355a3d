"""Repairs made round by round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.agis_text import document, endpoint
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.config import Config, Judge, PathIgnore
from bespeak.checks.lint.document import Examined, examine, read_subject
from bespeak.checks.lint.fixer import FixResult, fix_text
from bespeak.checks.lint.subject import Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.tree import Change

HEAD = """\
# a service
agis: "1.0"
service: 'Acme Rooms' # quoted so
agtp: agtp://rooms.acme.example
description: Rooms for a night or a year.
version: "1.2.0"
"""
SEMANTIC = """\
    semantic:
      # as people say it
      intent: Books a room for the guest
      actor: Agent
      outcome: A reservation with status CONFIRMED exists
      capability: transaction
      confidence_guidance: 0.9
      impact_tier: irreversible
      is_idempotent: false
    input: {type: object, properties: {room_id: {type: string}}, required: [room_id]}
    output: {type: object, properties: {reservation_id: {type: string}}}
    errors: [room_unavailable]
"""


def text_of(method: str, path: str, verbs: str, more: str = "") -> str:
    entry = f"endpoints:\n  - method: {method}  # the verb\n    path: {path}\n{SEMANTIC}"
    return f"{HEAD}{entry}{more}vocabulary:\n  domain: hospitality\n  declared_verbs: {verbs}\n"


def looking(config: Config | None = None, file: str = "rooms.agis") -> Callable[[str], Examined]:
    judge = Judge(config or Config())
    return lambda text: examine(text, file, CONTEXT, judge)


def fix(text: str, *, unsafe: bool = False, config: Config | None = None) -> FixResult:
    return fix_text(text, looking(config), unsafe=unsafe)


def applied(result: FixResult) -> list[str]:
    return [finding.rule for finding in result.applied]


def test_safe_repairs_are_made_and_everything_else_stays() -> None:
    result = fix(text_of("book", "/room/", "[BOOK]"))
    wanted = text_of("BOOK", "/room", "[BOOK]").replace("actor: Agent", "actor: agent")
    assert result.text == wanted
    assert sorted(applied(result)) == ["M214", "P321", "S414"]
    assert {finding.rule for finding in result.left} == {"J638"}
    assert result.stuck == ()


def test_unsafe_fixes_must_be_asked_for_and_the_vocabulary_follows_the_methods() -> None:
    text = text_of("BOOK", "/book-room", "[BOOK]")
    assert "path: /book-room\n" in fix(text).text
    assert "path: /room\n" in fix(text, unsafe=True).text
    result = fix(text_of("BOOKING", "/room", "[BOOKING]"), unsafe=True)
    assert "method: BOOK  # the verb" in result.text
    assert "declared_verbs: [BOOK]" in result.text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_the_byte_order_mark_stay(mark: str, end: str) -> None:
    text, wanted = text_of("book", "/room/", "[]"), text_of("BOOK", "/room", "[BOOK]")
    result = fix(mark + text.replace("\n", end))
    assert result.text == mark + wanted.replace("actor: Agent", "actor: agent").replace("\n", end)


@rows(
    "config",
    Config(ignore=("P321",)),
    Config(select=("M2",)),
    Config(per_path_ignores=(PathIgnore("rooms.agis", "/endpoints/0/path", ("P3",)),)),
)
def test_disabled_findings_are_not_fixed(config: Config) -> None:
    result = fix(text_of("book", "/room/", "[BOOK]"), config=config)
    assert "M214" in applied(result)
    assert "path: /room/\n" in result.text


def test_ignored_findings_are_not_fixed_and_an_ignore_that_hides_nothing_goes_alone() -> None:
    path = "/room/  # bespeak: ignore[P321] the gateway wants it"
    assert path in fix(text_of("book", path, "[BOOK]")).text
    path = "/room  # where # bespeak: ignore[P321] long ago"
    assert "path: /room  # where\n" in fix(text_of("BOOK", path, "[BOOK]")).text
    path = "/room/  # bespeak: ignore[P321, M211] partly"
    assert "path: /room/  # bespeak: ignore[P321] partly\n" in fix(text_of("BOOK", path, "[BOOK]")).text
    ignored = "    # bespeak: ignore[P321,P320] no more\n    path:"
    text = text_of("BOOK", "/room", "[BOOK]").replace("    path:", ignored)
    assert fix(text).text == fix(text_of("BOOK", "/room", "[BOOK]")).text


def test_a_repair_that_makes_an_error_is_taken_back() -> None:
    second = f"  - method: BOOK\n    path: /room\n{SEMANTIC}"
    text = text_of("BOOKING", "/room", "[BOOK, BOOKING]", second)
    result = fix(text, unsafe=True)
    assert "method: BOOKING" in result.text  # BOOK /room is there already
    assert "M211" in {finding.rule for finding in result.stuck}
    assert result.text.count("actor: agent") == 2


def test_uncovered_error_does_not_revert_a_fix() -> None:
    text = text_of("BOOK", "/room", "[BOOK]").replace("semantic:", "semantics:").replace("actor: Agent", "actor: 5")
    result = fix(text, unsafe=True)
    assert "    semantic:\n" in result.text
    assert "D126" in applied(result)


def test_fix_that_the_notation_does_not_allow_is_stuck_and_unreadable_text_is_left() -> None:
    text = text_of("&verb BOOK", "/room/", "[*verb]")
    result = fix(text)
    assert result.text == text
    assert "P321" in {finding.rule for finding in result.stuck}
    result = fix("agis: [")
    assert (result.text, result.applied) == ("agis: [", ())
    assert [finding.rule for finding in result.left] == ["D102"]


def test_two_hundred_fixes_are_made_within_the_round_limit() -> None:
    verbs = ["BOOK", *(f"VERB{chr(65 + number // 26)}{chr(65 + number % 26)}" for number in range(200))]
    result = fix(text_of("BOOK", "/room", f"[{', '.join(verbs)}]"))
    assert "declared_verbs: [BOOK]" in result.text
    assert applied(result).count("V502") == 200


def fake(text: str, *fixes: tuple[str, Fix]) -> Examined:
    """Findings of no real rule, to see what becomes of repairs that go wrong."""
    subject = read_subject(text, "rooms.agis")
    assert isinstance(subject, Subject)
    found = [Finding(Diagnostic(rule, "warning", "odd", None, "/service", fix=fix)) for rule, fix in fixes]
    return Examined(tuple(found), 0, subject)


def renamed(value: str) -> Fix:
    return Fix(f"Write {value}", (Change("replace", "/service", value),))


def test_fix_that_mends_nothing_is_taken_back_and_fixes_that_undo_each_other_end() -> None:
    result = fix_text("service: a\n", lambda text: fake(text, ("Q101", renamed("b"))))
    assert (result.text, result.applied) == ("service: a\n", ())
    assert len(result.stuck) == 1

    def swing(text: str) -> Examined:
        return fake(text, ("Q101", renamed("b")) if text == "service: a\n" else ("Q102", renamed("a")))

    result = fix_text("service: a\n", swing)
    assert (result.text, len(result.applied)) == ("service: b\n", 1)


def test_a_repair_that_never_has_enough_comes_to_an_end() -> None:
    looks: list[str] = []

    def grow(text: str) -> Examined:
        looks.append(text)
        return fake(text, (f"Q{len(text)}", renamed(f"{yaml.safe_load(text)['service']}a")))

    result = fix_text("service: a\n", grow)
    assert len(result.applied) == 20
    assert len(looks) == 21


_METHODS = st.sampled_from(["BOOK", "book", "BOOKING", "BOOK_ROOM", "GET", "Find", "CANCLE", "STATUS"])
_PATHS = st.sampled_from(["/room", "/room/", "//room", "/Room", "/roomType", "/room/:id", "/get-room", "/a?x=1", "a"])
_ACTORS = st.sampled_from(["agent", "Agent", "agnet", "human"])
_NAMES = st.sampled_from(["room_id", "roomId", "Room ID"])


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """Documents with faults that repairs may stumble over."""
    entries = [
        endpoint(
            method=draw(_METHODS),
            path=draw(_PATHS),
            semantic={"actor": draw(_ACTORS), draw(st.sampled_from(["capability", "capabilty"])): "transaction"},
            input={"type": "object", "properties": {draw(_NAMES): {"type": "string"}}},
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    verbs = draw(st.lists(st.sampled_from(["BOOK", "book", "FIND", "GET"]), max_size=4))
    return document(*entries, vocabulary={"declared_verbs": verbs, "domain": "hospitality"})


@given(broken(), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_mending_twice_is_mending_once_and_no_comment_is_lost(whole: Any, unsafe: bool, flow: bool) -> None:
    lines = yaml.safe_dump(whole, sort_keys=False, default_flow_style=flow or None, width=100).splitlines()
    lines = ["# one", *lines] if flow else [*lines[:1], "# at the top", *lines[1:], "# at the end"]
    text = "\n".join(lines)
    before = [finding.diagnostic for finding in looking()(text).findings]
    once = fix(text, unsafe=unsafe)
    assert fix(once.text, unsafe=unsafe).text == once.text
    assert once.text.count("# ") == text.count("# ")
    assert sum(one.severity == "error" for one in once.left) <= sum(one.severity == "error" for one in before)


@given(st.sampled_from(["yaml", "flow", "crlf"]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_a_clean_document_stays_as_it_is(form: str, unsafe: bool) -> None:
    text = yaml.safe_dump(document(), sort_keys=False, default_flow_style=form == "flow")
    if form == "flow":
        text = "# one\n---\n" + text  # a text that begins with a brace is JSON
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    assert fix(text, unsafe=unsafe) == FixResult(text)

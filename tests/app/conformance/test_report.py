from __future__ import annotations

import msgspec
import pytest

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    Subject,
    Verdict,
    accepted,
    all_of,
    failed,
    faults,
    passed,
    skipped,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.report import ITEMS, Report, Result


async def _never(_subject: Subject) -> Outcome:
    raise AssertionError


def _report(**outcomes: Outcome) -> Report:
    """One check for each item, all passing but those given as i01, i02..."""
    results = []
    for item in ITEMS:
        outcome = outcomes.get("i" + item[-2:], passed())
        results.append(Result(Check(f"{item}a", f"about {item}", "1.2", _never), outcome))
    return Report("agtp://mini.example:4480", {"agtp_api_version": "1.0"}, None, tuple(results))


SEEN = Exchanged("QUERY", "/x", b'{"a":1}', 404, "Not Found", {}, b'{"error":{"code":"no"}}', "a" * 64, "a:b")


def test_one_failure_breaks_conformance() -> None:
    assert _report().conforms
    assert not _report(i03=failed("no")).conforms


def test_warnings_and_skips_do_not_break_conformance() -> None:
    assert _report(i03=Outcome(Verdict.WARN, "hm"), i04=skipped("why")).conforms


def test_the_text_names_every_item_and_its_verdict() -> None:
    lines = [line for _, line in _report(i03=failed("answered 404", SEEN)).lines()]
    for item in ITEMS:
        assert any(line.startswith(item) and ("fail" in line) == (item == "13.1-03") for line in lines)
    assert lines[-1] == "1 fail, 13 pass"


def test_a_failure_shows_its_note_and_evidence() -> None:
    text = "\n".join(line for _, line in _report(i03=failed("answered 404", SEEN)).lines())
    assert "answered 404" in text
    assert 'QUERY /x | Agent-ID: aaaaaaaa… | Authority-Scope: a:b | {"a":1} → 404 Not Found' in text


def test_a_pass_shows_no_evidence() -> None:
    assert "QUERY /x" not in "\n".join(line for _, line in _report(i03=passed(SEEN)).lines())


def test_server_cannot_control_the_terminal() -> None:
    nasty = Exchanged("QUERY", "/x", b"", 404, "\x1b[2J", {}, b"\x1b]0;title\x07" + b"\xff" * 9)
    text = "".join(line for _, line in _report(i03=failed("says \x1b[31m", nasty)).lines())
    assert text.isprintable()


def test_long_responses_are_truncated() -> None:
    long = Exchanged("QUERY", "/x", b"", 404, "Not Found", {}, b"x" * 100_000)
    assert len(str(long)) < 400


def test_the_json_form_has_items_and_checks() -> None:
    data = msgspec.json.decode(msgspec.json.encode(_report(i03=failed("answered 404", SEEN)).to_json()))
    assert data["conforms"] is False
    assert {"id": "13.1-03", "title": ITEMS["13.1-03"], "verdict": "fail"} in data["items"]
    check = next(entry for entry in data["checks"] if entry["id"] == "13.1-03a")
    assert check["note"] == "answered 404"
    assert check["evidence"]


def test_most_severe_verdict_counts() -> None:
    assert all_of([passed(), failed("a"), skipped("b"), failed("c")]) == failed("a; c")
    assert all_of([passed(), skipped("b")]).verdict is Verdict.PASS
    assert all_of([]).verdict is Verdict.NOT_APPLICABLE


def test_many_faults_are_counted_not_listed() -> None:
    assert faults(f"fault {number}" for number in range(9)).note.endswith("fault 4; and 4 more")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"reason":"x"}', "x"),
        (b'{"error":{"reason":"x"}}', "x"),
        (b'{"error":{"details":{"reason":"x"}}}', "x"),
        (b'{"error":"x"}', None),
        (b"[1]", None),
        (b"no JSON", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
)
def test_field_is_found_at_any_place_servers_use(body: bytes, expected: str | None) -> None:
    assert Exchanged("QUERY", "/", b"", 400, "", {}, body).field("reason") == expected


def test_identity_refusal_skips_the_check() -> None:
    turned_down = Exchanged("QUERY", "/x", b"", 401, "Unauthorized", {}, b"")
    assert accepted(SEEN) == passed(SEEN)
    assert accepted(turned_down).verdict is Verdict.SKIP

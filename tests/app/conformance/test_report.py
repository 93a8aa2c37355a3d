from __future__ import annotations

import msgspec
import pytest
from tests.cases import rows

from bespeak.app.conformance.run import ITEMS, CheckResult, ConformanceReport
from bespeak.app.conformance.subject import (
    Check,
    CheckOutcome,
    Exchanged,
    Subject,
    Verdict,
    all_of,
    could_not_tell,
    expect,
    failed,
    faults,
    passed,
)


async def _never(_subject: Subject) -> CheckOutcome:
    raise AssertionError


def _report(**outcomes: CheckOutcome) -> ConformanceReport:
    """One check for each item, all passing but those given as i01, i02..."""
    results = []
    for item in ITEMS:
        outcome = outcomes.get("i" + item[-2:], passed())
        results.append(CheckResult(Check(f"{item}a", f"about {item}", "1.2", _never), outcome))
    return ConformanceReport("agtp://mini.example:4480", {"agtp_api_version": "1.0"}, None, tuple(results))


SEEN = Exchanged("QUERY", "/x", b'{"a":1}', 404, "Not Found", {}, b'{"error":{"code":"no"}}', "a" * 64, "a:b")


def test_failure_breaks_conformance_and_warnings_and_undecided_checks_do_not() -> None:
    assert _report().conforms
    assert not _report(i03=failed("no")).conforms
    report = _report(i03=CheckOutcome(Verdict.WARN, "hm"), i04=could_not_tell("why"))
    assert (report.conforms, report.is_conclusive) == (True, False)
    assert report.verdict("13.1-04") is Verdict.COULD_NOT_TELL
    assert [line for _, line in report.lines()][-1] == "1 warn, 1 could-not-tell, 12 pass"


def test_text_names_every_item_and_shows_note_and_evidence_of_failures_only() -> None:
    lines = [line for _, line in _report(i03=failed("answered 404", SEEN)).lines()]
    for item in ITEMS:
        assert any(line.startswith(item) and ("fail" in line) == (item == "13.1-03") for line in lines)
    assert lines[-1] == "1 fail, 13 pass"
    text = "\n".join(line for _, line in _report(i03=failed("answered 404", SEEN)).lines())
    assert "answered 404" in text
    assert 'QUERY /x | Agent-ID: aaaaaaaa… | Authority-Scope: a:b | {"a":1} → 404 Not Found' in text
    assert "QUERY /x" not in "\n".join(line for _, line in _report(i03=passed(SEEN)).lines())


def test_response_cannot_control_the_terminal_and_is_truncated() -> None:
    nasty = Exchanged("QUERY", "/x", b"", 404, "\x1b[2J", {}, b"\x1b]0;title\x07" + b"\xff" * 9)
    text = "".join(line for _, line in _report(i03=failed("says \x1b[31m", nasty)).lines())
    assert text.isprintable()
    long = Exchanged("QUERY", "/x", b"", 404, "Not Found", {}, b"x" * 100_000)
    assert len(str(long)) < 400


def test_the_json_form_has_items_and_checks() -> None:
    data = msgspec.json.decode(msgspec.json.encode(_report(i03=failed("answered 404", SEEN)).to_json()))
    assert data["conforms"] is False
    assert {"id": "13.1-03", "title": ITEMS["13.1-03"], "verdict": "fail"} in data["items"]
    check = next(entry for entry in data["checks"] if entry["id"] == "13.1-03a")
    assert check["note"] == "answered 404"
    assert check["evidence"]


def test_most_severe_verdict_counts_and_many_faults_are_counted_not_listed() -> None:
    assert all_of([passed(), failed("a"), could_not_tell("b"), failed("c")]) == failed("a; c")
    assert all_of([passed(), could_not_tell("b")]).verdict is Verdict.COULD_NOT_TELL
    assert all_of([]).verdict is Verdict.NOT_APPLICABLE
    assert faults(f"fault {number}" for number in range(9)).note.endswith("fault 4; and 4 more")


@rows(
    "body, expected",
    (b'{"reason":"x"}', "x"),
    (b'{"error":{"reason":"x"}}', "x"),
    (b'{"error":{"details":{"reason":"x"}}}', "x"),
    (b'{"error":"x"}', None),
    (b"[1]", None),
    (b"no JSON", None),
    (b"\xff", None),
    (b"[" * 100_000, None),
)
def test_field_is_found_at_any_place_servers_use(body: bytes, expected: str | None) -> None:
    assert Exchanged("QUERY", "/", b"", 400, "", {}, body).field("reason") == expected


@rows(
    "status, body",
    (401, b""),
    (403, b""),
    (404, b'{"error":{"code":"agent-not-found"}}'),
    (400, b'{"error":{"code":"missing_agent_id"}}'),
    (404, b'{"error":"UNKNOWN_IDENTITY"}'),
    (262, b'{"error":{"type":"credentials-missing"}}'),
    (455, b""),
    (429, b""),
    (503, b""),
)
def test_refusal_of_the_caller_is_no_evidence(status: int, body: bytes) -> None:
    seen = Exchanged("QUERY", "/x", b"", status, "", {}, body)
    assert expect(seen, 404, 400).verdict is Verdict.COULD_NOT_TELL


def test_status_alone_decides_if_the_refusal_is_about_the_request() -> None:
    assert expect(SEEN, 404) == passed(SEEN)
    assert expect(SEEN, 405, 460).note == "answered 404, expected 405 Method Not Allowed or 460 Endpoint Violation"


@pytest.mark.parametrize(("name", "named"), [("id", False), ("invalid", True), ("ROOM", True), ("oom", False)])
def test_name_counts_only_as_a_whole_word(name: str, named: bool) -> None:
    assert Exchanged("QUERY", "/", b"", 422, "", {}, b'{"invalid":"/room"}').names(name) is named


@rows(
    "body, code",
    (b'{"code":"A_B"}', "a-b"),
    (b'{"error":{"error_code":"a"}}', "a"),
    (b'{"error":"Not Found"}', "not found"),
    (b"[]", ""),
)
def test_error_code_is_found_at_any_place_servers_use(body: bytes, code: str) -> None:
    assert Exchanged("QUERY", "/", b"", 400, "", {}, body).code == code

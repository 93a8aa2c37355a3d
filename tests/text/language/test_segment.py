"""Verbs in path segments: reported if they name an action, accepted if they name a thing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import check_each, rows

from bespeak.text.language.segment import SegmentVerdict, judge_segment


@rows(
    "segment",
    *("order", "book", "report", "booking", "order-history", "status", "search-results", "reservation", "uploads"),
    *("patient-record", "delivery-order", "calendar", "event", "cancel-policy", "refresh-token", "direct-deposit"),
    *("restore-points", "major-event", "live-events", "billing", "meetings", "subtask", "diagnoses", "fills"),
    *(
        *("transfer-orders", "listPrice", "purchaseOrders", "add-ons", "stay", "exhibit", "forest-stand"),
        *("cruise-ship", "launch-site", "sign-in", "check_in", "namespace", "v1", "", "é"),
        "a" * 200,
    ),
)
def test_a_segment_that_names_a_thing_passes(segment: str) -> None:
    assert judge_segment(segment) is None


@rows(
    "segment, verb, instead",
    ("get-restaurant", "get", "restaurant"),
    ("get_policy", "get", "policy"),
    ("bookReservation", "book", "reservation"),
    ("createOrder", "create", "order"),
    ("cancel-order", "cancel", "order"),
    ("create", "create", None),
    ("validate", "validate", "validation"),
    ("cancel", "cancel", "cancellation"),
    ("bulk-delete", "delete", None),
    ("address-verify", "verify", "address"),
    ("exists", "exist", None),
    ("is-valid", "is", None),
    ("unpublish", "unpublish", None),
)
def test_verb_is_an_error_with_a_suggestion(segment: str, verb: str, instead: str | None) -> None:
    verdict = judge_segment(segment)
    assert verdict is not None
    assert (verdict.tier, verdict.verb, verdict.instead) == ("error", verb, instead)


@rows(
    "segment",
    *("book-table", "search-users", "start", "createorder", "add-to-data"),
    *("searching", "start-job", "startJob", "payOrder", "listParcels", "list-trackers", "listquotashares", "setLimit"),
    *("toggleStatus", "putImagePolicy", "bulk-import", "associateUser", "bookShop", "stopSigns", "setMenus", "grok"),
    *("migratingMachines", "text-uncased", "interconnectGroups", "markSheet", "payPeriods"),
)
def test_a_word_that_is_likely_a_verb_is_a_warning(segment: str) -> None:
    verdict = judge_segment(segment)
    assert verdict is not None
    assert verdict.tier == "warning"


def test_segment_that_is_or_begins_with_the_method_is_an_error_and_a_verb_behind_a_warning() -> None:
    assert judge_segment("book-table", "BOOK") == SegmentVerdict("error", "book", "method", "table")
    assert judge_segment("bookTable", "BOOKING") == SegmentVerdict("error", "book", "method", "table")
    assert judge_segment("booktable", "BOOK") == SegmentVerdict("error", "book", "method", "table")
    assert judge_segment("book", "BOOK") == SegmentVerdict("error", "book", "method")
    assert judge_segment("booking", "BOOK") is None
    assert judge_segment("search", last=True) == SegmentVerdict("warning", "search", "tail")
    assert judge_segment("search") is None
    assert judge_segment("order", last=True) is None


VERB_FORMS = """
to-book to-cancel toBook found finds fetches cancels deletes exists created sent sold booked confirmed
archived confirming creating cancelling validating sending getting adding updating sending-mail
sendingMail deleting-users verifying-identity finds-rooms gets-user user-exists order-created items-found
bulk-delete-users was-sent
"""
THINGS = """
bookings booking building findings finding meetings orders updates makes reports billing shipping-address
meeting-room parking-lot landing-page booking-reference onboarding invoicing ticketing routing hosting messaging
pricing scheduling tracking listings ratings settings followers following created-orders closed-tickets
existing-customers remaining-balance missing-items connecting-flights recurring-payments operating-hours
signing-keys lost-and-found left-luggage sales-orders savings-accounts returns data-processing time-to-live
to-do to-dos to-address holdings earnings filings offerings paintings recordings tests runs holds uploads likes
visits claims moves transfers stays used-cars paid-leave approved-vendors related-items seed rose thought
edits installs sends text sms diff showRoom
"""


@pytest.mark.requirement("AGIS-5-3")
def test_a_verb_is_an_error_in_every_form_and_position() -> None:
    def check(segment: str) -> None:
        verdict = judge_segment(segment)
        assert verdict is not None
        assert verdict.tier == "error"

    check_each(VERB_FORMS.split(), check)


def test_a_noun_that_looks_like_a_verb_form_passes() -> None:
    def check(segment: str) -> None:
        assert judge_segment(segment) is None

    check_each(THINGS.split(), check)


@given(st.text(max_size=100) | st.from_regex(r"[a-zA-Z_-]{1,100}", fullmatch=True), st.sampled_from(["", "BOOK"]))
def test_any_segment_is_judged_and_suggestions_are_not_verbs(segment: str, method: str) -> None:
    verdict = judge_segment(segment, method)
    assert verdict is None or (verdict.verb and verdict.instead != segment)


@pytest.mark.parametrize(("segment", "verb"), [("united", "unite"), ("detailed", "detail")])
def test_a_past_form_that_is_rather_an_adjective_is_a_warning(segment: str, verb: str) -> None:
    assert judge_segment(segment) == SegmentVerdict("warning", verb, "past")


@pytest.mark.parametrize("segment", ["crew", "left", "led", "seed", "bread", "created-order"])
def test_a_thing_that_looks_like_a_past_form_passes(segment: str) -> None:
    assert judge_segment(segment) is None


@pytest.mark.parametrize("name", ["seen.txt", "unseen.txt"])
def test_segments_of_public_apis_are_judged_as_a_person_does(name: str) -> None:
    groups: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "segments" / name).read_text("utf-8").splitlines():
        if line.startswith("["):
            group = groups.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            group += line.split()
    refused = [segment for segment in groups["things"] if (found := judge_segment(segment)) and found.tier == "error"]
    missed = [segment for segment in groups["verbs"] if judge_segment(segment) is None]
    assert refused == []
    assert len(missed) <= 0.05 * len(groups["verbs"]), missed

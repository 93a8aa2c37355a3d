"""Replies: success, refusals in every shape servers give them, and the advisories on them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.agent.client.reply import Advisory, InventoryEntry, Reply, parse_inventory
from bespeak.errors import RemoteProtocolError


def reply(status: int, body: Any = None, **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, "Reason", names, b"" if body is None else json.dumps(body).encode())


@pytest.mark.parametrize("status", [200, 202, 204, 261, 263])
def test_other_2xx_are_successes_without_an_error(status: int) -> None:
    assert reply(status, {}).ok
    assert reply(status, {}).error is None


@pytest.mark.parametrize("status", [262, 304, 400, 422, 459, 500])
def test_262_and_everything_outside_2xx_is_a_refusal(status: int) -> None:
    assert not reply(status).ok
    assert reply(status).error is not None


@pytest.mark.parametrize("name", ["message", "detail", "explanation"])
def test_the_message_is_read_under_all_names_servers_use(name: str) -> None:
    error = reply(404, {"error": {"code": "endpoint-not-found", name: "No such path."}}).error
    assert error is not None
    assert (error.code, error.message) == ("endpoint-not-found", "No such path.")


def test_details_and_the_whole_error_object_are_kept() -> None:
    error = reply(422, {"error": {"code": "room_unavailable", "details": {"next": 3}, "path": "/room"}}).error
    assert error is not None
    assert error.details == {"next": 3}
    assert error.members["path"] == "/room"


@pytest.mark.parametrize("body", [None, [], "x", {"error": 7}, {"error": {"code": 7, "details": []}}, {}])
def test_a_refusal_that_says_nothing_has_the_code_of_its_status(body: Any) -> None:
    error = reply(459, body).error
    assert error is not None
    assert (error.code, error.message, error.details) == ("method-violation", "Reason", {})


def test_a_refusal_whose_body_is_not_json_has_the_code_of_its_status() -> None:
    error = Reply(503, "", {}, b"<html>").error
    assert error is not None
    assert (error.code, error.message) == ("unavailable", "Unavailable")


def test_an_unknown_status_still_has_a_code() -> None:
    error = reply(499).error
    assert error is not None
    assert error.code == "status-499"


def test_a_body_that_is_not_json_is_a_fault_of_the_peer() -> None:
    with pytest.raises(RemoteProtocolError, match="not JSON"):
        Reply(200, "OK", {}, b"{").json()


def test_the_output_is_the_body_or_the_result_in_the_envelope() -> None:
    assert reply(200, {"reservation_id": "r"}).output == {"reservation_id": "r"}
    assert reply(200, {"status": 200, "task_id": "t", "result": {"a": 1}}).output == {"a": 1}
    assert reply(200, [1]).output == [1]
    assert reply(204).output == {}


def test_an_output_that_only_resembles_the_envelope_is_left_alone() -> None:
    for body in ({"status": "paid", "result": {}}, {"status": 200, "result": {}, "more": 1}, {"status": 200}):
        assert reply(200, body).output == body


def test_a_reply_says_whether_it_was_kept_and_where_it_is_on_record() -> None:
    kept = Reply(200, "OK", {"idempotency-replayed": "true", "audit-id": "aud-1"}, b"{}")
    assert (kept.replayed, kept.audit_id) == (True, "aud-1")
    assert (reply(200, {}).replayed, reply(200, {}).audit_id) == (False, None)


def test_warnings_are_parsed() -> None:
    warned = reply(
        200,
        {},
        agtp_catalog_warning="deprecated; successor=AUDIT; removed_in=2.0.0",
        agtp_endpoint_warning="deprecated; successor=RESERVE /rooms",
    )
    assert warned.warnings == [
        Advisory("catalog", "deprecated", "AUDIT", "2.0.0"),
        Advisory("endpoint", "deprecated", "RESERVE /rooms", None),
    ]
    assert reply(200, {}).warnings == []


@given(st.text(max_size=60), st.binary(max_size=60))
@settings(max_examples=100)
def test_whatever_a_server_says_it_can_be_read(header: str, body: bytes) -> None:
    strange = Reply(422, header, {"agtp-catalog-warning": header}, body)
    assert strange.error is not None
    assert len(strange.warnings) == 1


def test_a_304_says_that_nothing_has_changed() -> None:
    assert reply(304).unchanged
    assert not reply(200, {}).unchanged


ENTRY = {"method": "BOOK", "path": "/room", "description": "Book a room."}
READ = [InventoryEntry("BOOK", "/room", "Book a room.")]


@pytest.mark.parametrize(
    "answer",
    [
        [ENTRY],
        {"items": [ENTRY], "item_count": 1},
        {"methods": [ENTRY]},
        {"agtp_version": "1.0", "endpoints": [{**ENTRY, "semantic": {}}], "methods": "x"},
        [ENTRY, 7, {"path": "/no-method"}],
    ],
)
def test_every_form_is_read(answer: Any) -> None:
    assert parse_inventory(answer) == READ


def test_a_method_without_a_path_is_at_the_root() -> None:
    assert parse_inventory([{"name": "QUERY"}]) == [InventoryEntry("QUERY", "/", "")]


@pytest.mark.parametrize("answer", [{}, {"items": 3}, "x", None, 7])
def test_anything_else_is_a_fault_of_the_peer(answer: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_inventory(answer)

"""A POST only reads if its verb says so and nothing speaks against it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.adoption.evidence import (
    acts,
    change_signs,
    deeds,
    field_deeds,
    only_reads,
    program_field,
    sentences,
    takes_back,
)
from bespeak.documents.adoption.facade import Candidate


def post(path: str, name: str = "", **fields: Any) -> Candidate:
    return Candidate(method="POST", path=path, name=name, **fields)


@rows(
    "candidate, word",
    (post("/pets/search"), "search"),
    (post("/carts/{id}/estimate"), "estimate"),
    (post("/names", "checkName", successes=frozenset({"200"})), "check"),
    (post("/names", "names_get"), "get"),
    (post("/user-exists"), "exists"),
    (post("/name-taken", "isNameTaken"), "is"),
    (post("/validations/email", "POST_validations-email", summary="Validate an address"), "validate"),
    (post("/charities", summary="Get the details of charities"), "get"),
    (post("/checkStation", summary="Check if the station is open"), "check"),
)
def test_reading_verb_is_enough_if_nothing_contradicts_it(candidate: Candidate, word: str) -> None:
    assert only_reads(candidate, word)


@rows(
    "candidate, word",
    (post("/pets/search", successes=frozenset({"200", "201"})), "search"),
    (post("/pets/search", successes=frozenset({"202"})), "search"),
    (post("/pets/validate", successes=frozenset({"204"})), "validate"),
    (post("/pets/search", starts_job=True), "search"),
    (post("/pets/search", summary="Search pets and delete them"), "search"),
    (post("/pets", "findAndRemovePets"), "find"),
    (post("/repos/{id}/fetch"), "fetch"),
    (post("/todos/{id}/check"), "check"),
    (post("/checkUser", "post-checkUser", summary="Request to verify a user"), "check"),
    (post("/checkUser", "checkUser", description="Triggers the verification"), "check"),
    (post("/phones/{id}/verify", "verifyPhone"), "verify"),
    (post("/reviews", "reviewOrder"), "review"),
    (post("/oauth/token", "getToken"), "get"),
    (post("/credits", summary="Get a credit"), "get"),
    (post("/authorization", "getAccountTokens"), "get"),
    (post("/todos/{id}/check", summary="Check the todo"), "check"),
)
def test_status_answer_prose_or_another_verb_speak_against_reading(candidate: Candidate, word: str) -> None:
    assert not only_reads(candidate, word)


@rows(
    "path, name, verb",
    ("/orders/{id}/cancel", "cancelOrder", "cancel"),
    ("/orders/{id}/cancel", "", "cancel"),
    ("/user/logout", "logoutUser", "logout"),
    ("/invoices/{id}/pdf", "renderInvoice", ""),
    ("/issues/create-meta", "getCreateMeta", ""),
    ("/report", "report", ""),
    ("/vms/{id}/start", "", "start"),
    ("/lamps/{id}/toggle", "", "toggle"),
    ("/dialog.open", "dialog_open", "open"),
    ("/key/generate", "", "generate"),
    ("/reports/generate", "", ""),
    ("/pods/{id}/{action}", "", "control"),
    ("/actions/{action}", "", ""),
    ("/actions/{idAction}/member", "", ""),
    ("/request-token", "getToken", "request"),
    ("/requests/tokens", "", ""),
    ("/status/call", "status_call", ""),
)
def test_get_acts_if_its_verb_does(path: str, name: str, verb: str) -> None:
    assert acts(Candidate(method="GET", path=path, name=name)) == verb


@rows(
    "summary, description, verb",
    ("Reboots the machine", "", "reboot"),
    ("Token", "The token of the account is regenerated.", "regenerate"),
    ("Get the account", "Returns the account. The unread counter is reset.", "reset"),
    ("A new session is created", "", "create"),
    ("List of the trains", "", ""),
    ("Get a job", "The job is deleted after 30 days.", ""),
    ("Get x", "This endpoint is deprecated and will be removed in version 3.", ""),
    ("Jobs of a skill", "", ""),
)
def test_get_acts_if_a_sentence_says_so(summary: str, description: str, verb: str) -> None:
    assert acts(Candidate(method="GET", path="/things/{id}", summary=summary, description=description)) == verb


@rows(
    "text, verb",
    ("Gets a note. Saves the output.", "save"),
    ("Lists files. It also deletes temporary ones.", "delete"),
    ("Returns the status. Will restart the service if it is down.", "restart"),
    ("Reads a page. Afterwards a mail is sent to the owner.", "send"),
    ("Looks up a key. Run the migration when missing.", "migrate"),
    ("Shows the log.\n\nSide effects:\n- Truncates the log\n", "truncate"),
    ("Returns a report. Write the result to the disk.", "write"),
)
def test_every_sentence_says_what_a_tool_does(text: str, verb: str) -> None:
    assert verb in [deed.verb for deed in deeds(text, broad=True)]


@rows(
    "text, verb",
    ("The API key of the account is regenerated.", "regenerate"),
    ("When this endpoint is called, all other tokens are revoked.", "revoke"),
    ("Returns the account. The unread counter is reset.", "reset"),
    ("A new session is created", "create"),
    ("Uninstalls your app from a workspace.", "uninstall"),
)
def test_passive_and_third_person_count_for_a_get(text: str, verb: str) -> None:
    assert verb in [deed.verb for deed in deeds(text, broad=False)]


@rows(
    "text",
    "Returns the job. The job is deleted after 30 days.",
    "This endpoint is deprecated and will be removed in version 3.",
    "Keys that are revoked are not returned.",
    "The report is created by another job every night.",
    "Lists files. Use delete_file to remove one.",
    "Stops of an agency",
    "Search. Supports paging.\nHandles errors. Set `limit` to get more.",
    "The message can be sent again later.",
)
def test_sentences_about_something_else_say_nothing(text: str) -> None:
    assert list(deeds(text, broad=False)) == []


@rows(
    "texts, says",
    (("If true, the note is deleted after reading.", "Whether to overwrite the local copy"), True),
    (("Message to send", "Deletes the source afterwards."), True),
    (("Search query to run", "Only items created after this date"), False),  # filters
    (("Id of the note to read", "Only commits with this path"), False),
)
def test_text_of_a_field_says_what_the_call_does(texts: tuple[str, str], says: bool) -> None:
    assert [bool(list(field_deeds(text))) for text in texts] == [says, says]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(sentences(text))
    assert all(deed.verb for deed in (*deeds(text, broad=True), *field_deeds(text)))


TEXT: dict[str, Any] = {"type": "string"}


@rows(
    "name, description",
    ("expression", ""),
    ("code", ""),
    ("script", "Anything"),
    ("command", ""),
    ("python_code", ""),
    ("sql", "Read-only"),
    ("query", "The SQL query to run"),
    ("fn", "JavaScript function to evaluate"),
    ("input", "Code to be executed"),
)
def test_program_may_do_anything(name: str, description: str) -> None:
    assert program_field({name: {**TEXT, "description": description}}, "Only reads.", reads=False) == name


@rows(
    "name, description",
    ("code", "ISO 3166 country code"),
    ("language_code", ""),
    ("expression", "cron expression"),
    ("query", "Words to search for"),
    ("statement", "Number of the bank statement"),
)
def test_ordinary_value_is_not_a_program(name: str, description: str) -> None:
    assert program_field({name: {**TEXT, "description": description}}, "", reads=False) == ""


def test_only_a_query_language_is_believed_to_read_if_text_and_hint_say_so() -> None:
    for name, found in (("sql", ""), ("script", "script")):
        assert program_field({name: TEXT}, "Runs it in read-only mode", reads=False, read_only=True) == found
    assert program_field({"sql": TEXT}, "Runs it in read-only mode", reads=False) == "sql"
    assert program_field({"sql": TEXT}, "Runs it", reads=False, read_only=True) == "sql"


def test_choice_of_an_action_is_a_sign() -> None:
    field = {"action": {"enum": ["get", "delete"]}}
    assert list(change_signs(field, reads=False)) == ["its field 'action' may be 'delete'"]
    # The filter of a GET names actions of others.
    assert list(change_signs(field, reads=True)) == []
    performed = {"action": {"enum": ["get", "delete"], "description": "The action to perform"}}
    assert list(change_signs(performed, reads=True)) == ["its field 'action' may be 'delete'"]
    # A choice among things is not one of an action.
    assert list(change_signs({"method": {"enum": ["labels", "members"]}}, reads=False)) == []


def test_text_of_a_field_is_a_sign() -> None:
    field = {"purge": {"type": "boolean", "description": "If true, the note is deleted after reading."}}
    assert list(change_signs(field, reads=False)) == ["its field 'purge' says 'is deleted'"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("unlock", "lock", True), ("disable", "enable", True), ("create", "delete", False), ("list", "delete", False)],
)
def test_opposite_takes_back_unless_it_makes_anew(one: str, other: str, expected: bool) -> None:
    assert takes_back(one, other) is expected

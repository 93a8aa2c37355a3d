"""A POST only reads if its verb says so and nothing speaks against it."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.adoption.evidence import acts, only_reads
from bespeak.documents.adoption.facade import Candidate


def post(path: str, name: str = "", **fields: Any) -> Candidate:
    return Candidate(method="POST", path=path, name=name, **fields)


@pytest.mark.parametrize(
    ("candidate", "word"),
    [
        (post("/pets/search"), "search"),
        (post("/carts/{id}/estimate"), "estimate"),
        (post("/names", "checkName", successes=frozenset({"200"})), "check"),
        (post("/names", "names_get"), "get"),
        (post("/user-exists"), "exists"),
        (post("/name-taken", "isNameTaken"), "is"),
        (post("/validations/email", "POST_validations-email", summary="Validate an address"), "validate"),
    ],
)
def test_reading_verb_is_enough_if_nothing_contradicts_it(candidate: Candidate, word: str) -> None:
    assert only_reads(candidate, word)


@pytest.mark.parametrize(
    ("candidate", "word"),
    [
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
    ],
)
def test_status_answer_prose_or_another_verb_speak_against_reading(candidate: Candidate, word: str) -> None:
    assert not only_reads(candidate, word)


@pytest.mark.parametrize(
    ("path", "name", "verb"),
    [
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
    ],
)
def test_get_acts_if_its_verb_does(path: str, name: str, verb: str) -> None:
    assert acts(Candidate(method="GET", path=path, name=name)) == verb


@pytest.mark.parametrize(
    ("summary", "description", "verb"),
    [
        ("Reboots the machine", "", "reboot"),
        ("Token", "The token of the account is regenerated.", "regenerate"),
        ("Get the account", "Returns the account. The unread counter is reset.", "reset"),
        ("A new session is created", "", "create"),
        ("List of the trains", "", ""),
        ("Get a job", "The job is deleted after 30 days.", ""),
        ("Get x", "This endpoint is deprecated and will be removed in version 3.", ""),
        ("Jobs of a skill", "", ""),
    ],
)
def test_get_acts_if_a_sentence_says_so(summary: str, description: str, verb: str) -> None:
    assert acts(Candidate(method="GET", path="/things/{id}", summary=summary, description=description)) == verb

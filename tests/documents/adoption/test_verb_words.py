"""The verb of a name is found wherever it stands, and a noun is not taken for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.verb_words import (
    SURE,
    bare_words,
    change_words,
    changing_words,
    name_verb,
    path_verb,
    said_words,
    tool_words,
)
from bespeak.text.language.names import changes


@rows(
    "name, path, word",
    ("createPet", "/pets", "create"),
    ("PetController_create", "/pets", "create"),
    ("ComputeNode_Reboot", "/nodes/{id}/reboot", "reboot"),
    ("compute_node_reboot", "/compute/nodes/{id}/reboot", "reboot"),
    ("pulls/submit-review", "/reviews/{id}/events", "submit"),
    ("loadBalancers_add_droplets", "/load_balancers/{id}/droplets", "add"),
    ("compute.instances.insert", "/compute/v1/instances", "insert"),
    ("gmail.users.messages.batchDelete", "/messages/batchDelete", "delete"),
    ("meetingRegistrantCreate", "/registrants", "create"),
    ("create_item_items__post", "/items/", "create"),
    ("actions/re-run-workflow", "/runs/{id}/rerun", "rerun"),
    ("placeOrder", "/store/order", "order"),
    ("post-checkUser", "/checkUser", "check"),
    ("post-unSuspendUser", "/unSuspendUser", "unsuspend"),
    ("userExists", "/user-exists", "exists"),
    ("bookRoom", "/rooms", "book"),
    ("approveUsingPOST_1", "/orders/{id}/approval", "approve"),
    ("ChangeOrderCharges_Post", "/ChangeOrderCharges", ""),
    ("usersUsersIdPost", "/users/{id}", ""),
    ("weather", "/weather", ""),
)
def test_verb_of_a_name_is_its_verb_word(name: str, path: str, word: str) -> None:
    found = name_verb(Candidate(method="POST", path=path, name=name))
    assert (found.word if found else "") == word


@rows(
    "method, path, word",
    ("POST", "/orders/{id}/cancel", "cancel"),
    ("POST", "/jobs/{id}:run", "run"),
    ("POST", "/chat.delete", "delete"),
    ("POST", "/invoices/{id}/mark_lost", "mark"),
    ("POST", "/users/{id}/orders", ""),
    ("GET", "/agency/{id}/station", ""),
    ("GET", "/vms/{id}/start", "start"),
    ("GET", "/dialog.open", "open"),
)
def test_command_ends_a_path(method: str, path: str, word: str) -> None:
    found = path_verb(Candidate(method=method, path=path))
    assert (found.word if found else "") == word


def test_noun_at_the_end_is_doubtful_and_names_come_before_prose_without_their_manner() -> None:
    found = path_verb(Candidate(method="POST", path="/users/{id}/profile"))
    assert found.trust < SURE
    candidate = Candidate(method="DELETE", path="/members/{id}", name="removeMember", summary="Find a member to drop")
    assert next(said_words(candidate)).word == "remove"
    assert tuple(bare_words(Candidate(name="reverse_geocode"))) == ("geocode",)
    assert tuple(bare_words(Candidate(name="bulk_delete_users"))) == ("delete", "users")


def test_changing_words_are_found_in_names_and_prose_unless_a_hint_explains_them() -> None:
    candidate = Candidate(method="POST", path="/x", name="find_and_delete", summary="Search and replace a text")
    assert [word for word, _ in changing_words(candidate)] == ["delete", "replace"]
    assert [changes(word) for word in ("fetch", "validate", "remove", "BOOK")] == [False, False, True, True]
    assert changing("take_screenshot", "Take a screenshot", read_only=True) == []
    assert changing("take_screenshot", "Take a screenshot") != []
    assert changing("delete_user", "Delete a user", read_only=True) == ["delete", "delete"]


def first(name: str, summary: str = "") -> str:
    return next(tool_words(Candidate(name=name, summary=summary))).word


def changing(name: str, summary: str = "", **hints: Any) -> list[str]:
    return [word for word, _ in change_words(Candidate(name=name, summary=summary, **hints))]


@pytest.mark.requirement("AGIS-C.3-2")
@rows(
    "name, summary, word",
    ("book_reservation", "Books a reservation", "book"),
    ("get_data", "", "get"),
    ("webSearch", "Performs a web search", "search"),
    ("voice_clone", "Create a clone of a voice", "clone"),
    ("commit", "Records changes to the repository", "commit"),
    ("log", "Shows the commit logs", "show"),
    ("branch", "List branches", "list"),
    ("console_messages", "Returns all console messages", "return"),
    ("post_search", "Search by title", "search"),
    ("take_screenshot", "Take a screenshot of the page", "screenshot"),
    ("get_report", "Generates a report and mails it", "generate"),
    ("batch_create_items", "Create items", "create"),
)
def test_name_says_the_verb_unless_the_sentence_contradicts(name: str, summary: str, word: str) -> None:
    assert first(name, summary) == word


@rows(
    "name, summary, words",
    ("get_user", "Get a user", []),
    ("get_create_fields", "Get the fields for creating an issue", []),
    ("get_and_delete_mail", "Get a mail", ["delete"]),
    ("get_mail", "Get a mail and delete it", ["delete"]),
    ("diff", "Shows differences between branches or commits", []),
    ("find", "Run a find query against a collection", []),
    ("click", "Click an element", ["click", "click"]),
    ("files_delete", "", ["delete"]),
)
def test_words_for_a_change_are_found_where_verbs_stand(name: str, summary: str, words: list[str]) -> None:
    assert changing(name, summary) == words

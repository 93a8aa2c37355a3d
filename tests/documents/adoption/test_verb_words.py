"""The verb of a name is found wherever it stands, and a noun is not taken for it."""

from __future__ import annotations

import pytest

from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.verb_words import SURE, changes, changing_words, name_verb, path_verb, said_words


@pytest.mark.parametrize(
    ("name", "path", "word"),
    [
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
    ],
)
def test_verb_of_a_name_is_its_verb_word(name: str, path: str, word: str) -> None:
    found = name_verb(Candidate(method="POST", path=path, name=name))
    assert (found.word if found else "") == word


@pytest.mark.parametrize(
    ("method", "path", "word"),
    [
        ("POST", "/orders/{id}/cancel", "cancel"),
        ("POST", "/jobs/{id}:run", "run"),
        ("POST", "/chat.delete", "delete"),
        ("POST", "/invoices/{id}/mark_lost", "mark"),
        ("POST", "/users/{id}/orders", ""),
        ("GET", "/agency/{id}/station", ""),
        ("GET", "/vms/{id}/start", "start"),
        ("GET", "/dialog.open", "open"),
    ],
)
def test_command_ends_a_path(method: str, path: str, word: str) -> None:
    found = path_verb(Candidate(method=method, path=path))
    assert (found.word if found else "") == word


def test_noun_at_the_end_of_a_path_is_doubtful() -> None:
    found = path_verb(Candidate(method="POST", path="/users/{id}/profile"))
    assert found is not None
    assert found.trust < SURE


def test_prose_comes_after_the_verb_of_a_name() -> None:
    candidate = Candidate(method="DELETE", path="/members/{id}", name="removeMember", summary="Find a member to drop")
    assert next(said_words(candidate)).word == "remove"


def test_words_that_change_something_are_found_in_names_and_prose() -> None:
    candidate = Candidate(method="POST", path="/x", name="find_and_delete", summary="Search and replace a text")
    assert [word for word, _ in changing_words(candidate)] == ["delete", "replace"]


def test_reading_changes_nothing_and_removing_does() -> None:
    assert [changes(word) for word in ("fetch", "validate", "remove", "BOOK")] == [False, False, True, True]

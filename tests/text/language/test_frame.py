"""Frames and the verbs inside them."""

from __future__ import annotations

import pytest

from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.phrases import behind_condition, inner_verb, is_launch, passive_verb


@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        ("start", "starts a job that deletes files", ("delete", 4)),
        ("submit", "submits a request to delete files", ("delete", 4)),
        ("start", "starts the process of deleting files", ("delete", 4)),
        ("submit", "submits a request for the deletion of files", ("delete", 5)),
        ("start", "starts sending a campaign", ("send", 1)),
        ("schedule", "schedules a message to be sent later", ("send", 5)),
        ("launch", "launches a task that silently removes files", ("remove", 5)),
        ("start", "starts a server that stores files", None),
        ("create", "creates a policy that denies access", None),
        ("delete", "deletes a job that creates files", None),
        ("start", "starts", None),
        ("start", "starts a job", None),
    ],
)
def test_launching_verb_leads_to_the_verb_behind_its_object(
    verb: str, text: str, expected: tuple[str, int] | None
) -> None:
    assert inner_verb(verb, text.split(), 0) == expected


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("Allows a layer to be deleted", "delete"),
        ("Requests that a running import be cancelled", "cancel"),
        ("Lets a room be booked online", "book"),
        ("If it exists, removes the rule", "remove"),
        ("For a given zone, returns its servers", "return"),
        ("When nobody uses it, deletes the queue", "delete"),
        ("Profiles are updated", "update"),
        ("Users are added to a group", "add"),
        ("Records are soft-deleted", "delete"),
    ],
)
def test_the_first_verb_is_the_one_inside_the_frame(text: str, verb: str) -> None:
    assert head_verbs(text)[0].verb == verb


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("Returns a document, including its owner and labels", {"return"}),
        ("Get the create and update times of an object", {"get"}),
        ("Gets statistics about opens, clicks, and bounces", {"get"}),
        ("Lists jobs and allows you to filter them", {"list", "filter", "allow"}),
        ("Uploads a file to analyze it", {"upload", "analyze"}),
        ("Tells the service to stop an export", {"tell", "stop"}),
        ("Cleans a pool by deleting its entries", {"clean", "delete"}),
        ("Adds or removes members", {"add", "remove", "change"}),
        ("Retrieve upgrade, patch, and reset history", {"retrieve"}),
    ],
)
def test_all_verbs_and_no_nouns_are_found(text: str, verbs: set[str]) -> None:
    assert {found.verb for found in head_verbs(text)} == verbs


def test_submitting_a_job_starts_it() -> None:
    assert is_launch("submit", ["submits", "a", "training", "job", "for", "a", "model"], 0)
    assert not is_launch("submit", ["submits", "a", "form"], 0)


def test_participle_is_found_behind_adverbs() -> None:
    assert passive_verb(["be", "permanently", "deleted"], 0) == ("delete", 2)
    assert passive_verb(["be", "there"], 0) is None


def test_only_a_leading_clause_or_phrase_is_a_condition() -> None:
    assert behind_condition(["if", "it", "exists", ",", "removes", "it"]) == 4
    assert behind_condition(["removes", "it", ",", "if", "it", "exists"]) is None
    assert behind_condition(["if", "it", "exists"]) is None
    assert behind_condition([]) is None

"""Frames and the verbs inside them."""

from __future__ import annotations

from tests.cases import rows

from bespeak.text.language import phrases
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.phrases import (
    _READINGS,
    behind_condition,
    hinted_verb,
    inner_verb,
    meant_verb,
    nominal_verb,
    passive_verb,
    readings,
)
from bespeak.text.language.verb_form import is_verb


@rows(
    "verb, text, expected",
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
)
def test_launching_verb_leads_to_the_verb_behind_its_object(
    verb: str, text: str, expected: tuple[str, int] | None
) -> None:
    assert inner_verb(verb, text.split(), 0) == expected


@rows(
    "text, verb",
    ("Allows a layer to be deleted", "delete"),
    ("Requests that a running import be cancelled", "cancel"),
    ("Lets a room be booked online", "book"),
    ("If it exists, removes the rule", "remove"),
    ("For a given zone, returns its servers", "return"),
    ("When nobody uses it, deletes the queue", "delete"),
    ("Profiles are updated", "update"),
    ("Users are added to a group", "add"),
    ("Records are soft-deleted", "delete"),
)
def test_the_first_verb_is_the_one_inside_the_frame(text: str, verb: str) -> None:
    assert head_verbs(text)[0].verb == verb


@rows(
    "text, verbs",
    ("Returns a document, including its owner and labels", {"return"}),
    ("Get the create and update times of an object", {"get"}),
    ("Gets statistics about opens, clicks, and bounces", {"get"}),
    ("Lists jobs and allows you to filter them", {"list", "filter", "allow"}),
    ("Uploads a file to analyze it", {"upload", "analyze"}),
    ("Tells the service to stop an export", {"tell", "stop"}),
    ("Cleans a pool by deleting its entries", {"clean", "delete"}),
    ("Adds or removes members", {"add", "remove", "change"}),
    ("Retrieve upgrade, patch, and reset history", {"retrieve"}),
)
def test_all_verbs_and_no_nouns_are_found(text: str, verbs: set[str]) -> None:
    assert {found.verb for found in head_verbs(text)} == verbs


def test_launches_participles_and_leading_conditions_are_found() -> None:
    assert passive_verb(["be", "permanently", "deleted"], 0) == ("delete", 2)
    assert passive_verb(["be", "there"], 0) is None
    assert behind_condition(["if", "it", "exists", ",", "removes", "it"]) == 4
    assert behind_condition(["removes", "it", ",", "if", "it", "exists"]) is None
    assert behind_condition(["if", "it", "exists"]) is None
    assert behind_condition([]) is None


@rows(
    "verb, text, expected",
    ("bring", "brings back a stored document", ("retrieve", "restore")),
    ("bring", "brings a record up to date", ("update",)),
    ("put", "puts the parts together", ("combine", "assemble")),
    ("give", "gives a file another name", ("change",)),
    ("hold", "holds the job until the data arrive", ("wait",)),
    ("make", "makes the report visible to everybody", ("publish", "announce", "disclose", "expose", "enable")),
    ("make", "makes a unique token", ("create",)),
    ("make", "makes it", ()),
    ("bring", "brings luck", ()),
    ("give", "gives a hint that belongs to a question", ()),
    ("create", "creates an order", ()),
    ("make", "makes", ()),
)
def test_word_after_a_vague_verb_gives_its_meaning(verb: str, text: str, expected: tuple[str, ...]) -> None:
    assert readings(verb, text.split(), 0) == expected


def test_every_reading_is_a_verb_whose_operation_is_known() -> None:
    meant = {verb for cues in _READINGS.values() for verbs in cues.values() for verb in verbs}
    assert [verb for verb in sorted(meant) if operation_classes(verb) is None] == []


@rows(
    "verb, text, expected",
    ("create", "creates a payment", ("pay", 2)),
    ("mark", "marks a file for deletion", ("delete", 4)),
    ("submit", "submits a verification code", ("verify", 2)),
    ("create", "creates a payment method", None),
    ("send", "sends a cancellation notice", None),
    ("mark", "marks a file for the archive", None),
    ("create", "creates", None),
    ("mark", "marks a file as deleted", ("delete", 4)),
    ("move", "moves a note to the trash", ("delete", 5)),
    ("stop", "stops following a user", ("unfollow", 1)),
    ("stop", "stops running a job", None),
    ("stop", "stops", None),
    ("remove", "removes the lock of a page", ("unlock", 2)),
    ("remove", "removes a page", None),
    ("cancel", "cancels the deletion of a key", ("restore", 2)),
    ("cancel", "cancels the creation of a key", None),
)
def test_noun_after_another_verb_can_give_the_verb(verb: str, text: str, expected: tuple[str, int] | None) -> None:
    assert hinted_verb(verb, text.split(), 0) == expected


@rows(
    "text, expected",
    ("account creation", ("create", 1)),
    ("deletion of an order", ("delete", 0)),
    ("config update", ("update", 1)),
    ("details of an order", ("get", 0)),
    ("published articles", ("get", 1)),
    ("comment by id", ("get", 0)),
    ("batch operation for articles", None),
    ("organization", None),
    ("a user", None),
    ("frobs the status", None),
    ("", None),
)
def test_the_last_noun_of_the_first_phrase_decides(text: str, expected: tuple[str, int] | None) -> None:
    assert nominal_verb(text.split()) == expected


@rows(
    "verb, text, expected",
    ("make", "makes a hotel reservation for two", ("reserve", 3)),
    ("submit", "submits a cancellation request", ("cancel", 2)),
    ("initiate", "initiates the refund of an order", ("refund", 2)),
    ("request", "requests details about a parcel", ("get", 1)),
    ("give", "gives back the list", None),
    ("take", "takes some items", None),
    ("submit", "submits a request", None),
    ("create", "creates a payment", None),
    ("make", "makes", None),
)
def test_object_of_a_light_verb_gives_the_verb(verb: str, text: str, expected: tuple[str, int] | None) -> None:
    assert meant_verb(verb, text.split(), 0) == expected


def test_lists_are_in_lower_case_and_hold_words_of_their_kind() -> None:
    lists = [value for name, value in vars(phrases).items() if name.isupper() and isinstance(value, frozenset)]
    assert len(lists) > 10
    assert all(word == word.lower() for words in lists for word in words)
    assert [verb for verb in phrases.PURPOSES | phrases.VERBS_FIRST if not is_verb(verb)] == []
    assert phrases.PREPOSITIONS.isdisjoint(phrases.DETERMINERS)

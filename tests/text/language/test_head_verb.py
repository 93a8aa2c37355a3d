"""The verb that says what a sentence promises."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.text.language.head_verb import head_verbs


@rows(
    "text, verb",
    ("Returns a list of rooms", "return"),
    ("Get all rooms", "get"),
    ("Creating a new booking", "create"),
    ("To cancel an order", "cancel"),
    ("This endpoint is used to fetch the weather", "fetch"),
    ("This API call will delete the file", "delete"),
    ("The agent books a table", "book"),
    ("An endpoint that returns prices", "return"),
    ("Endpoint for creating invoices", "create"),
    ("Allows a customer to book a table", "book"),
    ("Provides the ability to search for flights", "search"),
    ("Call this endpoint to get the latest rates", "get"),
    ("Use this method to update a contact", "update"),
    ("Send an image to analyze its content", "analyze"),
    ("Permanently removes a user", "remove"),
    ("Bulk delete contacts", "delete"),
    ("Users: create an account", "create"),
    ("Files - Crop an image", "crop"),
    ("A reservation is created for the guest", "create"),
    ("The order will be cancelled", "cancel"),
    ("The concierge reserves a table", "reserve"),
    ("Routes a parcel to its depot", "route"),
    ("Looks up a flight", "find"),
    ("Turns the heating off", "disable"),
    ("The purpose of this service is to retrieve a label", "retrieve"),
    ("2. Send the reminder", "send"),
    ("Cancels a guest’s subscription", "cancel"),
    ("Batch operation for retrieving parcels", "retrieve"),
    ("PUT for a supplier", "replace"),
    ("Loads or replaces a price list", "load"),
    ("Lists history of a vehicle", "list"),
)
def test_the_head_verb_is_found(text: str, verb: str) -> None:
    assert head_verbs(text)[0].verb == verb


@rows(
    "text, verb",
    ("Makes a hotel reservation", "reserve"),
    ("Submits a cancellation request", "cancel"),
    ("Performs a search for flights", "search"),
    ("Requests information about a parcel", "get"),
)
def test_a_light_verb_means_what_its_object_names(text: str, verb: str) -> None:
    first, *others = head_verbs(text)
    assert (first.verb, first.kind) == (verb, "meant")
    assert [other.kind for other in others] == ["light"]


@pytest.mark.parametrize(
    ("text", "verb"), [("Account creation", "create"), ("Deletion of an order", "delete"), ("Order details", "get")]
)
def test_a_phrase_without_a_verb_is_read_by_its_noun(text: str, verb: str) -> None:
    assert [(found.verb, found.kind) for found in head_verbs(text)] == [(verb, "nominal")]


@rows(
    "text, verbs",
    ("Assesses and prioritizes a patient", ["assess", "prioritize"]),
    ("Creates an order and returns it", ["create", "return"]),
    ("Validates, stores and publishes the document", ["validate", "store", "publish"]),
    ("Returns orders and invoices of a customer", ["return"]),
    ("Get sales by make, model, year, trim or engine", ["get"]),
    ("Get create/update model", ["get"]),
    ("Get all keys of a zone, except the private one", ["get"]),
    ("Create, update or delete a zone", ["create", "update", "delete"]),
)
def test_verbs_beside_the_head_are_found_and_nouns_are_not(text: str, verbs: list[str]) -> None:
    assert [found.verb for found in head_verbs(text) if found.kind != "hint"] == verbs


@pytest.mark.parametrize("text", ["", "A user", "42", "Der Kunde bucht das Zimmer"])
def test_a_text_without_a_verb_has_none(text: str) -> None:
    assert head_verbs(text) == ()

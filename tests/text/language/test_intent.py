"""Outcomes: those that name a state or a result, and those that nobody can verify."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.language.phrases import mechanism, weakness


def outcomes(section: str) -> list[str]:
    text = (Path(__file__).parent / "sentences" / "outcomes.txt").read_text("utf-8")
    return text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()


@pytest.mark.requirement("AGIS-6.1-5")
def test_only_an_outcome_that_names_a_state_a_result_or_a_thing_of_the_path_passes() -> None:
    assert [outcome for outcome in outcomes("empty") if not weakness(outcome, "BOOK", {"room"})] == []
    assert [outcome for outcome in outcomes("verifiable") if weakness(outcome, "BOOK", {"room"})] == []
    assert outcomes("empty")
    assert outcomes("verifiable")
    assert weakness("The request is processed", "PROCESS", {"request"}) is None
    assert weakness("The request is processed", "BOOK", {"room"}) == "it is true of any call"


@rows(
    "outcome, reason",
    ("Something happens", "it is true of any call"),
    ("Something about the room is different", "'something' does not say what exists, has changed or is returned"),
    ("The room might be booked", "'might be' leaves open whether it happens"),
    ("Will try to book", "it says what is tried, not what is true afterwards"),
    ("The booking succeeds", "it only says that the method succeeded"),
    ("Is it booked?", "it is a question"),
)
def test_the_reason_names_what_is_missing(outcome: str, reason: str) -> None:
    assert weakness(outcome, "BOOK") == reason


@given(st.text(max_size=700), st.sampled_from(["", "BOOK"]))
def test_any_text_is_judged(outcome: str, method: str) -> None:
    assert weakness(outcome, method) != ""


@rows(
    "sentence",
    *("Inserts a record into the reservations table", "Inserts a new row in the bookings table", "Executes SQL"),
    *("Runs a stored procedure", "Calls the backend microservice", "Calls the payments API"),
    *("Invokes the internal service", "Writes a row", "Publishes to the Kafka topic"),
    *("Pushes a message onto the message queue", "Enqueues a job", "Sends a POST request to the booking service"),
    *("Makes an HTTP call", "Persists the order in the database", "Stores the session in Redis"),
    *("Creates a database record for the reservation", "Queries the users table", "Deserializes the JSON payload"),
    *("Does INSERT INTO reservations", "Returns HTTP 200"),
)
def test_implementation_detail_is_reported(sentence: str) -> None:
    assert mechanism(sentence)


@rows(
    "sentence",
    *("Books a table for the guest", "Reserves a table at a restaurant", "Finds a table by the window"),
    *("Adds a row to the caller's spreadsheet", "Queries the database of endangered plants for sightings"),
    *("Adds a record to the user's collection", "Runs a SQL query the analyst supplies"),
    *("Creates a database for the customer", "Writes the results to the caller's database"),
    *("Updates a patient record", "Reconciles account records against transaction ledger"),
    *("Requests a record of past payments", "Calls a taxi to the hotel", "Adds somebody to the waiting queue"),
    *("Publishes a post to a topic of the forum", "Sends a request to the landlord to repair the heating"),
    *("Submits a request for time off", "Stores luggage at the hotel", "Selects a seat in the third row"),
    "Finds an endpoint of a bus line",
)
def test_goals_may_mention_tables_records_and_requests(sentence: str) -> None:
    assert mechanism(sentence) is None


@pytest.mark.parametrize("sentence", ["insert " * 200_000, "a" * 1_000_000, "record into table " * 50_000])
def test_hostile_sentence_takes_linear_time(sentence: str) -> None:
    mechanism(sentence)

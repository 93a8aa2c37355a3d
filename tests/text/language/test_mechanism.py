from __future__ import annotations

import pytest

from bespeak.text.language.intent import mechanism


@pytest.mark.parametrize(
    "sentence",
    [
        "Inserts a record into the reservations table",
        "Inserts a new row in the bookings table",
        "Executes SQL",
        "Runs a stored procedure",
        "Calls the backend microservice",
        "Calls the payments API",
        "Invokes the internal service",
        "Writes a row",
        "Publishes to the Kafka topic",
        "Pushes a message onto the message queue",
        "Enqueues a job",
        "Sends a POST request to the booking service",
        "Makes an HTTP call",
        "Persists the order in the database",
        "Stores the session in Redis",
        "Creates a database record for the reservation",
        "Queries the users table",
        "Deserializes the JSON payload",
        "Does INSERT INTO reservations",
        "Returns HTTP 200",
    ],
)
def test_implementation_detail_is_reported(sentence: str) -> None:
    assert mechanism(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Books a table for the guest",
        "Reserves a table at a restaurant",
        "Finds a table by the window",
        "Adds a row to the caller's spreadsheet",
        "Queries the database of endangered plants for sightings",
        "Adds a record to the user's collection",
        "Runs a SQL query the analyst supplies",
        "Creates a database for the customer",
        "Writes the results to the caller's database",
        "Updates a patient record",
        "Reconciles account records against transaction ledger",
        "Requests a record of past payments",
        "Calls a taxi to the hotel",
        "Adds somebody to the waiting queue",
        "Publishes a post to a topic of the forum",
        "Sends a request to the landlord to repair the heating",
        "Submits a request for time off",
        "Stores luggage at the hotel",
        "Selects a seat in the third row",
        "Finds an endpoint of a bus line",
    ],
)
def test_goals_may_mention_tables_records_and_requests(sentence: str) -> None:
    assert mechanism(sentence) is None


@pytest.mark.parametrize("sentence", ["insert " * 200_000, "a" * 1_000_000, "record into table " * 50_000])
def test_hostile_sentence_takes_linear_time(sentence: str) -> None:
    mechanism(sentence)

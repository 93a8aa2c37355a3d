"""Outcomes: those that name a state or a result, and those that nobody can verify."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import check_each

from bespeak.text.language.intent import mechanism, weakness

EMPTY = """
Something happens
It depends
Will try to book
It depends on the weather
The desired effect occurs
Appropriate action is taken
Whatever is needed has been done
Stuff gets done
The room may be booked
The room might be booked
A room should be booked
Hopefully a room is booked
The system attempts to book a room
An attempt is made to book the room
Best effort booking
A best-effort reservation is made
The service does its best to find a room
Something is booked
Things change
The booking succeeds
The booking is successful
Booking done
Books successfully
Nothing
It works
It is done
The result is available
The requested data is returned
The requested information is provided
A value is returned
The outcome varies
Depends on availability
The room is probably booked
The room is booked if possible
The room is booked, or not
If all goes well a room is booked
Is the room booked?
The user gets what they need
The caller is satisfied
The method was called
The agent's request was handled properly
See documentation
TBD
n/a
200
HTTP 200 OK
Returns a 201
the response is sent
Some kind of reservation exists
The agent tries to reserve a table
The reservation is expected to exist
A change was made
Maybe a room
There might be a reservation
The operation may or may not succeed
The system will be in the correct state
All good
Done
"""

VERIFIABLE = """
A confirmed reservation record exists in the system with status CONFIRMED
A ranked list of matching restaurants is returned
Funds are debited from source and credited to destination
The request has status ACCEPTED
The task is completed
No reservation exists any more
The user is logged out
The system holds the new address of the guest
The guest feels better than before
Everything in the suite is as it should be when the guest arrives
The guest knows where to go tomorrow
A list of possibly affected orders is returned
The date on which the parcel is expected to arrive is returned
The number of guests expected to attend is returned
An attempt to deliver is recorded
A delivery attempt is recorded
The price that a room would cost is returned
The guest can enter the room
The user may log in with the new password
A booking exists that the guest may change
The room is booked
The message is sent
The status of the order is returned
The call is ended
The service is restarted
The data is deleted
The user is notified
The caller is authenticated
A list of potentially fraudulent payments is returned
The rating counts
The order can be tracked by its number
A reservation will be created
The booking is confirmed
The payment is complete
The booking exists
A booking is made for the guest
The invoice is paid in full
The alarm is off
The lights are on
The door is locked
The account is locked so that nobody could enter
The process with the given id is stopped
The list of steps the guest should take is returned
The session has ended
The rooms have the values of the input
The matching rooms are in the answer
The result for the image is in the answer
A subscription exists as the input describes it
An estimate of what the repair would cost is returned
The record is gone
The plan to move is approved
The hopes of users are listed
The probability that it might rain is returned
A ticket exists whose number is returned
If a reservation exists, it is cancelled
Die Buchung ist storniert
Existe una reserva confirmada
The number of unread messages is zero
The response time of each server is listed
The state of the valve is OPEN
Information about the flight is returned
The change request is approved
The database backup exists
The application is rejected
The client's contract is terminated
"""


@pytest.mark.requirement("AGIS-6.1-5")
def test_an_outcome_that_nobody_can_verify_is_found() -> None:
    def check(outcome: str) -> None:
        assert weakness(outcome, "BOOK", {"room"})

    check_each(EMPTY.strip().split("\n"), check)


def test_an_outcome_that_names_a_state_or_a_result_passes() -> None:
    def check(outcome: str) -> None:
        assert weakness(outcome, "BOOK", {"room"}) is None

    check_each(VERIFIABLE.strip().split("\n"), check)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("Something happens", "it is true of any call"),
        ("Something about the room is different", "'something' does not say what exists, has changed or is returned"),
        ("The room might be booked", "'might be' leaves open whether it happens"),
        ("Will try to book", "it says what is tried, not what is true afterwards"),
        ("The booking succeeds", "it only says that the method succeeded"),
        ("Is it booked?", "it is a question"),
    ],
)
def test_the_reason_names_what_is_missing(outcome: str, reason: str) -> None:
    assert weakness(outcome, "BOOK") == reason


def test_a_word_of_the_path_names_a_thing() -> None:
    assert weakness("The request is processed", "PROCESS", {"request"}) is None
    assert weakness("The request is processed", "BOOK", {"room"}) == "it is true of any call"


@given(st.text(max_size=700), st.sampled_from(["", "BOOK"]))
def test_any_text_is_judged(outcome: str, method: str) -> None:
    assert weakness(outcome, method) != ""


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

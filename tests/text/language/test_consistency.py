"""Pass 6: whether an intent says what its method promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.consistency import (
    MOST,
    VIOLATION_BELOW,
    WARNING_BELOW,
    fitting_sentence,
    fitting_verbs,
    judge,
    third_person,
)

FLOORS = {"seen.txt": (0.96, 0.006), "unseen.txt": (0.97, 0.006)}
"""Least accuracy, and largest share of fitting sentences that may be called a violation."""

FITTING = [
    ("BOOK", "Books a restaurant reservation on behalf of the requesting agent"),
    ("FIND", "Finds restaurants that match the given criteria"),
    ("TRIAGE", "Assesses and prioritizes a patient for care"),
    ("ADMIT", "Admits a patient to a hospital ward"),
    ("TRANSFER", "Transfers funds between two accounts of the same owner"),
    ("RECONCILE", "Reconciles ledger entries against the bank statement"),
    ("BOOK", "Reserves a room for the named guest"),
    ("BOOK", "Makes a hotel reservation for two people"),
    ("BOOK", "Commits a table at the requested time"),
    ("CANCEL", "Cancels an existing reservation and releases the table"),
    ("CANCEL", "Submits a cancellation request for an order"),
    ("CANCEL", "Terminates the subscription at the end of the period"),
    ("CANCEL", "Calls off a scheduled appointment"),
    ("RETURN", "Returns a parcel and creates a refund for its sender"),
    ("LOGOUT", "Logs the customer out of all devices"),
    ("FIND", "Returns a list of available restaurants"),
    ("FIND", "Searches the catalogue for matching products"),
    ("FIND", "Looks up a flight by its number"),
    ("FIND", "This endpoint allows an agent to search for open time slots"),
    ("FETCH", "Retrieves the current balance of an account"),
    ("FETCH", "Call this endpoint to get the latest exchange rates"),
    ("QUERY", "Requests information about a shipment"),
    ("LIST", "Lists every invoice of a customer"),
    ("LIST", "Provides a list of nearby stores"),
    ("LOCATE", "Finds the nearest charging station"),
    ("DISCOVER", "Discovers services that offer a capability"),
    ("CHECK", "Checks whether a table is free at the given time"),
    ("VALIDATE", "Validates a postal address against the register"),
    ("VERIFY", "Confirms that the caller owns the phone number"),
    ("ANALYZE", "Send an image to analyze its content"),
    ("ANALYZE", "Analyzes a document and returns its main topics"),
    ("SUMMARIZE", "Produces a short summary of a long document"),
    ("SUMMARIZE", "Condenses a conversation into a few sentences"),
    ("ESTIMATE", "Calculates the likely cost of a repair"),
    ("CALCULATE", "Computes the tax that is due on a purchase"),
    ("CLASSIFY", "Assigns a category to a support ticket"),
    ("COMPARE", "Compares two insurance offers"),
    ("PREDICT", "Forecasts demand for the coming week"),
    ("TRANSLATE", "Translates a text into another language"),
    ("CREATE", "Creates a new customer record"),
    ("CREATE", "Sets up a new project with default settings"),
    ("REGISTER", "Signs up a new member"),
    ("REGISTER", "Registers a device with the fleet"),
    ("ENROLL", "Enrolls a student in a course"),
    ("SCHEDULE", "Schedules a meeting with the participants"),
    ("SCHEDULE", "Arranges a visit with a technician"),
    ("ORDER", "Places an order for spare parts"),
    ("PURCHASE", "Buys a ticket for the selected event"),
    ("PAY", "Pays an open invoice from the given account"),
    ("REFUND", "Initiates a refund for a returned item"),
    ("UPDATE", "Updates the delivery address of an order"),
    ("MODIFY", "Changes the number of guests of a reservation"),
    ("EXTEND", "Prolongs a rental by a number of days"),
    ("RESCHEDULE", "Moves an appointment to another time"),
    ("REPLACE", "Overwrites the stored document with a new version"),
    ("REMOVE", "Deletes a saved payment method"),
    ("DELETE", "Permanently removes a user and all of their data"),
    ("REVOKE", "Withdraws a permission that was granted before"),
    ("PURGE", "Erases all cached entries of a tenant"),
    ("UNSUBSCRIBE", "Removes the caller from a mailing list"),
    ("NOTIFY", "Sends a message to everyone on call"),
    ("NOTIFY", "Alerts the care team about a critical value"),
    ("SEND", "Delivers a document to the recipient"),
    ("SHARE", "Shares a folder with another user"),
    ("PUBLISH", "Publishes an article to the public site"),
    ("ESCALATE", "Forwards the case to a human supervisor"),
    ("APPROVE", "Approves a pending expense report"),
    ("REJECT", "Declines a vacation request"),
    ("START", "Starts a virtual machine"),
    ("START", "Boots the selected server"),
    ("STOP", "Shuts down a running instance"),
    ("PAUSE", "Suspends a campaign until further notice"),
    ("ENABLE", "Turns on two-factor authentication for an account"),
    ("DISABLE", "Switches the feature off for a tenant"),
    ("AUTHENTICATE", "Signs the user in with a one-time code"),
    ("DEPLOY", "Rolls out a release to production"),
    ("DISPATCH", "Sends a courier to the pickup address"),
    ("DISCHARGE", "Releases a patient from the ward"),
    ("PRESCRIBE", "Issues a prescription for a patient"),
    ("ASSIGN", "A task is assigned to a team member"),
    ("MONITOR", "Watches a sensor and reports unusual values"),
    ("EXECUTE", "Runs a stored procedure with the given arguments"),
    ("PAY", "Creates a payment for an open invoice"),
    ("TRANSFER", "Creates a transfer between two accounts"),
    ("RESERVE", "Creates a reservation for the named guest"),
    ("DELETE", "Marks a stored file for deletion"),
    ("VERIFY", "Submits a verification code for a phone number"),
    ("RETRIEVE", "Brings back a document that was archived"),
    ("RENAME", "Gives a file another name"),
    ("MERGE", "Puts two customer records together"),
    ("ANNOUNCE", "Makes the new opening hours known to guests"),
    ("RETRIEVE", "The purpose of this operation is to retrieve a shipping label"),
    ("CANCEL", "Cancels a guest’s reservation"),
    ("UPDATE", "Updates a patient’s contact details"),
    ("FIND", "Batch operation for retrieving parcels by number"),
    ("SEND", "3. Send the reminder to the patient"),
    ("REPLACE", "Loads or replaces the price list of a store"),
    ("LIST", "Lists history of a vehicle"),
    ("FETCH", "Returns all sensors of a site, except the retired ones"),
    ("FETCH", "Gets sales figures by make, model, year or trim"),
    ("DELETE", "Tweet delete by its number"),
    ("VERIFY", "Email verify"),
    ("CREATE", "Bulk create of delivery notes"),
    ("UPDATE", "v2 - Update a loyalty card"),
    ("LIST", "Orders: list the open ones"),
    ("DELETE", "[DEPRECATED] Delete a saved search"),
    ("CREATE", "API to create a loyalty card"),
    ("DELETE", "Endpoint for deleting a saved address"),
    ("UPDATE", "Used to update the address of a supplier"),
    ("FETCH", "Will return the current tariff"),
    ("SEARCH", "Allows you to search the archive by keyword"),
    ("CHECK", "Sees whether a voucher is still valid"),
    ("DETERMINE", "Settles which warehouse ships a parcel"),
    ("ENSURE", "Makes sure that a contact exists"),
    ("EXTRACT", "Takes the line items out of a scanned invoice"),
    ("FETCH", "Configuration of a specific sensor"),
    ("FETCH", "Page of the price list"),
    ("UPDATE", "PUT for a supplier"),
    ("QUOTE", "Creates a new quote for a shipment"),
    ("CREATE", "Adds up to ten guests to a party"),
    ("OPT", "Opts a subscriber out of all campaigns"),
    ("SELECT", "Accepts a filter (JSON or plain text), performs the search and returns the matching rows"),
    ("CANCEL", "Asks for the cancellation of a transport"),
    ("IMPORT", "Loads the rows of a file into a ledger"),
    ("ENABLE", "Allows a courier to see the addresses of a tour"),
    ("REMOVE", "Moves a mailbox into the deletion queue"),
    ("FAILOVER", "Initiates the failover process of a cluster"),
    ("UNSHARE", "Initiates revoking an album that was shared before"),
    ("DEBUG", "Enables debugging on a device"),
    ("DELETE", "NOTE: Deletes a draft"),
    ("CREATE", "We recommend that you create templates with this operation"),
    ("RESUME", "When a tour is under way, and its tracking was suspended, this operation resumes it"),
    ("PUBLISH", "After the client finishes an upload, the service publishes the photo"),
    ("SUBSCRIBE", "Subscribes a phone and, if needed, deletes an older entry"),
    ("REMOVE", "Marks the album with the given name and owner for immediate deletion"),
    ("REMOVE", "Assigns the DELETED status to a note"),
    ("REMOVE", "Flags the chosen lamps of a hall to be removed at once"),
    ("UNDELETE", "Cancels the deletion request for a folder"),
    ("START", "Starts the process of revoking a badge"),
    ("DESCRIBE", "Returns the entries of a diary up to the last week"),
    ("UNTRASH", "Restores a note from the bin"),
]

CONTRADICTING = [
    ("BOOK", "Returns a list of available restaurants"),
    ("FIND", "Creates a new reservation in the system"),
    ("CANCEL", "Retrieves cancellation policy"),
    ("CANCEL", "Books a table for the given party"),
    ("CANCEL", "Confirms a reservation"),
    ("BOOK", "Cancels a reservation"),
    ("BOOK", "Submits a cancellation request"),
    ("FIND", "Deletes all expired listings"),
    ("FETCH", "Removes a record from the archive"),
    ("LIST", "Sends an invoice to every customer"),
    ("QUERY", "Updates the stored price of a product"),
    ("SEARCH", "Creates an order and returns it"),
    ("CREATE", "Returns the details of a customer"),
    ("CREATE", "Deletes a customer"),
    ("REGISTER", "Lists all registered devices"),
    ("PAY", "Shows the payment history of an account"),
    ("PAY", "Retrieves an invoice"),
    ("PURCHASE", "Lets a user browse the product catalogue"),
    ("TRANSFER", "Lists recent transfers"),
    ("REFUND", "Charges the card on file"),
    ("UPDATE", "Gets the current settings"),
    ("UPDATE", "Deletes the record"),
    ("REMOVE", "Adds a member to the group"),
    ("DELETE", "This operation returns every deleted item"),
    ("REVOKE", "Grants access to a folder"),
    ("APPROVE", "Rejects an expense report"),
    ("START", "Stops the engine"),
    ("ENABLE", "Turns off notifications"),
    ("LOCK", "Unlocks the front door"),
    ("SUBSCRIBE", "Unsubscribes an address from the newsletter"),
    ("NOTIFY", "Retrieves unread notifications"),
    ("SEND", "Deletes a draft message"),
    ("DEPLOY", "Describes the state of a deployment"),
    ("ARCHIVE", "Restores a document from the archive"),
    ("ENCRYPT", "Decrypts a message"),
    ("UPLOAD", "Downloads a report"),
    ("INSTALL", "Uninstalls a package"),
    ("SCHEDULE", "Looks up the free slots of a doctor"),
    ("SHIP", "Gets the shipping label"),
    ("DESCRIBE", "Drops a table"),
    ("VALIDATE", "Deletes outdated entries"),
    ("PUBLISH", "Finds published articles"),
    ("ADMIT", "Discharges a patient from the ward"),
    ("PRESCRIBE", "Reads the prescriptions of a patient"),
    ("DELETE", "The purpose of this operation is to retrieve a shipping label"),
    ("FETCH", "Cancels a guest’s reservation"),
    ("CREATE", "Retrieves a guest’s reservation"),
    ("FIND", "Creates a payment for an open invoice"),
    ("CANCEL", "Sends a cancellation notice to the guest"),
    ("PAY", "Lists the payment methods of a customer"),
    ("LIST", "PUT for a supplier"),
    ("CREATE", "Tweet delete by its number"),
    ("DELETE", "Batch operation for retrieving parcels by number"),
    ("UPDATE", "Lists history of a vehicle"),
    ("SEARCH", "API to create a loyalty card"),
    ("CREATE", "Endpoint for deleting a saved address"),
    ("CANCEL", "Allows you to search the archive by keyword"),
    ("FETCH", "Used to update the address of a supplier"),
    ("FETCH", "Orders: delete the open ones"),
    ("LIST", "[BETA] Delete a saved search"),
    ("DELETE", "Will return the current tariff"),
    ("FIND", "Bulk create delivery notes"),
    ("SEND", "Gets the messages of a conversation"),
    ("FETCH", "Deletes, archives or exports a report"),
]

DOUBTFUL = [
    ("CREATE", "Updates a customer record"),
    ("UPDATE", "Creates a customer record"),
    ("CANCEL", "Order details"),
    ("FETCH", "Generates a delivery note"),
    ("FETCH", "Requests a session token"),
    ("READ", "Manages the alarms of a building"),
    ("DELETE", "Configuration of a specific sensor"),
    ("UPDATE", "Uploads a photo of the damage"),
    ("CREATE", "Maximum size of a parcel"),
    ("CANCEL", "Order history"),
    ("APPROVE", "Submits an expense report for approval"),
    ("COMPLETE", "Informs the depot that a delivery is complete"),
    ("DESCRIBE", "Posts an empty message with a signed header to the regional gateway to get its address"),
    ("CREATE", "Returns a presigned link for an album"),
    ("GENERATE", "Gets a summary of a tour"),
    ("RUN", "Queries a ledger for entries"),
    ("DISABLE", "Resumes a paused lift"),
    ("REBOOT", "Turns a lamp off and on again"),
    ("LIST", "Starts an assessment of a site"),
    ("FETCH", "Normalizes the names of a list"),
    ("FETCH", "For exact figures, you must record every delivery"),
]

UNVERIFIABLE = [
    ("BOOK", ""),
    ("BOOK", "   "),
    ("BOOK", "?!"),
    ("BOOK", "42"),
    ("BOOK", "Crea una nueva reserva para el cliente"),
    ("FIND", "Erstellt eine neue Reservierung im System"),
    ("FIND", "Supprime une réservation de la base"),
    ("FIND", "レストランの予約を作成します"),
    ("FIND", "создает новое бронирование"),
    ("BOOK", "Makes it happen"),
    ("LIST", "This operation applies only to refrigerated lorries"),
    ("LIST", "This method is no longer current and may be deprecated next year"),
    ("DESCRIBE", "DEPRECATED - The DescribeTours operation is deprecated"),
    ("REPLACE", "Provides information to the depot about new lorries"),
    ("DELETE", "Takes in a list of parcels"),
    ("QWRTZX", "Returns a list of restaurants"),
]


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [(FITTING, "consistent"), (CONTRADICTING, "violation"), (DOUBTFUL, "warning"), (UNVERIFIABLE, "unverifiable")],
    ids=["consistent", "violation", "warning", "unverifiable"],
)
def test_every_method_and_intent_gets_its_verdict(pairs: list[tuple[str, str]], verdict: str) -> None:
    judgements = {pair: judge(*pair) for pair in pairs}
    assert {pair: found.reason for pair, found in judgements.items() if found.verdict != verdict} == {}
    assert all((found.score is None) is (verdict == "unverifiable") for found in judgements.values())


def test_reason_names_the_class_of_the_method_and_the_contradicting_word() -> None:
    judgement = judge("BOOK", "Returns a list of available restaurants")
    assert judgement.reason == 'BOOK creates or commits something, but "Returns" reads something'
    assert (judgement.head, judgement.method_class) == ("return", "CREATE")


def test_the_reason_says_that_two_verbs_are_opposites() -> None:
    assert judge("LOCK", "Unlocks the door").reason == '"Unlocks" is the opposite of what LOCK promises'


@pytest.mark.parametrize(
    ("method", "intent", "word"),
    [
        ("FIND", "This endpoint creates a new reservation", "creates"),
        ("SEARCH", "Finds a room and books it for the guest", "books"),
        ("BOOK", "Submits a cancellation request", "cancellation"),
    ],
)
def test_the_reason_quotes_the_deciding_word(method: str, intent: str, word: str) -> None:
    assert f'"{word}"' in judge(method, intent).reason


def test_reading_method_must_only_read_but_others_may_also_read() -> None:
    assert judge("FIND", "Creates an order and returns it").verdict == "violation"
    assert judge("CREATE", "Creates an order and returns it").verdict == "consistent"


def test_an_opposite_that_only_frames_another_verb_is_judged() -> None:
    assert judge("STOP", "Starts the execution of a plan").verdict == "violation"


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "book and " * 100_000, "to " * 300_000, "(" * 1_000_000, "\x00" * 1000]
)
def test_long_text_is_judged(text: str) -> None:
    assert judge("BOOK", text).verdict in {"consistent", "unverifiable"}
    assert judge(text, "Books a room").verdict in {"consistent", "violation", "warning", "unverifiable"}


@given(st.text(max_size=30), st.text())
def test_every_text_gets_a_judgement_that_agrees_with_its_score(method: str, intent: str) -> None:
    judgement = judge(method, intent)
    if judgement.score is None:
        assert judgement.verdict == "unverifiable"
    else:
        expected = "violation" if judgement.score < VIOLATION_BELOW else "warning"
        assert judgement.verdict == (expected if judgement.score < WARNING_BELOW else "consistent")
        assert judgement.head


def test_hardly_any_verb_of_the_catalog_contradicts_its_own_description() -> None:
    """The descriptions say what a verb means without using it, so they are as hard as an intent can be."""
    verbs = load_bundled().verbs
    wrong = [name for name, entry in verbs.items() if judge(name, entry.description).verdict == "violation"]
    assert len(wrong) <= 0.015 * len(verbs), wrong


def read_sentences(name: str) -> list[tuple[bool, str, str]]:
    rows, fits = [], False
    for line in (Path(__file__).parent / "sentences" / name).read_text("utf-8").splitlines():
        if line.startswith("["):
            fits = line == "[fits]"
        elif line and not line.startswith("#"):
            method, _, intent = line.partition(" | ")
            rows.append((fits, method, intent))
    return rows


@pytest.mark.parametrize("name", ["seen.txt", "unseen.txt"])
def test_sentences_in_the_styles_of_public_apis_are_judged_as_a_person_does(name: str) -> None:
    rows = [(fits, judge(method, intent), method, intent) for fits, method, intent in read_sentences(name)]
    wrong = [
        f"{found.verdict} ({found.reason}): {method} / {intent}"
        for fits, found, method, intent in rows
        if fits is (found.verdict in {"violation", "warning"})
    ]
    errors = [line for line in wrong if line.startswith("violation")]
    right = sum(fits for fits, *_ in rows)
    assert len(rows) > 200
    accuracy, refused = FLOORS[name]
    assert len(wrong) <= (1 - accuracy) * len(rows), "\n".join(wrong)
    assert len(errors) <= refused * right, "\n".join(errors)


@pytest.mark.parametrize(
    ("intent", "verb"),
    [
        ("Returns a list of available restaurants", "LIST"),
        ("Returns a list of available restaurants", "FIND"),
        ("Creates a new reservation in the system", "CREATE"),
        ("Retrieves cancellation policy", "RETRIEVE"),
        ("Sends a message to the driver", "SEND"),
        ("Makes a hotel reservation", "RESERVE"),
    ],
)
def test_synonymous_verb_of_the_catalog_is_suggested(intent: str, verb: str) -> None:
    found = fitting_verbs(intent, load_bundled().verbs)
    assert verb in found
    assert len(found) <= MOST


def test_every_suggested_verb_fits() -> None:
    for intent in ("Deletes a saved card", "Turns on the heating", "Computes the tax", "Updates an address"):
        assert {judge(verb, intent).verdict for verb in fitting_verbs(intent, load_bundled().verbs)} == {"consistent"}


def test_unknown_word_has_no_suggestion() -> None:
    assert fitting_verbs("", ["FIND"]) == ()
    assert fitting_verbs("Deletes a card", ["FIND"]) == ()


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [
        ("BOOK", "/reservation", "Books a reservation on behalf of the requesting agent"),
        ("FIND", "/restaurants", "Finds restaurants on behalf of the requesting agent"),
        ("RETRY", "/order/{id}", "Retries an order on behalf of the requesting agent"),
        ("BORROW", "/borrow/{id}", "Borrows a resource on behalf of the requesting agent"),
        ("BOOKING", "/bookTable", "Books a table on behalf of the requesting agent"),
        ("DISPATCH", "/", "Dispatches a resource on behalf of the requesting agent"),
    ],
)
def test_suggested_sentence_begins_with_the_verb_of_the_method(method: str, path: str, sentence: str) -> None:
    assert fitting_sentence(method, path) == sentence


def test_the_sentence_fits_every_verb_of_the_catalog() -> None:
    wrong = [
        name for name in load_bundled().verbs if judge(name, fitting_sentence(name, "/ticket")).verdict == "violation"
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("verb", "form"), [("book", "books"), ("retry", "retries"), ("fix", "fixes"), ("pay", "pays"), ("do", "does")]
)
def test_third_person_is_spelled_correctly(verb: str, form: str) -> None:
    assert third_person(verb) == form

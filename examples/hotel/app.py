"""The same hotel written in Python alone: `bespeak serve examples/hotel/app.py`."""

from __future__ import annotations

from hotel import desk

from bespeak import App, Deprecation, MethodPolicy, Policies, Redirect

# Every handler waits for the disk, and may: a `def` runs in a thread.

app = App(
    "Harbour Hotel",
    server_id="hotel.example",
    operator="Harbour Hotel",
    contact="reception@hotel.example",
    description="Find free rooms in a small hotel by the harbour, book them and look after the stay.",
    policies=Policies(
        # Looking at rooms is free to everybody; what needs authority says so itself.
        scope_required_for_invocation=False,
        # Agents may ask for endpoints that are composed of the hotel's own.
        synthesis_enabled=True,
        methods=MethodPolicy(
            redirects=(Redirect(from_method="RESERVE", from_path="/room", to_method="BOOK", to_path="/room"),)
        ),
    ),
)

_UNKNOWN = {"reservation_unknown": "The hotel has no such reservation."}

app.endpoint(
    "BOOK",
    "/room",
    impact="irreversible",
    confidence=0.85,
    namespace="reservations",
    scopes=["booking:room", "calendar:write"],
    errors={
        "room_unavailable": "The room is taken on those nights, or there is no such room.",
        "invalid_dates": "The departure does not come after the arrival.",
    },
)(desk.book_room)

app.endpoint(
    "QUERY",
    "/rooms",
    impact="informational",
    confidence=0.99,
    namespace="rooms",
)(desk.find_rooms)

app.endpoint(
    "QUERY",
    "/availability",
    impact="informational",
    confidence=0.99,
    namespace="rooms",
    deprecated=Deprecation(
        deprecated_in="1.1.0", removed_in="2.0.0", successor_method="QUERY", successor_path="/rooms"
    ),
)(desk.find_availability)

app.endpoint(
    "FETCH",
    "/reservations/{reservation_id}",
    impact="informational",
    confidence=0.99,
    namespace="reservations",
    scopes=["booking:room"],
    errors=_UNKNOWN,
)(desk.fetch_reservation)

app.endpoint(
    "CANCEL",
    "/reservations/{reservation_id}",
    impact="irreversible",
    confidence=0.95,
    idempotent=True,
    namespace="reservations",
    scopes=["booking:room"],
    errors=_UNKNOWN,
)(desk.cancel_reservation)

app.endpoint(
    "AUDITLOG",
    "/stays",
    impact="irreversible",
    confidence=0.95,
    namespace="stays",
    scopes=["booking:room"],
    errors=_UNKNOWN,
)(desk.write_note)

app.resource("house-rules", "What guests ask at the desk.")(desk.house_rules)

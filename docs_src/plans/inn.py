from dataclasses import dataclass

from bespeak import App

app = App(
    "Acme Inn",
    server_id="inn.acme.example",
    operator="Acme Inn",
    contact="ops@acme.example",
)


@dataclass
class Booking:
    booking_id: str
    guest_id: str


@dataclass
class Guest:
    guest_id: str
    name: str


@app.endpoint("FETCH", "/bookings/{booking_id}", impact="informational")
def fetch_booking(booking_id: str) -> Booking:
    """Fetch a booking by its id.

    Outcome: The booking is returned.
    """
    return Booking(booking_id, "g-7")


@app.endpoint("FETCH", "/guests/{guest_id}", impact="informational")
def fetch_guest(guest_id: str) -> Guest:
    """Fetch a guest by their id.

    Outcome: The guest is returned.
    """
    return Guest(guest_id, "Ann")

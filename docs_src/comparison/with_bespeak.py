from datetime import date

from bespeak import App, Refusal

app = App("Clinic", server_id="clinic.example", operator="Acme", contact="ops@acme.example")
FREE = {date(2030, 5, 6): ["09:00", "09:30"], date(2030, 5, 7): ["14:00"]}


@app.endpoint("QUERY", "/slots", impact="informational")
def find_slots(day: date) -> dict[str, list[str]]:
    """Find the free slots of a day.

    Outcome: The slots that are free are returned.
    """
    return {"slots": FREE.get(day, [])}


@app.endpoint("BOOK", "/slots", impact="irreversible", scopes=["slots:book"], errors=["slot_taken"])
def book_slot(day: date, time: str, patient: str) -> dict[str, str]:
    """Book a free slot for a patient.

    Outcome: The slot is taken and the patient is told by text message.
    Errors:
        slot_taken: Somebody else has booked it.
    """
    if time not in FREE.get(day, []):
        raise Refusal("slot_taken", f"{day} {time} is not free.")
    FREE[day].remove(time)
    return {"booked": f"{day} {time} for {patient}"}

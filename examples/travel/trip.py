"""The story of a travel agency: Ada travels, Ben cannot, and the agency is killed while it books for Cleo.

`python examples/travel/trip.py` starts an inn, an airline, a car rental and the agency, each as a server of its own in
a new folder, and removes everything at the end.
"""

from __future__ import annotations

import hashlib
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

from stage import Agency

from bespeak import SyncServiceClient, connect_sync

SPRING = {"flight": "CA 17", "arrival": "2027-05-01", "departure": "2027-05-04"}
AUTUMN = {"flight": "CA 18", "arrival": "2027-10-08", "departure": "2027-10-11"}


def main() -> None:
    """Play the scenes one after the other."""
    with ExitStack() as stack:
        agency = Agency(stack)
        ada = register(agency, "Ada", "2031-03-01")
        say("A visa agent looks at Ada's passport, and at nothing else.")
        check_visa(agency, ada)
        say("\nAda's trip is dear: the front desk must agree.")
        travel(agency, ada)
        say("\nBen wants to travel on the same days.")
        fail(agency, register(agency, "Ben", "2030-01-01"))
        say("\nThe agency is killed while it books for Cleo.")
        purchase = survive(agency, register(agency, "Cleo", "2029-06-30"))
        say("\nCleo changes her mind.")
        cancel(agency, *purchase)
        say("\nThe agency closes its day.")
        close(agency)


def register(agency: Agency, name: str, expires: str) -> str:
    """Register a traveller: the type of the entity checks the data, and its hook has a look at the passport."""
    data = {"name": name, "passport": f"P-{len(name)}731", "expires": expires}
    made = agency.agents[name.lower()].call("REGISTER", "/", entity_type="traveller", data=data)
    return str(made["entity_id"])


def check_visa(agency: Agency, traveller: str) -> None:
    """Delegate a task with a single scope. The visa agent finds both in its inbox."""
    ada, visa = agency.agents["ada"], agency.agents["visa"]
    task = {"question": "Does Ada need a visa?", "traveller": traveller}
    offer = {"target_agent_id": agency.ids["visa"], "task": task, "authority_scope": "traveller:read"}
    send(ada, "DELEGATE", "/", {**offer, "delegation_token": "issue"}, task_id="visa-ada")
    [found] = visa.call("QUERY", "/messages")["messages"]
    visa.call("CONFIRM", "/", target_id=found["message_id"], status="accepted")
    alone = visa.request("QUERY", "/entities", {"entity_id": traveller})
    chain = {"Delegation-Chain": found["content"]["delegation_chain"]}
    [entity] = send(visa, "QUERY", "/entities", {"entity_id": traveller}, headers=chain)["entities"]
    say(f"  without the delegation: {alone.status}; with it: passport {entity['data']['passport']}")
    visa.call("REPLY", "/", in_reply_to=found["message_id"], content="She does not.")
    say(f"  {task['question']} {ada.call('CHECK', '/', target='visa-ada')['details']['result']}")


def travel(agency: Agency, traveller: str) -> None:
    """Begin a run of the workflow with BOOK /trip: it books, asks, waits for the money, and sends the documents."""
    ada, screen = agency.agents["ada"], agency.folder / "front-desk.txt"
    book(ada, traveller, room="31", **SPRING)
    line = wait(lambda: screen.read_text() if screen.exists() else "", "the screen of the front desk")
    case, question = line.strip().split(" ", 1)
    say(f"  on the screen of the front desk: {question}")
    agency.run("cases", "accept", case, str(agency.folder), "--by", "Dora")
    _, receipt = pay(ada)
    say(f"  paid: {receipt['amount']['value']} EUR, {receipt['status']}")
    done = wait_for(ada, "trip", "completed")
    wait_for(ada, done["steps"][-1]["output"]["tracking_id"], "done")
    say(f"  the trip: {done['status']}")
    [letter] = [one for one in ada.call("QUERY", "/messages")["messages"] if one["kind"] == "notification"]
    say(f"  in Ada's inbox: {letter['content']['documents']}")


def fail(agency: Agency, traveller: str) -> None:
    """Book on days on which the only car is rented. What was booked before is undone."""
    ben = agency.agents["ben"]
    refused = ben.request("BOOK", "/trip", {"traveller_id": traveller, "room": "12", **SPRING}, task_id="trip")
    assert refused.error is not None
    say(f"  {refused.status} {refused.error.code}: {refused.error.message}")
    tell_steps(ben.call("CHECK", "/", target="trip")["steps"][1:])
    with connect_sync(agency.addresses["TRAVEL_INN"]) as inn:
        [held] = inn.call("QUERY", "/reservations", guest="Ben")
    say(f"  the inn about Ben's room: {held['state']}")


def survive(agency: Agency, traveller: str) -> tuple[str, str]:
    """Kill the agency while the car rental does not answer. The next process goes on, and the car is rented once."""
    agency.signal("cars", signal.SIGSTOP)
    book(agency.agents["cleo"], traveller, room="12", **AUTUMN)
    tell_steps(wait(lambda: steps_of(agency.agents["cleo"])[1:3], "the room and the flight", 2))
    agency.server.stop()
    say("  kill -9: the agency is gone, and the car rental had not answered")
    agency.signal("cars", signal.SIGCONT)
    with connect_sync(agency.addresses["TRAVEL_CARS"]) as cars:
        rented = wait(lambda: cars.call("QUERY", "/rentals", driver="Cleo"), "the car")
        say(f"  the car rental answers too late; rented to Cleo: {len(rented)} car")
        agency.open()
        cleo = agency.agents["cleo"]
        trip, receipt = pay(cleo)
        wait_for(cleo, "trip", "completed")
        say("  the next process asks again, and goes on:")
        tell_steps(steps_of(cleo)[1:4])
        say(f"  rented to Cleo: {len(cars.call('QUERY', '/rentals', driver='Cleo'))} car")
    return trip, receipt["purchase_id"]


def cancel(agency: Agency, trip: str, purchase: str) -> None:
    """Cancel a booking of the agency; its purchase is paid back then, and not before."""
    cleo = agency.agents["cleo"]
    refused = cleo.request("CANCEL", "/", {"target_id": purchase, "refund_policy": "full"})
    assert refused.error is not None
    say(f"  the money back? {refused.status} {refused.error.code}")
    cleo.call("CANCEL", "/", target_id=f"booking:{trip}")
    booking = wait_for(cleo, f"booking:{trip}", "cancelled")
    back = cleo.call("CANCEL", "/", target_id=purchase, refund_policy="full")["refund"]["amount"]
    say(f"  the booking: {booking['status']}; the money back: {back['value']} {back['currency']}")


def close(agency: Agency) -> None:
    """Report the sales, and run by hand what the schedule runs each night."""
    manager = agency.agents["manager"]
    sales = {"report_type": "weekly-sales", "scope": "7d", "recipient": agency.ids["manager"], "format": "markdown"}
    made = manager.call("REPORT", "/", **sales)
    text = manager.call("FETCH", "/documents/{document_id}", document_id=made["document_id"])["text"]
    for line in text[text.index("| Trip") :].splitlines():
        say(f"  {line}")
    planned = (datetime.now(UTC) + timedelta(hours=12)).isoformat()
    manager.call("RUN", "/", procedure_id="close-day", input={"planned": planned})
    say(f"  to the manager: {agency.run('people', 'show', 'manager', str(agency.folder)).splitlines()[1].strip()}")
    say(f"  {agency.run('workflows', 'schedules', 'list', str(agency.folder)).strip()}")


def book(agent: SyncServiceClient, traveller: str, **trip: str) -> None:
    """Begin a trip without waiting for its end; its Task-ID is `trip`."""
    given = {"traveller_id": traveller, **trip}
    send(agent, "BOOK", "/trip", given, task_id="trip", headers={"Prefer": "respond-async"})


def pay(agent: SyncServiceClient) -> tuple[str, Any]:
    """Purchase a trip that waits for the money, for the price that the agency asks; return its id and the receipt."""
    saved = wait(lambda: [one for one in steps_of(agent) if one["asked"] == "step save"], "the booking")
    trip = saved[0]["output"]["trip_id"]
    wanted = {"item": {"sale": "trip-fare", "input": {"trip_id": trip}}, "principal_id": saved[0]["output"]["agent_id"]}
    price = agent.call("QUOTE", "/", method="PURCHASE", parameters=wanted)["estimated_cost"]["EUR"]["expected"]
    manifest = agent.request("DISCOVER", "/", {"target": "manifest"}).body
    merchant = {
        "Merchant-ID": "travel.example",
        "Merchant-Manifest-Fingerprint": hashlib.sha256(manifest).hexdigest(),
        "Budget-Limit": "EUR=1500",
    }
    amount = {"value": f"{price}.00", "currency": "EUR"}
    return trip, send(agent, "PURCHASE", "/", {**wanted, "amount": amount}, headers=merchant, idempotency_key=trip)


def steps_of(agent: SyncServiceClient) -> list[Any]:
    """Return what the trip of an agent has done."""
    return [one for one in agent.call("CHECK", "/", target="trip")["steps"] if one["status"] == "done"]


def tell_steps(steps: list[Any]) -> None:
    """Print steps of a run and what became of them."""
    for one in steps:
        say(f"  {one['asked']:16} {one['status']}")


def wait_for(agent: SyncServiceClient, target: str, status: str) -> Any:
    """Check something until it has a status."""

    def look() -> Any:
        found = agent.call("CHECK", "/", target=target)
        return found if found["status"] == status else None

    return wait(look, f"{target} to be {status}")


def wait(look: Callable[[], Any], what: str, number: int = 1) -> Any:
    """Look until so much is to be seen, for at most 30 seconds."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = look()
        if found and len(found) >= number:
            return found
        time.sleep(0.05)
    return sys.exit(f"waited 30 seconds for {what}")


def send(agent: SyncServiceClient, method: str, path: str, given: dict[str, Any], **options: Any) -> Any:
    """Send a request with headers or a Task-ID; return its output."""
    reply = agent.request(method, path, given, **options)
    return reply.output if reply.error is None else sys.exit(f"{method} {path}: {reply.error.message}")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

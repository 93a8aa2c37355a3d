import uuid

import bespeak

AGENT = "0a3f" * 16
STAY = {"guest_id": "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11", "arrival": "2027-06-01", "departure": "2027-06-03"}

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT, scopes=["booking:room", "calendar:write"]) as hotel:
    key = str(uuid.uuid4())
    for room in ("104", "104", "105"):
        reply = hotel.request("BOOK", "/room", {**STAY, "room_id": room}, idempotency_key=key)
        print(reply.status, reply.replayed, reply.error.code if reply.error else "booked")

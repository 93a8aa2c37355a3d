import bespeak
from bespeak import AuthorityMissingError, BusinessError, InvalidInputError, ServiceError, SyncServiceClient

AGENT = "0a3f" * 16
STAY = {"guest_id": "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11", "arrival": "2027-05-01", "departure": "2027-05-03"}


def book(hotel: SyncServiceClient, **stay: str) -> None:
    try:
        print("booked", hotel.call("BOOK", "/room", **stay)["reservation_id"])
    except AuthorityMissingError as error:
        print(error.status, "lacks", error.missing_scopes)
    except InvalidInputError as error:
        print(error.status, [(violation.pointer, violation.keyword) for violation in error.violations])
    except BusinessError as error:
        print(error.status, error.name, error.details)
    except ServiceError as error:
        print(error.status, error.code, error.message)


with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT, scopes=["booking:room"]) as hotel:
    book(hotel, **STAY, room_id="102")

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT, scopes=["booking:room", "calendar:write"]) as hotel:
    book(hotel, **STAY)
    book(hotel, **STAY, room_id="102")
    book(hotel, **STAY, room_id="102")

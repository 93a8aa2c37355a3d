import bespeak
from bespeak import ProposalRejectedError

with bespeak.connect_sync("agtp://127.0.0.1") as hotel:
    try:
        hotel.propose("FIND", "/rooms/quiet", given=["max_noise:integer"], needs=["rooms[].decibels:integer"])
    except ProposalRejectedError as error:
        print(error.status, error.rejection)
        for miss in error.misses:
            print(miss["field"], "-", miss["reason"])

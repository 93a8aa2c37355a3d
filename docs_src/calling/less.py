import bespeak

with bespeak.connect_sync("agtp://127.0.0.1") as hotel:
    whole = hotel.request("QUERY", "/rooms", {"beds": 3})
    short = hotel.request("QUERY", "/rooms", {"beds": 3}, fields=["rooms.room_id"])
    print(len(whole.body), "bytes, or", len(short.body), short.output["rooms"][0])

    wrong = hotel.request("QUERY", "/rooms", fields=["rooms.room"])
    if wrong.error is not None:
        print(wrong.status, wrong.error.code, wrong.error.members["suggestions"])

import bespeak

with bespeak.connect_sync("agtp://127.0.0.1") as hotel:
    for room in hotel.call("QUERY", "/rooms", beds=3)["rooms"][:2]:
        print(room["room_id"], room["beds"])

import bespeak

with bespeak.connect_sync("agtp://127.0.0.1") as rooms:
    print(rooms.call("QUERY", "/rooms", beds=3))

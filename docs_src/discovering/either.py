import sys

import bespeak

with bespeak.connect_sync(sys.argv[1]) as hotel:
    print(hotel.call("QUERY", "/rooms", beds=3)["rooms"][0])

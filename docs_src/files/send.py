from pathlib import Path

import bespeak

with bespeak.connect_sync("http://127.0.0.1:8080") as service:
    print(service.call("SCAN", "/documents", document=Path("note.txt"), shortest=3))

"""A service of 10,000 endpoints, one of which has descriptions that a page must not take for HTML."""

from __future__ import annotations

from typing import Any

from bespeak import App

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>'
app = App("Crowd <b>of</b> things", server_id="crowd.example", operator="Tests", contact="tests@crowd.example")


def look(name: str = "") -> dict[str, Any]:
    """Look at one of many things.

    Outcome: The thing is returned.
    """
    return {"name": name}


for number in range(10_000):
    app.endpoint("FETCH", f"/things/number-{number}", impact="informational")(look)


@app.endpoint("QUERY", "/hostile", impact="informational")
def hostile(text: str = HOSTILE) -> dict[str, Any]:
    """Query <img src=x onerror="alert(1)"><script>alert(2)</script> things.

    Outcome: <script>alert(3)</script> is returned <b>as text</b>.
    """
    return {"text": text, HOSTILE: [HOSTILE]}

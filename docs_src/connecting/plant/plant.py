import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct

from bespeak import App

app = App("Acme Plant", server_id="plant.acme.example", operator="Acme", contact="ops@acme.example")


class Reading(Struct):
    number: int
    degrees: float


@app.channel("telemetry")
async def read_sensor(after: Reading | None = None) -> AsyncIterator[Reading]:
    """Yield what the sensor measures, behind the last reading that was delivered."""
    number = after.number if after else 0
    while number < 3:
        number += 1
        yield Reading(number, 20.0 + number)
    await asyncio.Event().wait()  # until the sensor measures again


@app.queue("readings")
async def judge(number: int, degrees: float) -> dict[str, bool]:
    """Judge a reading."""
    return {"hot": degrees > 22}

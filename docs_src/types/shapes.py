from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal, NamedTuple, TypedDict

import attrs
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from bespeak import App


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Guest:
    name: str
    age: int | None = None


class Room(Struct):
    room_id: str
    beds: Annotated[int, Meta(ge=1, le=6)]


class Stay(TypedDict):
    arrival: date
    nights: int


class Place(NamedTuple):
    floor: int
    door: int


@attrs.define
class Chair:
    legs: int


class Family(BaseModel):
    members: list[str]


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


app = App(
    "Shapes",
    server_id="shapes.example",
    operator="Acme",
    contact="ops@acme.example",
)


@app.endpoint("QUERY", "/room", impact="informational")
def find_room(guests: list[Guest], stay: Stay, size: Size = Size.SMALL) -> Room:
    """Find a room for a party.

    Outcome: A room with a bed for each guest is returned.
    """
    floor = 2 if size is Size.LARGE else 1
    return Room(f"{floor}{stay['arrival'].day:02}", len(guests))

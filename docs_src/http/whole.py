from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import bespeak

rooms = bespeak.asgi("rooms.py", url="http://127.0.0.1:8000/agents", store="rooms.db")


async def home(_: Request) -> PlainTextResponse:
    return PlainTextResponse("What was here before.\n")


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with rooms.running():
        yield


app = Starlette(routes=[Route("/", home), Mount("/agents", rooms)], lifespan=lifespan)

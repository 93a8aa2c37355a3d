"""One document as a Starlette route on uvicorn, served in the usual way. Usage: static_app.py PORT FILE"""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

CONTENT = Path(sys.argv[2]).read_bytes()
HEADERS = {"Cache-Control": "public, max-age=86400"}


async def document(request: Request) -> Response:
    """Return the same bytes to every client."""
    return Response(CONTENT, media_type="application/json", headers=HEADERS)


app = Starlette(routes=[Route("/.well-known/ai", document)])

if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )

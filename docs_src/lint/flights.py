from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

DOCUMENT = {
    "aiendpoint": "1.0",
    "service": {"name": "Flights", "description": "Finds flights between two airports."},
    "capabilities": [
        {
            "id": "search_flights",
            "description": "Search flights between two airports",
            "endpoint": "/flights",
            "method": "GET",
            "params": {"from": "an airport code", "to": "string, required -- an airport code"},
        }
    ],
    "auth": {"type": "none"},
}


def discovery(_: Request) -> JSONResponse:
    return JSONResponse(DOCUMENT)


app = Starlette(routes=[Route("/.well-known/ai", discovery)])

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

DOCUMENT = {
    "aiendpoint": "1.0",
    "service": {"name": "Flights", "description": "Search flights and hold a seat."},
    "capabilities": [
        {
            "id": "search_flights",
            "description": "Search flights between two airports",
            "endpoint": "/flights",
            "method": "GET",
            "params": {
                "from": "string, required -- airport of departure",
                "to": "string, required -- airport of arrival",
                "limit": "integer, optional, default 10, max 50",
            },
            "returns": "flights[] {id, from, to, price}",
        },
        {
            "id": "hold_seat",
            "description": "Hold a seat for an hour",
            "endpoint": "/flights/:id/hold",
            "method": "POST",
            "params": {"id": "string, required", "seat": "string, optional, aisle|window"},
            "returns": "hold_id",
        },
    ],
    "auth": {"type": "bearer", "docs": "https://flights.example/tokens"},
}


async def discovery(_: Request) -> JSONResponse:
    return JSONResponse(DOCUMENT)


async def search(request: Request) -> JSONResponse:
    wanted = request.query_params
    return JSONResponse({"flights": [{"id": "LX2084", "from": wanted["from"], "to": wanted["to"], "price": 120}]})


async def hold(request: Request) -> JSONResponse:
    if request.headers.get("authorization") != "Bearer sesame":
        return JSONResponse({"detail": "Who are you?"}, 401)
    return JSONResponse({"hold_id": f"{request.path_params['id']}-1"})


async def robots(_: Request) -> PlainTextResponse:
    return PlainTextResponse("User-agent: *\nDisallow: /private\n")


app = Starlette(
    routes=[
        Route("/.well-known/ai", discovery),
        Route("/flights", search),
        Route("/flights/{id}/hold", hold, methods=["POST"]),
        Route("/robots.txt", robots),
    ]
)

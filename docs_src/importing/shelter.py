from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

ANIMALS: dict[int, dict[str, Any]] = {
    1: {"id": 1, "name": "Mia", "species": "cat", "reservedFor": None},
    2: {"id": 2, "name": "Rex", "species": "dog", "reservedFor": None},
}


def knows(request: Request) -> bool:
    return request.headers.get("x-api-key") == "sesame"


async def animals(request: Request) -> JSONResponse:
    if not knows(request):
        return JSONResponse({"message": "Who are you?"}, 401)
    species = request.query_params.get("species")
    return JSONResponse([animal for animal in ANIMALS.values() if species in (None, animal["species"])])


async def animal(request: Request) -> JSONResponse:
    found = ANIMALS.get(request.path_params["number"])
    return JSONResponse(found) if found else JSONResponse({"message": "There is none."}, 404)


async def reserve(request: Request) -> JSONResponse:
    found = ANIMALS[request.path_params["number"]]
    if found["reservedFor"] is not None:
        return JSONResponse({"message": "Too late."}, 409)
    found["reservedFor"] = dict(line.split("=") for line in (await request.body()).decode().split("&"))["family"]
    return JSONResponse(found)


app = Starlette(
    routes=[
        Route("/v2/animals", animals),
        Route("/v2/animals/{number:int}", animal),
        Route("/v2/animals/{number:int}/reserve", reserve, methods=["POST"]),
    ]
)

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def complete(request: Request) -> JSONResponse:
    messages = (await request.json())["messages"]
    data = json.loads(messages[1]["content"].split("\n")[1])
    if "texts" in data:
        answer = {"source_language": "en", "translations": [f"({text})" for text in data["texts"]]}
    else:
        answer = {"content": "print('hello')"}
    choice = {"message": {"role": "assistant", "content": json.dumps(answer)}, "finish_reason": "stop"}
    return JSONResponse({"choices": [choice], "usage": {"prompt_tokens": 90, "completion_tokens": 12}})


app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])

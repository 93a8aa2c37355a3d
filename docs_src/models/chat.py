import asyncio
import json
from typing import Any

import bespeak
from bespeak import Question

STAY = {"guest_id": "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11", "arrival": "2027-05-01", "departure": "2027-05-03"}
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("query_rooms", {"beds": 7, "arrival": None, "departure": None}),
    ("query_rooms", {"beds": 3, "arrival": "2027-05-01", "departure": "2027-05-03"}),
    ("book_room", {**STAY, "room_id": "102"}),
]


def model(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Stand in for client.chat.completions.create(...).choices[0].message."""
    if not SCRIPT:
        return {"role": "assistant", "content": "Room 102 is yours."}
    name, arguments = SCRIPT.pop(0)
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "tool_calls": [{"id": f"call_{len(SCRIPT)}", "type": "function", "function": function}],
    }


def ask(question: Question) -> bool:
    print(f"-- {question.text.splitlines()[0]} Room {question.arguments['room_id']}? yes")
    return True


async def main() -> None:
    scopes = ["booking:room", "calendar:write"]
    async with bespeak.connect("agtp://127.0.0.1", agent_id="0a3f" * 16, scopes=scopes) as hotel:
        tools = await hotel.tools("openai", confirm=ask)
        messages: list[Any] = [{"role": "user", "content": "Book me a room with three beds, 1 to 3 May 2027."}]
        while True:
            answer = model(messages, tools)
            messages.append(answer)
            if not answer.get("tool_calls"):
                break
            results = await tools.run_all(answer)
            messages += results
            print(*(result["content"] for result in results))
        print(answer["content"])


asyncio.run(main())

import asyncio
import os

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitRequestFormParams, ElicitResult

SERVER = StdioServerParameters(
    command="bespeak",
    args=["mcp", "tickets.py", "--as", "demo", "--scope", "seats:read,seats:buy"],
    env=dict(os.environ),
)


async def ask(_: object, form: ElicitRequestFormParams) -> ElicitResult:
    print(form.message)
    return ElicitResult(action="accept", content={"confirm": True})


async def main() -> None:
    async with Client(stdio_client(SERVER), elicitation_callback=ask) as client:
        for tool in (await client.list_tools()).tools:
            print(tool.name, tool.annotations)
        for _ in range(2):
            result = await client.call_tool("purchase_seat", {"seat": "A1"})
            print(result.structured_content or result.content[0].text)


asyncio.run(main())

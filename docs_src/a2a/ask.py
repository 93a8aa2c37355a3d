import asyncio
import sys
import uuid
from pathlib import Path

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_data_parts, new_data_part
from a2a.types import Message, Role, SendMessageRequest, Task, TaskState

AGENT = {"Agent-ID": "1" * 64, "Authority-Scope": "seats:read, seats:buy"}
LAST = Path("task.txt")


async def send(data: dict[str, object], task_id: str = "") -> Task:
    async with httpx.AsyncClient(headers=AGENT) as http:
        card = await A2ACardResolver(http, "http://127.0.0.1:8080").get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        message = Message(
            message_id=str(uuid.uuid4()), role=Role.ROLE_USER, task_id=task_id, parts=[new_data_part(data)]
        )
        answer = await anext(client.send_message(SendMessageRequest(message=message)))
        return answer.task


skill, *given = sys.argv[1:]
data = {"skill": skill, "input": dict(one.split("=", 1) for one in given if "=" in one)}
task = asyncio.run(send(data, LAST.read_text() if "--continue" in given else ""))
LAST.write_text(task.id)
print(TaskState.Name(task.status.state))
for artifact in task.artifacts:
    print(*get_data_parts(artifact.parts))
if task.status.HasField("message"):
    print(task.status.message.parts[0].text)

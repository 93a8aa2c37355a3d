"""An MCP server for tests, without the SDK: it starts in milliseconds and misbehaves as it is told.

Run as `python crooked_mcp.py [MODE] [FILE]`. Every mode but `good` misbehaves at the start; the tools misbehave when
they are called. It speaks a revision with the `initialize` handshake.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: dict[str, dict[str, Any]] = {
    "add": {"description": "Calculate the sum of two numbers.", "inputSchema": NUMBERS, "outputSchema": SUM},
    "delete_note": {
        "description": "Delete a note.",
        "inputSchema": {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]},
        "annotations": {"readOnlyHint": True},
    },
    "lie": {"description": "Get the sum of nothing.", "inputSchema": NOTHING, "outputSchema": SUM},
    **{
        name: {"description": f"Get {name}.", "inputSchema": NOTHING}
        for name in (
            "json",
            "texts",
            "list",
            "failure",
            "refusal",
            "crash",
            "silence",
            "flood",
            "rubbish",
            "question",
            "progress",
        )
    },
    "change": {"description": "Change the tools.", "inputSchema": NOTHING},
    "env": {"description": "Get the environment.", "inputSchema": NOTHING},
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(*said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in said], **more}


def call(name: str, given: dict[str, Any]) -> dict[str, Any] | None:  # noqa: C901, PLR0912 - one case per tool
    match name:
        case "add":
            total = given["a"] + given["b"]
            return text(str(total), structuredContent={"sum": total})
        case "json":
            return text('{"found": [1, 2]}')
        case "texts":
            return text("one", "two")
        case "list":
            return text("[1]", structuredContent=[1])
        case "lie":
            return text("?", structuredContent={"sum": "three"})
        case "failure":
            return text("The printer\nis on fire.", isError=True)
        case "crash":
            sys.stderr.write("Segmentation fault, sort of\n")
            sys.stderr.flush()
            os._exit(3)
        case "silence":
            return None
        case "flood":
            return text("x" * 9_000_000)
        case "rubbish":
            sys.stdout.write("debug: here I am\n{not json\n\n")
            return text("after the rubbish")
        case "env":
            return text(json.dumps(dict(os.environ)))
        case "change":
            del TOOLS["texts"]
            TOOLS["add"] = {**TOOLS["add"], "inputSchema": {**NUMBERS, "required": ["a", "b", "c"]}}
            TOOLS["json"] = {**TOOLS["json"], "inputSchema": {"type": "object", "properties": {"more": {}}}}
            say({"method": "notifications/tools/list_changed"})
            return text("changed")
        case _:
            return text("done")


def serve(mode: str = "") -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if mode == "strict" and message["method"] != "initialize":
            sys.exit("expected initialize")
        mode = "twice" if mode == "twice" else ""
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if number is None or method is None:
            continue
        if method == "initialize":
            info = {"name": "crooked", "version": "1.2"}
            able = {"tools": {"listChanged": True}}
            say({"id": number, "result": {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": info}})
        elif method == "tools/list":
            listed = [{"name": name, **tool} for name, tool in TOOLS.items()]
            listed += listed[:1] if mode == "twice" else []
            at = int(params.get("cursor", 0))
            page = {"tools": listed[at : at + 5], **({"nextCursor": str(at + 5)} if at + 5 < len(listed) else {})}
            say({"id": number, "result": page})
        elif method == "tools/call" and params["name"] == "refusal":
            say({"id": number, "error": {"code": -32602, "message": "b must be odd"}})
        elif method == "tools/call" and params["name"] == "question":
            asked = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
            say({"id": "q", "method": "elicitation/create", "params": asked})
            answer = json.loads(sys.stdin.readline())
            say({"id": number, "result": text(answer["error"]["message"], isError=True)})
        elif method == "tools/call" and params["name"] == "progress":
            token = (params.get("_meta") or {}).get("progressToken")
            for done in (1, 2) if token is not None else ():
                told = {"progressToken": token, "progress": done, "total": 2, "message": f"step {done}"}
                say({"method": "notifications/progress", "params": told})
            say({"id": number, "result": text("done")})
        elif method == "tools/call":
            result = call(params["name"], params.get("arguments") or {})
            if result is not None:
                say({"id": number, "result": result})
        else:
            say({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main(mode: str = "good", file: str = "") -> None:
    if mode == "dies":
        sys.exit("No module named 'missing'")
    if mode == "silent":
        time.sleep(60)
    if mode in ("stubborn", "mute"):
        # It ignores the end of its input and requests to end, and so do its children, of which one has left its group
        # and lost its parent; a mute one answers nothing.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "60"])
        daemon = subprocess.run(
            ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], start_new_session=True, capture_output=True, check=True
        )
        Path(file).write_text(f"{os.getpid()} {child.pid} {int(daemon.stdout)}")
        if mode == "stubborn":
            serve()
        time.sleep(60)
    serve(mode)


if __name__ == "__main__":
    main(*sys.argv[1:])

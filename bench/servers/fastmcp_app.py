"""The contract implemented as tools of FastMCP: stateless HTTP, JSON replies, on uvicorn. Usage: fastmcp_app.py PORT
[TOOLS]
"""

from fastmcp import FastMCP
from mcp_app import asked_tools, book, serve

if __name__ == "__main__":
    server = FastMCP("Acme Rooms")
    for name in asked_tools():
        server.tool(book, name=name)
    serve(server.http_app(json_response=True, stateless_http=True))

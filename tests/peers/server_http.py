#!/usr/bin/env python3
"""A small server made with the official Python SDK, over streamable HTTP in both eras.

    .venv/bin/python server_http.py PORT
"""

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("own", instructions="Made for tests.")


class Name(BaseModel):
    name: str


@server.tool()
def echo(text: str) -> str:
    """Says the same."""
    return text


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("this tool always fails")


@server.tool()
def big(size: int) -> str:
    """Says much."""
    return "0123456789abcdef" * (size // 16)


@server.tool()
async def count(to: int, context: Context) -> int:
    """Counts, and tells each number."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"{number} of {to}")
        await anyio.sleep(0.05)
    return to


@server.tool()
async def sleep(seconds: float) -> str:
    """Takes its time."""
    await anyio.sleep(seconds)
    return "awake"


@server.tool()
async def ask_name(context: Context) -> str:
    """Asks the user for a name."""
    answer = await context.elicit("Your name?", Name)
    return answer.model_dump_json()


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note about somebody."""
    return f"{name} wrote notes"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))

#!/usr/bin/env python3
"""Lists the tools of our MCP server and calls each, through the official Python client.

    .venv/bin/python ask_all.py ERA CALLS -- COMMAND [ARG...]
    .venv/bin/python ask_all.py ERA CALLS KEY_FILE -- URL

ERA is `legacy` (up to 2025-11-25) or `auto` (2026-07-28 first); CALLS a JSON object of names of tools
with their arguments. The client checks answers against the schemas that the tools have. Prints a JSON
object: the revision, the names of all tools, and of each call whether it is an error and what was
answered.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import anyio
import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)


async def main():
    cut = sys.argv.index("--")
    era, calls, *key = sys.argv[1:cut]
    command = sys.argv[cut + 1 :]
    headers = {"Authorization": f"Bearer {Path(key[0]).read_text().strip()}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        if key:
            server = streamable_http_client(command[0], http_client=http)
        else:
            server = mcp.StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with mcp.Client(server, mode=era, read_timeout_seconds=60, cache=None) as client:
            listed = await client.list_tools()
            answers = {}
            for tool, arguments in json.loads(calls).items():
                result = await client.call_tool(tool, arguments)
                answers[tool] = {"error": result.is_error, "answer": result.structured_content}
            names = [tool.name for tool in listed.tools]
            print(json.dumps({"revision": client.protocol_version, "tools": names, "answers": answers}))


if __name__ == "__main__":
    anyio.run(main)

#!/usr/bin/env python3
"""The client that the conformance suite watches: the official Python one.

    conformance client --scenario NAME --command '.venv/bin/python conformance_client.py [RELAY]'

The suite appends the URL of its server. With RELAY, the agent-trace program, a relay is put
between, which writes what it says into the file that AGENT_TRACE_TEST_SAID names.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
import warnings

import anyio
import mcp
from mcp import types

warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)


@contextlib.contextmanager
def relayed(program, url):
    origin, path = re.fullmatch(r"(http://[^/]+)(.*)", url).groups()
    said = os.environ["AGENT_TRACE_TEST_SAID"]
    with open(said, "wb") as file:
        command = [program, "relay", "--listen", "127.0.0.1:0", "--to", origin]
        relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        end = time.monotonic() + 60
        own = None
        while own is None and relay.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
            with open(said) as file:
                own = re.search(r"127\.0\.0\.1:\d+", file.read().replace(origin, ""))
        if own is None:
            sys.exit("the relay does not start")
        yield f"http://{own[0]}{path}"
    finally:
        relay.terminate()
        relay.wait()


async def drive(scenario, url):
    era = "auto" if scenario == "request-metadata" else "legacy"
    name = types.Implementation(name="agent-trace-tests", version="1")
    async with mcp.Client(url, mode=era, client_info=name, read_timeout_seconds=20, cache=None) as client:
        listed = await client.list_tools()
        if scenario == "tools_call":
            await client.call_tool("add_numbers", {"a": 5, "b": 3})
        elif scenario == "sse-retry":
            await client.call_tool(listed.tools[0].name, {})


def main():
    *relay, url = sys.argv[1:]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    with relayed(relay[0], url) if relay else contextlib.nullcontext(url) as url:
        anyio.run(drive, scenario, url)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Drives a real MCP server through the official Python client and prints what the client saw.

    .venv/bin/python drive.py SCENARIO [--dir DIR] -- COMMAND [ARG...]
    .venv/bin/python drive.py SCENARIO -- URL

One line of canonical JSON per step goes to stdout: {"step": NAME, "result": {...}}, or "error" in
place of "result" for a JSON-RPC error. The same scenario gives the same bytes every time, so a
test runs it once against the server and once with a relay in front, and compares. Only what the
server itself makes anew each time (clock times, a port, the directory) is masked, as <name>.

{dir} inside COMMAND or an ARG becomes DIR, by default a fresh temporary directory. The server's
stderr goes to ours. A URL is that of a server which runs already; one that ends in /sse speaks
HTTP+SSE, the transport of 2024-11-05. Exit status: 0 if every step was taken, whatever the server answered.
"""

import argparse
import collections
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import anyio
import mcp
from mcp import types
from mcp.client.sse import sse_client

# The legacy era is deprecated by the client, and still what most servers speak.
warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)

# Far above what a loaded machine needs; a call that takes longer hangs.
TIMEOUT = 60
# Commits made at a fixed time by a fixed person have fixed ids, on every machine.
GIT_ENV = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "1767323045 +0000" for who in ("AUTHOR", "COMMITTER")},
}


class Drive:
    """One connection: takes steps, prints them, and remembers what the server sent by itself."""

    def __init__(self, directory):
        self.dir = directory
        self.masks = [(re.escape(str(directory)), "<dir>")]
        self.client = None
        self.asked = []
        self.notified = collections.Counter()
        self.roots_known = anyio.Event()

    # What the server may ask of us. Declaring these makes servers ask.

    async def sample(self, _context, params):
        self.asked.append({"sampling/createMessage": dump(params)})
        text = types.TextContent(type="text", text="sampled, not thought")
        return types.CreateMessageResult(role="assistant", content=text, model="none", stop_reason="endTurn")

    async def elicit(self, _context, params):
        self.asked.append({"elicitation/create": dump(params)})
        return types.ElicitResult(action="accept", content={"name": "Ada", "check": True, "integer": 7})

    async def list_roots(self, _context):
        self.asked.append({"roots/list": {}})
        self.roots_known.set()
        return types.ListRootsResult(roots=[types.Root(uri=self.dir.as_uri(), name="work")])

    async def notice(self, message):
        # An exception stands for a line that is no message.
        self.notified[getattr(message, "method", "not a message")] += 1

    def say(self, step, outcome):
        line = json.dumps({"step": step, **outcome}, sort_keys=True, ensure_ascii=False)
        for pattern, name in self.masks:
            line = re.sub(pattern, name, line)
        print(line, flush=True)

    async def step(self, name, call):
        self.say(name, await answer(call))

    async def tool(self, tool, **arguments):
        await self.step(f"tools/call {tool}", self.client.call_tool(tool, arguments))

    async def lists(self, *what):
        for name in what:
            call = getattr(self.client, "list_" + name.replace("resources/", "resource_"))
            await self.step(f"{name}/list", call())

    async def until(self, met, what):
        """Notifications are handled beside the answers, so one may be late by a moment."""
        with anyio.move_on_after(TIMEOUT):
            while not met():
                await anyio.sleep(0.01)
        if not met():
            raise TimeoutError(what)


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def answer(call):
    try:
        return {"result": dump(await call)}
    except mcp.MCPError as error:
        return {"error": dump(error.error)}


# The scenarios. Each is one connection's fixed list of calls.


async def everything(d):
    """Everything a 2025 server has: progress, cancellation, and requests of its own."""
    d.masks.append((r'created at [^"\\]+', "created at <time>"))
    # The server asks for the roots 350 ms after the start. A call that needs them before then
    # would make it ask once more, so wait.
    await d.until(d.roots_known.is_set, "roots/list")
    await d.until(lambda: d.notified["notifications/message"] > 0, "the roots' log message")
    await d.step("ping", d.client.send_ping())
    await d.lists("tools", "prompts", "resources", "resources/templates")
    await d.tool("echo", message="hällo \u2028 \U0001f980 \"\\\n\0")
    await d.tool("echo")
    await d.tool("no-such-tool")
    await d.tool("get-sum", a=0.1, b=0.2)
    await d.tool("get-structured-content", location="Chicago")
    await d.tool("get-annotated-message", messageType="error", includeImage=True)
    await d.tool("get-roots-list")
    await d.tool("trigger-sampling-request", prompt="say something", maxTokens=7)
    await d.tool("trigger-elicitation-request")

    # Over HTTP the client takes no more than 1 MiB in one event.
    big = await d.client.call_tool("echo", {"message": "0123456789abcdef" * 65000})
    digest = hashlib.sha256(big.content[0].text.encode()).hexdigest()
    d.say("tools/call echo, 1 MB", {"result": {"sha256": digest}})

    # Answers may come in any order; each must reach the call that asked.
    answers = {}

    async def one(number):
        answers[number] = await answer(d.client.call_tool("get-sum", {"a": number, "b": 100}))

    async with anyio.create_task_group() as calls:
        for number in range(20):
            calls.start_soon(one, number)
    d.say("tools/call get-sum, 20 at once", {"result": [answers[n] for n in range(20)]})

    # The next call leaves the server the time to end this one, and to exit when asked.
    work = {"duration": 2, "steps": 1}
    call = d.client.call_tool("trigger-long-running-operation", work, read_timeout_seconds=0.3)
    await d.step("tools/call trigger-long-running-operation, cancelled", call)

    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total, message])

    work = {"duration": 1, "steps": 5}
    call = d.client.call_tool("trigger-long-running-operation", work, progress_callback=on_progress)
    await d.step("tools/call trigger-long-running-operation", call)
    await d.until(lambda: len(progress) == 5, "progress")
    d.say("progress", {"result": progress})

    await d.step("prompts/get", d.client.get_prompt("args-prompt", {"city": "Bern", "state": "BE"}))
    await d.step("prompts/get, argument missing", d.client.get_prompt("args-prompt", {}))
    reference = types.PromptReference(type="ref/prompt", name="completable-prompt")
    argument = {"name": "department", "value": "S"}
    await d.step("completion/complete", d.client.complete(reference, argument))
    await d.step("resources/read", d.client.read_resource("demo://resource/dynamic/text/7"))
    document = "demo://resource/static/document/instructions.md"
    await d.step("resources/read, a file", d.client.read_resource(document))
    await d.step("resources/read, unknown", d.client.read_resource("demo://nothing"))
    await d.step("resources/subscribe", d.client.subscribe_resource(document))
    await d.step("logging/setLevel", d.client.set_logging_level("error"))


async def filesystem(d):
    """Needs {dir} as the server's allowed directory."""
    note, deep = str(d.dir / "note.txt"), d.dir / "a" / "b"
    await d.until(d.roots_known.is_set, "roots/list")
    await d.lists("tools")
    await d.tool("list_allowed_directories")
    await d.tool("write_file", path=note, content="one\ntwo\nthree ünï\n")
    await d.tool("create_directory", path=str(deep))
    await d.tool("list_directory_with_sizes", path=str(d.dir))
    await d.tool("read_text_file", path=note)
    await d.tool("edit_file", path=note, edits=[{"oldText": "two", "newText": "zwei"}])
    await d.tool("read_text_file", path=note, head=2)
    await d.tool("move_file", source=note, destination=str(deep / "moved.txt"))
    await d.tool("directory_tree", path=str(d.dir))
    await d.tool("read_text_file", path=note)
    await d.tool("read_text_file", path="/etc/hostname")
    await d.tool("write_file", path="/outside.txt", content="no")


async def memory(d):
    """Writes {dir}/memory.jsonl, which MEMORY_FILE_PATH names."""
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote notes"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    await d.lists("tools", "resources")
    await d.tool("create_entities", entities=[ada, engine])
    await d.tool("create_relations", relations=[{"from": "Ada", "to": "Engine", "relationType": "describes"}])
    await d.tool("add_observations", observations=[{"entityName": "Ada", "contents": ["1843"]}])
    await d.tool("add_observations", observations=[{"entityName": "Nobody", "contents": ["?"]}])
    await d.tool("search_nodes", query="machine")
    await d.tool("read_graph")
    await d.step("resources/read", d.client.read_resource("memory://knowledge-graph"))
    await d.tool("delete_entities", entityNames=["Engine"])
    await d.tool("open_nodes", names=["Ada", "Engine"])


async def git(d):
    """Needs {dir}, a repository of two commits and a change, as the server's --repository."""
    repo = str(d.dir)
    await d.lists("tools")
    await d.tool("git_status", repo_path=repo)
    await d.tool("git_diff_unstaged", repo_path=repo)
    await d.tool("git_add", repo_path=repo, files=["poem.txt"])
    await d.tool("git_diff_staged", repo_path=repo)
    await d.tool("git_commit", repo_path=repo, message="3 lines")
    await d.tool("git_log", repo_path=repo, max_count=5)
    await d.tool("git_diff", repo_path=repo, target="HEAD~2")
    await d.tool("git_show", repo_path=repo, revision="HEAD")
    await d.tool("git_branch", repo_path=repo, branch_type="local")
    await d.tool("git_show", repo_path=repo, revision="no-such-revision")
    await d.tool("git_status", repo_path=str(d.dir / "nowhere"))
    await d.tool("git_status")
    await d.tool("no_such_tool")


async def time(d):
    """Start the server with --local-timezone, or its tool list names the machine's zone."""
    # Converting takes today's date; zones without daylight saving keep the rest fixed.
    d.masks += [
        (r"\b\d{4}-\d\d-\d\d(?=T)", "<date>"),
        (r"\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b", "<day>"),
    ]
    await d.lists("tools")
    await d.tool("convert_time", source_timezone="Asia/Tokyo", time="09:30", target_timezone="Asia/Kolkata")
    await d.tool("convert_time", source_timezone="Asia/Tokyo", time="25:99", target_timezone="Asia/Kolkata")
    await d.tool("get_current_time", timezone="Nowhere/Land")
    await d.tool("get_current_time")
    await d.tool("no_such_tool")
    d.masks.append((r"<date>T\d\d:\d\d:\d\d", "<date>T<time>"))
    await d.tool("get_current_time", timezone="Asia/Tokyo")


async def fetch(d):
    """Start the server with --allow-private-ips: the pages are served here, on loopback."""
    pages = {
        "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /private\n"),
        "/": ("text/html", "<html><body><h1>Title</h1><p>Some <b>text</b>, ünï.</p></body></html>"),
        "/long": ("text/plain", "0123456789" * 50),
    }

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kind, text = pages.get(self.path, ("text/plain", "not here\n"))
            body = text.encode()
            self.send_response(200 if self.path in pages else 404)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        d.masks.append((re.escape(here), "http://<here>"))
        await d.lists("tools", "prompts")
        await d.tool("fetch", url=f"{here}/")
        await d.tool("fetch", url=f"{here}/", raw=True)
        await d.tool("fetch", url=f"{here}/long", max_length=100, start_index=50)
        await d.tool("fetch", url=f"{here}/private/page")
        await d.tool("fetch", url=f"{here}/missing")
        await d.tool("fetch", url="no url")
        await d.step("prompts/get", d.client.get_prompt("fetch", {"url": f"{here}/private/page"}))
        await d.step("prompts/get, argument missing", d.client.get_prompt("fetch", {}))
        server.shutdown()


async def own(d):
    """server_http.py, in whichever era."""
    await d.lists("tools", "prompts", "resources", "resources/templates")
    await d.tool("echo", text="hällo \u2028 \U0001f980 \"\\\n\0")
    await d.tool("echo")
    await d.tool("fail")
    await d.tool("no_such_tool")
    await d.tool("ask_name")
    await d.tool("big", size=400_000)

    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total, message])

    await d.step("tools/call count", d.client.call_tool("count", {"to": 5}, progress_callback=on_progress))
    await d.until(lambda: len(progress) == 5, "progress")
    d.say("progress", {"result": progress})

    answers = {}

    async def one(number):
        answers[number] = await answer(d.client.call_tool("echo", {"text": str(number)}))

    async with anyio.create_task_group() as calls:
        for number in range(20):
            calls.start_soon(one, number)
    d.say("tools/call echo, 20 at once", {"result": [answers[n] for n in range(20)]})

    call = d.client.call_tool("sleep", {"seconds": 30}, read_timeout_seconds=0.3)
    await d.step("tools/call sleep, given up", call)
    await d.step("resources/read", d.client.read_resource("note://ada"))
    await d.step("prompts/get", d.client.get_prompt("greet", {"name": "Ada"}))
    await d.step("prompts/get, argument missing", d.client.get_prompt("greet", {}))


async def rounds(d):
    """The fixture of the conformance suite: questions instead of answers, and tasks."""
    await d.lists("tools", "resources", "resources/templates", "prompts")
    for tool in ("elicitation", "request_state", "multi_round", "sampling", "list_roots", "multiple_inputs"):
        await d.tool(f"test_input_required_result_{tool}")
    await d.step("prompts/get", d.client.get_prompt("test_input_required_result_prompt"))
    await d.tool("test_custom_header", value="hällo")
    await d.tool("test_image_content")
    await d.tool("test_error_handling")
    await d.step("resources/read", d.client.read_resource("test://template/7/data"))

    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total, message])

    await d.step("tools/call, progress", d.client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress))
    await d.until(lambda: len(progress) == 3, "progress")
    d.say("progress", {"result": progress})


# Name: (steps, era). "legacy" is the initialize handshake. "auto" asks server/discover first: a
# server of revision 2026-07-28 then goes without a handshake, an older one makes us fall back.
SCENARIOS = {
    "everything": (everything, "legacy"),
    "filesystem": (filesystem, "legacy"),
    "memory": (memory, "legacy"),
    "git": (git, "legacy"),
    "time": (time, "legacy"),
    "fetch": (fetch, "legacy"),
    "modern": (time, "auto"),
    "modern-git": (git, "auto"),
    "modern-fetch": (fetch, "auto"),
    "fallback": (memory, "auto"),
    "modern-everything": (everything, "auto"),
    "own": (own, "legacy"),
    "modern-own": (own, "auto"),
    "rounds": (rounds, "auto"),
}


def make_repository(directory):
    """The server wants it there when it starts."""

    def run(*words):
        command = ["git", "-C", str(directory), *words]
        subprocess.run(command, check=True, env=os.environ | GIT_ENV, stdout=sys.stderr)

    poem = directory / "poem.txt"
    run("init", "--quiet", "--initial-branch=main")
    for lines, text in enumerate(("roses\n", "roses\nviolets\n"), 1):
        poem.write_text(text)
        run("add", "poem.txt")
        run("commit", "--quiet", "--message", f"{lines} lines")
    poem.write_text("roses\nviolets\nünï\n")


def environment(scenario, directory, scratch):
    """The client passes on only a few variables unless told; a relay needs its own as well."""
    env = os.environ | GIT_ENV
    env |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    env |= {"MEMORY_FILE_PATH": str(directory / "memory.jsonl")}
    if scenario.endswith("fetch"):
        # Where it finds Node, the server's HTML reader runs `npm install` at the first page, inside
        # the call. A node that fails makes it use Python.
        node = scratch / "node"
        node.write_text("#!/bin/sh\nexit 1\n")
        node.chmod(0o755)
        env["PATH"] = f"{scratch}:{env['PATH']}"
    return env


async def main():
    sys.stdout.reconfigure(encoding="utf-8")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--dir", type=Path)
    # Split by hand: a command may hold a `--` of its own.
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, command = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    if not command:
        parser.error("no server command after --")
    steps, era = SCENARIOS[options.scenario]

    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary).resolve()
        directory = (options.dir or scratch / "work").resolve()
        directory.mkdir(exist_ok=True)
        if options.scenario.endswith("git"):
            make_repository(directory)
        command = [word.replace("{dir}", str(directory)) for word in command]
        if not command[0].startswith("http://"):
            env = environment(options.scenario, directory, scratch)
            server = mcp.StdioServerParameters(command=command[0], args=command[1:], env=env)
        else:
            server = sse_client(command[0]) if command[0].endswith("/sse") else command[0]
        d = Drive(directory)
        async with mcp.Client(
            server,
            mode=era,
            client_info=types.Implementation(name="agent-trace-tests", version="1"),
            sampling_callback=d.sample,
            elicitation_callback=d.elicit,
            list_roots_callback=d.list_roots,
            message_handler=d.notice,
            read_timeout_seconds=TIMEOUT,
            # Each call shall be on the wire.
            cache=None,
        ) as client:
            d.client = client
            hello = client.session.initialize_result or client.session.discover_result
            d.say("hello", {"result": dump(hello), "revision": client.protocol_version})
            await steps(d)
            if command[0].endswith("/mcp"):
                # Sent before or after the client has opened the stream for them, as it happens.
                del d.notified["notifications/tools/list_changed"]
            d.say("from the server", {"result": {"requests": d.asked, "notifications": d.notified}})


if __name__ == "__main__":
    anyio.run(main)

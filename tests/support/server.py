"""The scripted server of the end-to-end tests: does on its raw pipes what a list of steps says.

    python3 server.py SCRIPT [anything...]

SCRIPT is a JSON file {"notes": FOLDER, "steps": [[NAME, ARGUMENT...], ...]}; bytes stand in it as
base64. `server.rs` writes it and names the steps. Into FOLDER goes what tests want to know: `pid`,
`in` (every byte that was read from standard input), `end` (standard input has ended), `signals`,
`started` (arguments, folder and environment), and the pids of what the server itself started.
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time

# Far more than anything takes; a server that is left behind ends by itself.
LIMIT = 120

with open(sys.argv[1]) as file:
    SCRIPT = json.load(file)
NOTES = SCRIPT["notes"]
IN = open(os.path.join(NOTES, "in"), "ab", buffering=0)
ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|null)')


def note(name, text):
    with open(os.path.join(NOTES, name), "a") as file:
        file.write(f"{text}\n")


def write(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read(count):
    data = os.read(0, count)
    if data:
        IN.write(data)
    else:
        note("end", "end")
    return data


def read_line():
    """Byte by byte, so that nothing after the line is taken."""
    line = b""
    while not line.endswith(b"\n"):
        byte = read(1)
        if not byte:
            break
        line += byte
    return line


def serve(*_):
    """A small MCP server with a tool for each thing that can happen: see `answer`."""
    rest = b""
    while data := read(1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        answers = [answer(line) for line in lines]
        write(1, b"".join(filter(None, answers)))


def answer(line):
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return None
    params = message.get("params") or {}
    name, arguments = params.get("name"), params.get("arguments") or {}
    text = arguments.get("text", "")
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "scripted", "version": "1"}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    elif name == "ignore":
        return None
    elif name == "refuse":
        return reply(line, "error", {"code": -32602, "message": text})
    elif name == "print":
        write(1, text.encode() + b"\n")
    elif name == "complain":
        write(2, text.encode() + b"\n")
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": text}]}
        if name == "fail":
            result["isError"] = True
    return reply(line, "result", result)


def reply(line, member, value):
    number = ID.search(line)[1]
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return b'{"jsonrpc":"2.0","id":%s,"%s":%s}\n' % (number, member.encode(), body)


def on_signal(number, _frame):
    note("signals", signal.Signals(number).name)
    if signal.Signals(number).name not in IGNORED:
        os._exit(128 + number)


IGNORED = set()


def starts(what):
    """Starts a process that lives on, with what it holds open, and notes its pid."""
    pipes = {
        "holding output": {"stdin": subprocess.DEVNULL},
        "holding nothing": dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
        "in a session of its own": {"start_new_session": True, "stdin": subprocess.DEVNULL},
    }[what]
    child = subprocess.Popen(["sleep", str(LIMIT)], **pipes)
    note("started pids", child.pid)


def step(name, *arguments):
    data = lambda at: base64.b64decode(arguments[at])
    match name:
        case "write":
            write(1, data(0))
        case "error":
            write(2, data(0))
        case "pieces":
            for piece in range(0, len(data(0)), arguments[1]):
                write(1, data(0)[piece : piece + arguments[1]])
                time.sleep(arguments[2])
        case "fill":
            unit, left = data(0), arguments[1]
            while left > 0:
                write(1, unit[:left])
                left -= len(unit)
        case "read":
            left = arguments[0]
            while left and (got := read(min(left, 1 << 16))):
                left -= len(got)
        case "read line":
            read_line()
        case "read to the end":
            while read(1 << 16):
                pass
        case "echo":
            while got := read(1 << 16):
                write(1, got)
        case "answer each line":
            while read_line():
                write(1, data(0))
        case "serve":
            serve()
        case "close":
            os.close(arguments[0])
        case "note":
            note(arguments[0], arguments[0])
        case "wait for":
            end = time.time() + LIMIT
            while not os.path.exists(os.path.join(NOTES, arguments[0])) and time.time() < end:
                time.sleep(0.002)
        case "note start":
            facts = {"arguments": sys.argv[2:], "folder": os.getcwd()}
            facts["environment"] = dict(os.environ)
            note("started", json.dumps(facts))
        case "start":
            starts(arguments[0])
        case "ignore":
            IGNORED.update(arguments)
        case "sleep":
            time.sleep(arguments[0])
        case "die":
            number = signal.Signals[arguments[0]]
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            time.sleep(LIMIT)
        case "exit":
            os._exit(arguments[0])
        case _:
            raise ValueError(name)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, on_signal)
    note("pid", os.getpid())
    try:
        for one in SCRIPT["steps"]:
            step(*one)
    except BrokenPipeError:
        note("broken pipe", "broken pipe")
        os._exit(32)
    # Nothing is flushed that was not written: the steps write with write(2).
    os._exit(0)


main()

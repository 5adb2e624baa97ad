#!/usr/bin/env python3
"""Asks why a run failed, as an assistant does: over MCP, with a model that is scripted.

    python3 examples/ask-why.py [AGENT-TRACE]

AGENT-TRACE is the program, `agent-trace` on the PATH unless given. It records the bundled server
of `agent-trace demo`, of which one run fails, in a folder that is removed again. Then it starts
`agent-trace mcp` and calls its tools. Which tool is called next is fixed here; what it is asked, and
the answer in the end, are made of what the tools answered.
"""

import json
import shutil
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "agent-trace"


class Server:
    """`agent-trace mcp`: a line of JSON each way."""

    def __init__(self, store):
        # The run was recorded in this folder, which is what it answers for.
        command = [PROGRAM, "--store", store, "mcp"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, **pipes)
        self.last = 0
        about = {"name": "ask-why", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        self.request("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last:
                return message["result"]
        sys.exit("agent-trace mcp ended")

    def call(self, tool, **arguments):
        print(f"model: {tool}({json.dumps(arguments)})")
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result["isError"]:
            sys.exit(result["content"][0]["text"])
        return result["structuredContent"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def tell(line):
    print(f"       {line}")


def ask(server):
    print("user:  Why did my last run fail?")
    run = server.call("list_failed_runs", limit=1)["runs"][0]
    for failure in run["failures"]:
        what = failure["recorded"]
        tell(f"run {run['run']}: step {failure['step']}, {what['server']} {what['what']}: {failure['why']}")

    ranked = server.call("rank_suspects", run=run["run"])
    for suspect in ranked["suspects"]:
        tell(f"step {suspect['step']}, score {suspect['score']}: {suspect['recorded']['target']}")
        for reason in suspect["reasons"]:
            tell(f"  +{reason['weight']} {reason['because']}")

    first = ranked["suspects"][0]
    step = server.call("get_step", run=run["run"], step=first["step"])
    called = step["step"]["recorded"]
    tell(f"asked    {called['arguments']}")
    tell(f"answered {called['error']}")

    quote = first["reasons"][0]["quotes"][0]
    print(
        f"model: Step {first['step']} broke it: {called['target']} was called with {called['arguments']} "
        f"and answered\n       {quote['recorded']['text']}; {first['reasons'][0]['because']}."
    )


def main():
    if not shutil.which(PROGRAM):
        sys.exit(f"there is no program {PROGRAM}: give its path, such as target/release/agent-trace")
    print("(The model is scripted: the order of its calls is fixed, the rest comes from the answers.)")
    with tempfile.TemporaryDirectory() as store:
        subprocess.run([PROGRAM, "demo", "--store", store], check=True, stdout=subprocess.DEVNULL)
        server = Server(store)
        try:
            ask(server)
        finally:
            server.end()


if __name__ == "__main__":
    main()

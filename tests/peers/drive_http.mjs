#!/usr/bin/env node
// Drives a real MCP server over HTTP through the official TypeScript client and prints what the
// client saw: one line of JSON per step, the same every time, as drive.py does.
//
//   node drive_http.mjs URL
//
// The server is server-everything, which runs already. A URL that ends in /sse is spoken to over
// HTTP+SSE, the transport of 2024-11-05. Exit status: 0 if every step was taken, whatever the
// server answered.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const url = process.argv[2];
if (!url?.startsWith("http")) {
  console.error("usage: drive_http.mjs URL");
  process.exit(2);
}
setTimeout(() => {
  console.error("not done after 60 s");
  process.exit(1);
}, 60_000).unref();

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
function say(step, outcome) {
  const line = JSON.stringify(sorted({ step, ...outcome }));
  console.log(line.replace(/created at [^"\\]+/g, "created at <time>"));
}
async function step(name, call) {
  try {
    say(name, { result: await call });
  } catch (error) {
    say(name, { error: error.code ?? error.name, message: error.message });
  }
}

const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: {} };
const client = new Client({ name: "agent-trace-tests", version: "1" }, { capabilities });
const asked = [];
let rootsAreKnown;
const rootsKnown = new Promise((resolve) => (rootsAreKnown = resolve));
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
  asked.push({ "sampling/createMessage": params });
  return { role: "assistant", content: { type: "text", text: "sampled" }, model: "none" };
});
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push({ "elicitation/create": params });
  return { action: "accept", content: { name: "Ada", check: true, integer: 7 } };
});
client.setRequestHandler(ListRootsRequestSchema, () => {
  asked.push({ "roots/list": {} });
  return { roots: [{ uri: "file:///work", name: "work" }] };
});
// The server logs when it has the roots, which it asks for 350 ms after the start.
client.setNotificationHandler(LoggingMessageNotificationSchema, () => rootsAreKnown());

const old = url.endsWith("/sse");
const transport = old
  ? new SSEClientTransport(new URL(url))
  : new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
say("hello", { server: client.getServerVersion(), can: client.getServerCapabilities() });
await rootsKnown;

const tool = (name, args, options) =>
  client.callTool({ name, arguments: args }, undefined, options);
await step("ping", client.ping());
await step("tools/list", client.listTools());
await step("prompts/list", client.listPrompts());
await step("resources/list", client.listResources());
await step("resources/templates/list", client.listResourceTemplates());
await step("echo", tool("echo", { message: 'hällo \u2028 \u{1f980} "\\\n\0' }));
await step("echo, argument missing", tool("echo", {}));
await step("no-such-tool", tool("no-such-tool", {}));
await step("get-structured-content", tool("get-structured-content", { location: "Chicago" }));
await step("get-roots-list", tool("get-roots-list", {}));
await step("sampling", tool("trigger-sampling-request", { prompt: "say something", maxTokens: 7 }));
await step("elicitation", tool("trigger-elicitation-request", {}));

const text = "0123456789abcdef".repeat(1 << 17);
const big = await tool("echo", { message: text });
say("echo of 2 MiB", { length: big.content[0].text.length });
// More than the server takes: it answers 413.
await step("echo of 6 MiB", tool("echo", { message: text.repeat(3) }));
const sums = [...Array(20).keys()].map((a) => tool("get-sum", { a, b: 100 }));
say("get-sum, 20 at once", { result: await Promise.all(sums) });

const given = new AbortController();
setTimeout(() => given.abort("no longer needed"), 300);
const work = { duration: 2, steps: 1 };
await step("cancelled", tool("trigger-long-running-operation", work, { signal: given.signal }));
const progress = [];
const onprogress = (update) => progress.push(update);
const steps = { duration: 1, steps: 5 };
await step("progress", tool("trigger-long-running-operation", steps, { onprogress }));
// The last one comes with the answer, after which the client hears no more of it.
say("told", { progress: progress.slice(0, 4) });

await step("prompts/get", client.getPrompt({ name: "args-prompt", arguments: { city: "Bern" } }));
const uri = "demo://resource/dynamic/text/7";
await step("resources/read", client.readResource({ uri }));
await step("resources/read, unknown", client.readResource({ uri: "demo://nothing" }));
await step("logging/setLevel", client.setLoggingLevel("error"));
say("from the server", { asked });
if (!old) await step("end of the session", transport.terminateSession());
await client.close();

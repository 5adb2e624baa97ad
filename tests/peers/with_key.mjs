// Passes HTTP requests on to a server with a key added, for clients that cannot be given one.
//
//     node with_key.mjs PORT ORIGIN KEY_FILE
//
// Listens on 127.0.0.1. Everything else passes as it came, streams as they come.

import { readFileSync } from "node:fs";
import http from "node:http";

const [port, origin, keyFile] = process.argv.slice(2);
const key = readFileSync(keyFile, "utf8").trim();

http
  .createServer((request, response) => {
    const headers = [...request.rawHeaders, "Authorization", `Bearer ${key}`];
    const { method, url } = request;
    const onward = http.request(new URL(url, origin), { method, headers, setHost: false });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders).flushHeaders();
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  })
  .listen(Number(port), "127.0.0.1");

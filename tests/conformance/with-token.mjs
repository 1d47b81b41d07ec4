// Stands between the conformance suite, which cannot send a token, and a server that wants one.
//
// usage: node with-token.mjs SERVER_PORT TOKEN_FILE; prints its own port.
//
// Everything passes as it is but for the token, and for our port in `Host` and `Origin`, which becomes the server's: what
// names another host or port still does.
import { createServer, request } from "node:http";
import { readFileSync } from "node:fs";

const [port, file] = process.argv.slice(2);
const token = readFileSync(file, "utf8");

const proxy = createServer((incoming, outgoing) => {
  const own = `:${proxy.address().port}`;
  const headers = [];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const [name, value] = incoming.rawHeaders.slice(at, at + 2);
    const is_named = /^(host|origin)$/i.test(name) && value.endsWith(own);
    headers.push(name, is_named ? value.slice(0, -own.length) + `:${port}` : value);
  }
  headers.push("Authorization", `Bearer ${token}`);
  const passed = request({ host: "127.0.0.1", port, method: incoming.method, path: incoming.url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.rawHeaders);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
  });
  passed.on("error", () => outgoing.destroy());
  outgoing.on("close", () => passed.destroy());
  incoming.pipe(passed);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));

// A server of notes for the console's tests: `read` a file, `send` a text, and a description that comes from the command line.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [says = "Reads a note.", more = ""] = process.argv.slice(2);
const text = (schema) => ({ type: "object", properties: Object.fromEntries(schema.map((name) => [name, { type: "string" }])) });
const tools = [
  { name: "read", description: says, inputSchema: text(["path"]) },
  { name: "send", description: "Sends a text." + more, inputSchema: text(["to", "text"]) },
];
const answer = ({ method, params }) => {
  if (method === "initialize") return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } };
  if (method === "tools/list") return { tools };
  if (method !== "tools/call") return {};
  const said = (what, isError = false) => ({ content: [{ type: "text", text: what }], isError });
  if (params.name === "send") return said("sent");
  try { return said(readFileSync(params.arguments.path, "utf8")); } catch (fault) { return said(String(fault.code), true); }
};
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: answer(message) }) + "\n");
}

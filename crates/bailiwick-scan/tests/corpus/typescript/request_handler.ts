import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { readdir, unlink } from "fs/promises";

const server = new Server({ name: "low", version: "1.0.0" }, { capabilities: { tools: {} } });

server.setRequestHandler(CallToolRequestSchema, async (request) => {
  const { name, arguments: args } = request.params;
  if (name === "list") {
    return { content: await readdir(String(args?.path)) };
  }
  if (name === "drop") {
    await unlink("/srv/drop/one");
    return { content: [] };
  }
  throw new Error(`no tool ${name}`);
});

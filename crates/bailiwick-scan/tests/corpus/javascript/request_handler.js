import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as fs from "fs";
import https from "https";

const server = new Server({ name: "low", version: "1.0.0" }, { capabilities: { tools: {} } });

server.setRequestHandler(CallToolRequestSchema, async (request) => {
  switch (request.params.name) {
    case "stat":
      return fs.statSync(request.params.arguments.path);
    case "probe":
      return https.get("https://status.example.com/health");
    default:
      throw new Error("unknown tool");
  }
});

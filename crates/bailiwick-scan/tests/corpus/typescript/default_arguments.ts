import { appendFileSync } from "fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "log", version: "1.0.0" });

function log(text: string, file: string = "/var/log/agent.log"): void {
  appendFileSync(file, text);
}

server.registerTool("log", {}, async ({ text }: { text: string }) => log(text));

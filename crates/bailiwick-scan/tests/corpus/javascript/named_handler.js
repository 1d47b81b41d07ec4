import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { existsSync, mkdirSync, renameSync } from "fs";

const server = new McpServer({ name: "moves", version: "1.0.0" });

async function moveIn({ name }) {
  if (!existsSync("/srv/in")) {
    mkdirSync("/srv/in");
  }
  renameSync(name, "/srv/in/file");
}

server.registerTool("move_in", { description: "Moves a file in." }, moveIn);

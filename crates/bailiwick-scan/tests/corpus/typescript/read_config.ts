import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile } from "node:fs/promises";

const server = new McpServer({ name: "config", version: "1.0.0" });

/** Not `readFile("/etc/shadow")`. */
server.registerTool("read_config", { description: 'writeFile("/tmp/x")' }, async (): Promise<string> => {
  return await readFile("/etc/app/config.json", { encoding: "utf8" });
});

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import fs from "node:fs";

const server = new McpServer({ name: "config", version: "1.0.0" });

// fs.writeFileSync("/etc/passwd", "") is only a remark
server.tool("read_config", async () => {
  const example = `child_process.exec("rm")`;
  return { content: [{ type: "text", text: fs.readFileSync("/etc/app/config.json", "utf8") + example }] };
});

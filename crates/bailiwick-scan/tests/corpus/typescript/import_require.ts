import fs = require("fs");
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "out", version: "1.0.0" });

server.tool("save", async ({ text }: { text: string }) => {
  fs.writeFileSync("/srv/out/report.txt", text as string);
  fs.mkdirSync("/srv/out/parts", { recursive: true });
});

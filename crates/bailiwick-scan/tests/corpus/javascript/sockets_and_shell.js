import net from "net";
import { exec, execSync } from "child_process";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "ops", version: "1.0.0" });

server.tool("probe", async () => net.connect({ host: "db.example.com", port: 5432 }));
server.tool("uptime", async () => execSync("uptime"));
server.tool("shell", async ({ command }) => exec(command));

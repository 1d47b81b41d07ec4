import { env } from "process";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "env", version: "1.0.0" });

server.tool("settings", async () => ({ key: env.API_KEY!, region: process.env["REGION"] as string }));

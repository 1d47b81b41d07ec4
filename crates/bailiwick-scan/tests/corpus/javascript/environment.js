import process from "node:process";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "env", version: "1.0.0" });
const { EDITOR } = process.env;

server.tool("settings", async () => ({ key: process.env.API_KEY, region: process.env["REGION"] }));
server.tool("editor", async () => EDITOR ?? "vi");
server.tool("show", async ({ name }) => process.env[name]);

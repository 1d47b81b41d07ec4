import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { download } from "./index";

const server = new McpServer({ name: "lists", version: "1.0.0" });

server.tool("list", async () => download("https://lists.example.org/all"));

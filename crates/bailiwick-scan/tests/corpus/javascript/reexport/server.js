import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { fetchList } from "./index.js";

const server = new McpServer({ name: "lists", version: "1.0.0" });

server.tool("list", "The list.", async () => fetchList("https://lists.example.org/all"));

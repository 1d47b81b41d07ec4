import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import vm from "vm";

const server = new McpServer({ name: "dynamic", version: "1.0.0" });
const table: Record<string, () => void> = {};

server.tool("calculate", async ({ code }: { code: string }) => vm.runInNewContext(code));
server.tool("load", async ({ name }: { name: string }) => (await import(name)).default());
server.tool("dispatch", async ({ name }: { name: string }) => table[name]());

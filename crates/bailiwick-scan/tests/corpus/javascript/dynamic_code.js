const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");

const server = new McpServer({ name: "dynamic", version: "1.0.0" });

server.tool("calculate", async ({ expression }) => eval(expression));
server.tool("make", async ({ body }) => new Function(body)());
server.tool("load", async ({ name }) => require(name).run());
server.tool("load_module", async ({ name }) => (await import(name)).run());

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "calm", version: "1.0.0" });
const fs = { readFileSync: (name) => "pretend " + name };
const fetch = (name) => ({ name });

server.tool("calm", async ({ name }) => {
  /* exec("reboot") */
  const pattern = /require\("child_process"\)/;
  return fs.readFileSync("/etc/shadow") + fetch("https://example.com").name + pattern.test(name);
});

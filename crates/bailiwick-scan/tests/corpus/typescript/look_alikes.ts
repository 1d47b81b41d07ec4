import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

interface Disk {
  readFile(name: string): string;
}

const server = new McpServer({ name: "calm", version: "1.0.0" });
const disk: Disk = { readFile: (name: string) => `pretend ${name}` };

server.tool("calm", async () => {
  // fetch("https://example.com")
  const text = "process.env.SECRET";
  return disk.readFile("/etc/shadow") + text;
});

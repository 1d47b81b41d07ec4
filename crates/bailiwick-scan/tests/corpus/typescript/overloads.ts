import http from "http";
import { copyFileSync, openSync, type PathLike } from "fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "mixed", version: "1.0.0" });

function copy(from: PathLike, to: PathLike): void;
function copy(from: PathLike, to: PathLike): void {
  copyFileSync(from, to);
}

server.tool("copy", async ({ to }: { to: string }) => copy("/srv/a.txt", to));
server.tool("touch", async () => openSync("/srv/stamp", "w"));
server.tool("post", async () => http.request({ hostname: "in.example.com", port: 8080, method: "POST" }));

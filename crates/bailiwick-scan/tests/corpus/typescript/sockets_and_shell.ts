import { createConnection } from "net";
import * as cp from "child_process";
import { promisify } from "util";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "ops", version: "1.0.0" });
const execFile = promisify(cp.execFile);

server.tool("probe", async () => createConnection(5432, "db.example.com"));
server.tool("kernel", async () => (await execFile("uname", ["-r"])).stdout);

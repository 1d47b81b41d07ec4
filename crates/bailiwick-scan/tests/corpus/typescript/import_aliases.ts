import * as proc from "child_process";
import { spawn as launch, type ChildProcess } from "child_process";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "git", version: "1.0.0" });

server.tool("git_fetch", async (): Promise<ChildProcess> => {
  proc.execFileSync("git", ["fetch"]);
  return launch("/usr/bin/less");
});

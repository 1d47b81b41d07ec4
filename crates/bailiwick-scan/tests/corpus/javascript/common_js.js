const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { execFile: run } = require("child_process");
const cp = require("node:child_process");

const server = new McpServer({ name: "git", version: "1.0.0" });

server.registerTool("git_log", { description: "log" }, async () => {
  run("git", ["log"]);
  cp.spawn("tail", ["-1"]);
});

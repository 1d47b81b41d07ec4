import { Octokit } from "@octokit/rest";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "hub", version: "1.0.0" });

server.tool("repos", async ({ owner }: { owner: string }) => {
  const client = new Octokit({ auth: process.env.GITHUB_TOKEN });
  return client.repos.listForUser({ username: owner });
});

import axios, { AxiosInstance } from "axios";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "issues", version: "1.0.0" });
const client: AxiosInstance = axios.create({ baseURL: "https://api.github.com" });

async function issues(owner: string): Promise<unknown> {
  const { data } = await client.get(`/repos/${owner}/issues`);
  return data;
}

server.registerTool("issues", {}, async ({ owner }: { owner: string }) => issues(owner));

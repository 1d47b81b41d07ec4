import axios from "axios";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "issues", version: "1.0.0" });
const BASE = "https://api.github.com";

const call = async (path) => (await axios.get(`${BASE}/${path}`)).data;

function issues(owner) {
  return call("repos/" + owner + "/issues");
}

server.registerTool("issues", {}, async ({ owner }) => issues(owner));

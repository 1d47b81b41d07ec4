import { writeFile } from "fs/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "log", version: "1.0.0" });

const log = async (text, file = "/var/log/agent.log") => writeFile(file, text, { flag: "a" });

server.registerTool("log", {}, async ({ text }) => log(text));
server.registerTool("log_to", {}, async ({ text, file }) => log(text, file));

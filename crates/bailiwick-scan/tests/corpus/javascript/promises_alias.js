import { promises as disk } from "fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "notes", version: "1.0.0" });
const NOTES = "/srv/notes/all.md";

server.registerTool("add_note", {}, async ({ text }) => {
  await disk.appendFile(NOTES, text);
});

server.registerTool("drop_notes", {}, async () => {
  await disk.rm(NOTES);
});

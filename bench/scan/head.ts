import { readFile } from "node:fs/promises";
import { helper%NEXT% } from "./f%NEXT%";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
const server = new McpServer({ name: "s%FILE%", version: "1.0.0" });
export async function helper%FILE%(path: string): Promise<string> {
  return readFile(path, "utf8");
}

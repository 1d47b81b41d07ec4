import { promises as fs } from "fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

export class Graph {
  private readonly file = "/srv/graph/data.jsonl";

  constructor(private server: McpServer) {}

  async read(): Promise<string> {
    return fs.readFile(this.file, "utf-8");
  }

  register(): void {
    this.server.registerTool("read_graph", {}, async () => this.read());
    this.server.registerTool("clear_graph", {}, async () => {
      await fs.writeFile(this.file, "");
    });
  }
}

new Graph(new McpServer({ name: "graph", version: "1.0.0" })).register();

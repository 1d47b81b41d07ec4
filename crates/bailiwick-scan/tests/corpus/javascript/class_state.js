import { request } from "undici";
import { readFile, writeFile } from "node:fs/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

class Store {
  constructor(file) {
    this.file = file;
  }
  async load() {
    return readFile(this.file, "utf8");
  }
  async save(text) {
    await writeFile("/srv/store/data.json", text);
  }
}

const server = new McpServer({ name: "store", version: "1.0.0" });
let store;

server.tool("load", async () => store.load());
server.tool("save", async ({ text }) => store.save(text));
server.tool("ping", async () => (await request("http://127.0.0.1:9000/ping")).statusCode);

async function main(argv) {
  store = new Store(argv[2]);
}
main(process.argv);

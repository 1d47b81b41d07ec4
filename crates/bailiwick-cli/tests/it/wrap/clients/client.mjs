// The TypeScript client of the protocol with a wrapped filesystem server: node client.mjs SDK NOTES OUTSIDE COMMAND...
import { pathToFileURL } from "node:url";

const [sdk, notes, outside, command, ...args] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(`${sdk}/dist/esm/client/${name}.js`));
const { Client } = await part("index");
const { StdioClientTransport } = await part("stdio");

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
const { tools } = await client.listTools();
const said = { tools: tools.map((tool) => tool.name) };
for (const [name, path] of Object.entries({ granted: notes, denied: outside })) {
  said[name] = await client.callTool({ name: "read_text_file", arguments: { path } });
}
console.log(JSON.stringify(said));
await client.close();

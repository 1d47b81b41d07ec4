// Writes a manifest that allows everything of the conformance fixture, but for the tools that are named: also what it asks its
// client for.
//
// usage: node manifest.mjs CATALOGUE [DENIED...]
import { readFileSync } from "node:fs";

const [catalogue, ...denied] = process.argv.slice(2);
const methods = ["resources/read", "resources/subscribe", "prompts/get", "completion/complete", "subscriptions/listen"];
const tools = JSON.parse(readFileSync(catalogue, "utf8")).tools.map((entry) => entry.tool.name);
const entry = (name) => `[[tools]]\nname = ${JSON.stringify(name)}\ncapabilities = []\n`;
const lines = ['name = "fixture"\nversion = "1"\n', '[client]\nsampling = "allow"\nelicitation = "allow"\n'];
lines.push(...methods.map(entry), ...tools.filter((name) => !denied.includes(name)).map(entry));
console.log(lines.join("\n"));

// Compares two results of the conformance suite, check by check.
//
// usage: node compare.mjs ONE OTHER [SCENARIO...]; the named scenarios, and no others, have to differ.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

function results(directory) {
  const all = new Map();
  for (const name of readdirSync(directory).sort()) {
    const scenario = name.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
    const checks = JSON.parse(readFileSync(join(directory, name, "checks.json"), "utf8"));
    all.set(scenario, checks.map((check) => `${check.id}: ${check.status}`).sort().join("\n"));
  }
  return all;
}

const [one, other, ...expected] = process.argv.slice(2);
const [before, after] = [results(one), results(other)];
const names = [...new Set([...before.keys(), ...after.keys()])];
const differ = names.filter((name) => before.get(name) !== after.get(name));
const is_expected = (name) => expected.includes(name.replace(/^server-/, ""));
const wrong = [...differ.filter((name) => !is_expected(name)), ...expected.filter((name) => !differ.includes(`server-${name}`))];
for (const name of wrong) {
  console.error(`${name}:\n--- ${one}\n${before.get(name)}\n--- ${other}\n${after.get(name)}`);
}
console.log(`${names.length} scenarios, ${differ.length} differ`);
process.exit(names.length > 0 && wrong.length === 0 ? 0 : 1);

// A home of its own with a console, wrapped servers and a real browser.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import net from "node:net";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(process.env.XDG_CACHE_HOME || path.join(process.env.HOME, ".cache"), "bailiwick/console");
const modules = createRequire(path.join(cache, "node_modules/x.js"));
export const axe = () => readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const program = process.env.BAILIWICK;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));
export async function until(what, act, patience = 30000) {
  const since = Date.now();
  for (;;) {
    const found = await act();
    if (found) return found;
    if (Date.now() - since > patience) throw new Error(`in ${patience} ms not: ${what}`);
    await pause(20);
  }
}
export function holds(what, is) {
  if (!is) throw new Error(`does not hold: ${what}`);
  console.log(`ok  ${what}`);
}

export class World {
  constructor() {
    this.home = mkdtempSync("/var/tmp/bailiwick-console.");
    mkdirSync(this.at("notes"));
    writeFileSync(this.at("notes/a.txt"), "hello\n");
    writeFileSync(this.at("secret.txt"), "hush\n");
    writeFileSync(this.at("notes.mjs"), readFileSync(path.join(here, "notes.mjs")));
    writeFileSync(this.at("notes.toml"), this.manifest("notes"));
    this.children = [];
  }
  manifest(name) {
    return `name = "${name}"\nversion = "1"\nserver_capabilities = ["fs:read:${this.at("notes.mjs")}"]\n\n[[tools]]\nname = "read"\ncapabilities = [\n  "fs:read:${this.at("notes")}/**",\n]\narguments = { path = "read" }\n\n[[tools]]\nname = "send"\ncapabilities = []\nconstraints = { confirm = true }\n`;
  }
  at(name) { return path.join(this.home, name); }
  start(args) {
    const child = spawn(program, args, { cwd: this.home, env: { HOME: this.home, PATH: process.env.PATH }, stdio: ["pipe", "pipe", "pipe"] });
    this.children.push(child);
    return child;
  }
  async run(args) {
    const child = this.start(args);
    child.stdin.end();
    let said = "";
    child.stdout.on("data", (some) => { said += some; });
    await new Promise((done) => child.on("close", done));
    return said;
  }
  async console(args = []) {
    const child = this.start(["console", ...args]);
    let said = "";
    child.stderr.on("data", (some) => { said += some; });
    child.said = () => said;
    child.link = await until("the console says its address", () => (/http:\/\/127\.0\.0\.1:\d+\/#code=[0-9a-f]+/.exec(said) || [])[0]);
    child.origin = new URL(child.link).origin;
    return child;
  }
  // A wrapped server, as its client talks to it.
  async wrap({ says = [], options = [], manifest = "notes.toml", command } = {}) {
    const child = this.start(["wrap", "--manifest", this.at(manifest), ...options, "--", ...(command || ["node", this.at("notes.mjs"), ...says])]);
    const open = new Map();
    let next = 1, said = "";
    child.stderr.on("data", (some) => { said += some; });
    createInterface({ input: child.stdout }).on("line", (line) => { const message = JSON.parse(line); const tell = open.get(message.id); if (tell) { open.delete(message.id); tell(message); } });
    child.ask = (method, params) => new Promise((done) => { const id = next++; open.set(id, done); child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n"); });
    child.call = async (name, args) => { const { result, error } = await child.ask("tools/call", { name, arguments: args }); return result ? result.content.map((one) => one.text).join("\n") : error.message; };
    child.said = () => said;
    await child.ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } });
    child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    await child.ask("tools/list", {});
    return child;
  }
  async stop(child) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.on("close", done));
    child.stdin.end();
    child.kill("SIGTERM");
    await Promise.race([ended, pause(8000).then(() => child.kill("SIGKILL"))]);
  }
  async browser() {
    const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"].find(existsSync);
    const { chromium: driver } = modules("playwright-core");
    // Whatever does not go to this machine goes to a proxy that lets nothing through and says what was asked for.
    this.proxied = [];
    this.proxy = net.createServer((socket) => { socket.on("error", () => {}); socket.once("data", (head) => { this.proxied.push(String(head).split("\r\n", 1)[0]); socket.destroy(); }); });
    await new Promise((done) => this.proxy.listen(0, "127.0.0.1", done));
    this.open = await driver.launch({ executablePath: chromium, proxy: { server: `http://127.0.0.1:${this.proxy.address().port}`, bypass: "127.0.0.1,rebound.test" }, args: ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP rebound.test 127.0.0.1"] });
    return this.open;
  }
  async end() {
    if (this.open) await this.open.close();
    if (this.proxy) this.proxy.close();
    for (const child of this.children) await this.stop(child);
    rmSync(this.home, { recursive: true, force: true });
  }
}

// What all pages of a context ask for, run and refuse.
export function watched(context) {
  const seen = { requests: [], dialogs: 0, errors: [] };
  context.on("request", (request) => seen.requests.push(request.url()));
  context.on("dialog", (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
  context.on("weberror", (error) => seen.errors.push(String(error.error())));
  context.on("console", (message) => { if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) seen.errors.push(message.text()); });
  return seen;
}

export async function entered(browser, served, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  context.seen = watched(context);
  const page = await context.newPage();
  await page.goto(served.link);
  await page.waitForSelector("nav a");
  await page.waitForSelector("h1");
  return page;
}
export const view = async (page, name) => { await page.evaluate((to) => { location.hash = "#" + to; }, name); await page.waitForSelector(".view-" + name.split("?")[0] + " h1"); };
export async function accessible(page, what) {
  await page.evaluate(axe());
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const all = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}: ${one.help}: ${one.nodes[0].any.map((check) => check.message).join(" ")}`);
  holds(`axe finds nothing in ${what}${all.length ? "\n" + all.join("\n") : ""}`, all.length === 0);
}

// The fleet's page in a real browser with a client certificate: machines, heads, log and audit are shown, a call is answered, hostile
// text stays text, without a certificate there is no page. Arguments: the hub's URL, the certificate, the key.
import { createRequire } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { accessible, holds, pause, until } from "./world.mjs";

const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "bailiwick/console");
const { chromium } = createRequire(path.join(cache, "node_modules/x.js"))("playwright-core");
const [origin, certPath, keyPath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const stranger = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  const turned = await stranger.goto(origin + "/");
  holds("without a certificate there is no page", turned.status() === 401);

  const context = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates: [{ origin, certPath, keyPath }] });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (fault) => faults.push(String(fault)));
  page.on("console", (line) => { if (line.type() === "error") faults.push(line.text()); });
  await page.goto(origin + "/");
  await page.waitForSelector("article.card");
  holds("machines are listed", (await page.locator("article.card").count()) >= 2);
  holds("with what they run", (await page.locator("text=notes-server").count()) === 1);
  await until("a call that waits is counted", async () => (await page.locator("nav .count:not([hidden])").textContent().catch(() => "")) === "2");

  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const width of [1440, 360]) {
      await page.setViewportSize({ width, height: 800 });
      for (const name of ["machines", "waiting", "heads", "log", "audit"]) {
        await page.goto(`${origin}/#${name}`);
        await pause(250);
        await accessible(page, `fleet ${name}, ${scheme}, ${width}`);
        holds(`fleet ${name} fits ${width}`, (await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
      }
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });

  await page.goto(origin + "/#heads");
  await page.waitForSelector("td >> text=one-session");
  holds("heads are shown", true);
  await page.goto(origin + "/#log");
  await page.waitForSelector("details.card");
  holds("entries of the log are shown", (await page.locator("details.card").count()) >= 1);

  await page.goto(origin + "/#waiting");
  await page.waitForSelector("article.ask");
  holds("hostile text makes no element", (await page.locator("article.ask img, article.ask script").count()) === 0);
  holds("and what reorders is a mark", (await page.locator("article.ask .mark", { hasText: "U+202E" }).count()) > 0);
  if (process.env.SHOT) for (const name of ["machines", "waiting"]) { await page.goto(`${origin}/#${name}`); await pause(400); await page.screenshot({ path: `${process.env.SHOT}/fleet-${name}.png` }); }
  await page.goto(origin + "/#waiting");
  const first = page.locator("article.ask").first();
  await first.locator("input").fill("seen by me");
  await pause(2600); // the list was looked at again meanwhile
  holds("a remark that is being written stays", (await first.locator("input").inputValue()) === "seen by me");
  await first.locator("text=Allow once").click();
  await until("one is left", async () => (await page.locator("article.ask").count()) === 1);
  await page.locator("article.ask >> text=Deny").click();
  await until("nothing waits", async () => (await page.locator("article.ask").count()) === 0);
  holds("no script ran that was text", !(await page.evaluate(() => window.canary)));
  holds("the page has no fault: " + faults.join("; "), faults.length === 0);
} finally {
  await browser.close();
}

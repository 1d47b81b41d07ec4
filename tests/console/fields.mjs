// Hostile texts in every field that the page shows: a page of the console whose server is replaced by one that says what it likes.
import { holds, pause, view } from "./world.mjs";

export const ODD = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\u{e0000}-\u{e007f}]/u;
const HASH = "0".repeat(64);

// What the page made of text: nothing but text, and no text that hides or reorders.
export const marks = (page) => page.evaluate((odd) => {
  const hides = new RegExp(odd, "u");
  const root = document.body;
  const markup = [...root.querySelectorAll("script,img,iframe,object,embed,link,style,video,audio,form,base,math,template,textarea,frame,foreignObject,animate,set,use,marquee,details[ontoggle],b[onclick]")];
  const all = [...root.querySelectorAll("*")];
  const acts = all.filter((node) => [...node.attributes].some((one) => /^on/i.test(one.name) || /^\s*javascript:/i.test(one.value)));
  const links = [...root.querySelectorAll("a")].filter((node) => !/^#[a-z]|^blob:/.test(node.getAttribute("href")));
  const inside = [...root.querySelectorAll(".seen *")].filter((node) => !(node.tagName === "SPAN" && (node.className === "mark" || node.className === "cut")));
  const hidden = hides.test(root.textContent) || all.some((node) => [...node.attributes].some((one) => !["value", "href"].includes(one.name) && hides.test(one.value)));
  return { markup: markup.length, acts: acts.length, links: links.map((one) => one.getAttribute("href")), inside: inside.length, hidden, ran: window.canary !== undefined };
}, ODD.source);
export const clean = (found) => found.markup + found.acts + found.links.length + found.inside === 0 && !found.ran && !found.hidden;

const event = (text, seq) => ({ kind: "capability-denied", decision: "deny", seq, session: text, time: Date.now() * 1000, tool: text, server: text, capability: "fs:read:" + text, code: text, reason: text, origin: text, agent: text, args: text, result: text, args_digest: text, risk: text, hash: HASH, prev: text, plan_hash: text, policy_hash: text, duration_us: 1, enforcement: { [text]: text } });
const server = (text, at) => ({ name: text, identity: text, pid: at, server_pid: at, command: [text], since: text, era: text, calls: 1, denials: 1, memory: { server: 1, wrap: 1 }, pins: { tools: 1, waiting: 1 }, session: text, authority: [text, "fs:read:" + text, "net:connect:" + text], served: false });
const pin = (text) => ({ name: text, identity: text, tools: 1, seen: text, grants: [{ project: text, wider: [text] }], changes: [{ subject: text, drift: "widening", reasons: [text], old: text, new: { [text]: text, other: [text] } }] });
const question = (text, at) => ({ id: at + text.slice(0, 40), tool: text + "/" + text, arguments: at % 2 ? text : JSON.stringify({ [text]: text, path: "/x/" + text }), question: text, digest: text, expires_us: Date.now() * 1000 + 6e8, of_session: true, is_shortened: false, rule: [text] });
const state = (texts) => ({
  servers: { all: texts.map(server), fault: texts[0] }, pins: { all: texts.map(pin), fault: texts[0] }, watches_only: false, journal: texts[0],
  waiting: { all: texts.map(question), rules: texts.map((text, at) => ({ ...question(text, at), id: "r" + at })), fault: null },
});
const report = (texts) => ({ intact: false, key: texts[0], key_beside_journal: true, index: [], sessions: texts.map((text) => ({ session: text, lines: 1, is_live: true, problems: [{ file: text, line: 1, seq: 1, code: text, why: text }] })) });
const preview = (text, byHand) => byHand ? { lines: [text], tool: text, by_hand: text }
  : { file: text, tool: text, lines: [text], after: text, widens: true, patch: [["+", text], ["-", text], [" ", text]], questions: [{ question: text, evidence: text }], differences: [{ code: text, severity: text, tool: text, message: text, example: text, widens: true }] };

export async function everywhere(context, origin, texts, every) {
  const said = { texts, byHand: false };
  const page = await context.newPage();
  const answers = {
    "/api/state": () => state(said.texts), "/api/events": () => ({ cursor: {}, unreadable: [said.texts[0]], events: said.texts.map((text) => event(text, 0)) }),
    "/api/sessions": () => ({ sessions: said.texts.map((text) => ({ session: text, segments: 1, bytes: 1, last_us: 1 })) }), "/api/verify": () => report(said.texts),
    "/api/grant/preview": () => preview(said.texts[0], said.byHand), "/api/grant/apply": () => ({ change: said.texts[0], file: said.texts[0], lines: [], note: said.texts[0] }),
  };
  await page.route("**/api/**", (route) => {
    const act = answers[new URL(route.request().url()).pathname];
    // No stream; and what is not known here is refused with a text of theirs.
    return act ? route.fulfill({ json: act() }) : route.request().url().endsWith("/api/stream") ? undefined : route.fulfill({ status: 500, json: { error: said.texts[0] } });
  });
  const looked = async (what) => {
    const found = await marks(page);
    if (!clean(found)) throw new Error(`${what}: ${JSON.stringify(found)}`);
  };
  const press = async (label) => { await page.locator("main button", { hasText: label }).first().evaluate((node) => node.click()); await pause(60); };
  let rounds = 0;
  for (let from = 0; from < texts.length; from += 40) {
    said.texts = texts.slice(from, from + 40);
    await page.goto(origin + "/#now");
    await page.waitForSelector(".card.server", { timeout: 60000 });
    for (const name of ["now", "waiting", "drift", "map", "charts"]) {
      await view(page, name);
      await pause(60);
      if (name === "waiting") { await press("Always"); await press("Allow once"); }
      if (name === "drift") await press("Accept");
      if (name === "map") for (const at of said.texts.keys()) { await page.evaluate((at) => { const choose = document.querySelector("main select"); choose.selectedIndex = at; choose.dispatchEvent(new Event("change")); }, at); await looked(`map ${from + at}`); }
      await looked(`${name}, texts from ${from}`);
    }
    await view(page, "journal");
    await press("Verify");
    await press("Export");
    await looked(`journal, texts from ${from}`);
    await view(page, "stream");
    await page.focus(".rows");
    await page.keyboard.press("Home");
    for (const at of said.texts.keys()) {
      await looked(`an opened event, text ${from + at}`);
      const own = said.texts;
      if ((from + at) % every === 0) {
        said.texts = [own[at]];
        said.byHand = at % 2 === 0;
        await press("Propose a grant");
        await page.waitForSelector(".panel");
        await looked(`a proposed grant, text ${from + at}`);
        if (!said.byHand) { await press("Grant this"); await looked(`a grant, text ${from + at}`); await press("Undo"); }
        said.texts = own;
      }
      await page.focus(".rows");
      await page.keyboard.press("ArrowDown");
    }
    rounds += said.texts.length;
  }
  holds(`${rounds} hostile texts in every field of every view stay text`, rounds === texts.length && rounds >= 500);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.close();
}

// The fleet's page: machines, calls that wait, journal heads, the log and who did what. Elements and text are those of the
// console's own page; who may look and decide is said by the client certificate of the connection.

import { h, add, empty, refill, seen, spelt, block, icon, nothing, pill, plural, date, ago } from "/dom.js";

const app = document.getElementById("app");
const us = (ms) => ms * 1000;

class Refused extends Error {}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try { answer = await fetch(path, options); } catch { throw new Refused("the hub does not answer"); }
  if (!answer.ok) {
    let why = answer.statusText;
    try { why = (await answer.json()).message || why; } catch { /* the status says enough */ }
    throw new Refused(why);
  }
  return answer.json();
}

function toast(text, cls = "") {
  const note = h("div", { class: "toast " + cls, role: "status" }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 7000);
}

const pair = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
const short = (hash) => h("span", { class: "hash" }, seen(hash, { most: 64 }));

async function members() {
  const all = [];
  for (let page = 0; page < 60; page += 1) {
    const after = all.length ? all[all.length - 1].member : "";
    const more = await ask(`/v1/members?after=${encodeURIComponent(after)}&limit=200`);
    all.push(...more);
    if (more.length < 200) break;
  }
  return all;
}

function server(one) {
  const levels = Object.entries(one.enforcement || {}).map(([axis, level]) => pill(level === "kernel" ? "allow" : level === "unsupported" ? "deny" : "plain", spelt(`${axis}: ${level}`)));
  return h("li", {}, h("b", {}, seen(one.server, { most: 80 })), " ", one.package && [seen(`${one.package.name || ""} ${one.package.version || ""}`, { most: 120 }), " "],
    pill(one.running ? "allow" : "plain", one.running ? "running" : "stopped"), " ", levels.flatMap((level) => [level, " "]),
    one.manifest && h("div", {}, "manifest ", short(one.manifest)), one.surface && h("div", {}, "pins ", short(one.surface)));
}

function machine(one) {
  const told = one.inventory;
  return h("article", { class: "card" }, h("header", {}, h("h2", {}, short(one.member)), " ", pill("plain", one.role)),
    h("dl", { class: "pairs" }, one.name && pair("Name", seen(one.name, { most: 130 })), pair("Labels", seen((one.labels || []).join(", ") || "none", { most: 200 })),
      pair("Seen", one.seen_ms ? ago(us(one.seen_ms)) : "it has reported nothing"),
      told && pair("Version", seen(told.version, { most: 60 })), told && pair("Log", [plural(told.log_size, "entry", "entries"), " ", short(told.log_root)])),
    told && (told.servers.length ? h("ul", { class: "plain" }, told.servers.map(server)) : h("p", { class: "faint" }, "It runs no server.")));
}

const machines = {
  title: "Machines",
  async load() { return members(); },
  show(root, all, state) {
    const wanted = state.wanted || "";
    const found = all.filter((one) => !wanted || JSON.stringify(one).toLowerCase().includes(wanted.toLowerCase()));
    refill(root, h("div", { class: "filters" }, h("input", { type: "search", "data-key": "search", "aria-label": "Filter machines", placeholder: "Filter: a machine, label, server, version or hash", value: wanted,
      input: (event) => { state.wanted = event.target.value; machines.show(root, all, state); } })),
    h("p", { class: "faint" }, `${plural(found.length, "member")} of ${all.length}`, found.length > 200 ? ", the first 200 are shown" : ""),
    all.length ? h("div", { class: "grid" }, found.slice(0, 200).map(machine)) : nothing("now", "No member yet", h("p", {}, "A machine joins with a token: ", h("code", {}, "bailiwick-hub token --role machine"))));
  },
};

function call(one, again) {
  const request = one.request;
  const note = h("input", { type: "text", maxlength: "500", "aria-label": "Remark", placeholder: "Remark (optional)", "data-key": "note-" + request.id });
  const decide = async (allow) => {
    for (const button of buttons.querySelectorAll("button")) button.disabled = true;
    try {
      const answer = { allow, arguments_sha256: request.arguments_sha256 };
      if (note.value) answer.remark = note.value;
      const said = await ask(`/v1/approvals/${request.id}/answer`, answer);
      toast(`${spelt(request.tool)}: ${said.status}`);
    } catch (fault) { toast(fault.message, "bad"); }
    again();
  };
  const buttons = h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", click: () => decide(true) }, "Allow once"), h("button", { type: "button", class: "danger", click: () => decide(false) }, "Deny"));
  const left = Math.max(0, Math.round((one.expires_ms - Date.now()) / 1000));
  return h("article", { class: "card ask", "data-id": request.id }, h("header", {}, h("h2", {}, seen(request.tool, { most: 120 })), h("span", { class: "faint" }, "of ", seen(request.server, { most: 80 }), " on ", short(one.machine)), h("span", { class: "push" }), pill("plain", `${left} s left`)),
    h("p", {}, seen(request.reason, { most: 400, lines: true })), block(JSON.stringify(request.arguments, null, 2), "Arguments"),
    h("dl", { class: "pairs" }, pair("Policy", short(request.policy)), pair("Pins", short(request.pins))), note, buttons);
}

const waiting = {
  title: "Waiting",
  async load() { return ask("/v1/approvals"); },
  show(root, all, state, again) {
    const ids = all.map((one) => one.request.id).join();
    // A remark that is being written stays: cards are made anew only when other calls wait.
    if (state.ids === ids && root.firstChild) return;
    state.ids = ids;
    const next = () => { state.ids = null; again(); };
    refill(root, all.length ? h("div", { class: "stack" }, all.map((one) => call(one, next))) : nothing("waiting", "Nothing waits for a person", h("p", {}, "A call of any machine appears here when a rule asks for a person.")));
  },
};

const table = (head, rows) => h("div", { class: "type", tabindex: "0", role: "group", "aria-label": head.join(", ") }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));

const heads = {
  title: "Heads",
  async load() { return ask("/v1/heads?limit=200"); },
  show(root, all) {
    refill(root, all.length ? table(["Machine", "Session", "Lines", "Hash", "State", "Reported"], all.map((one) => [short(one.machine), seen(one.session, { most: 64 }), one.seq + 1, short(one.hash), pill(one.is_anchored ? "allow" : "plain", one.is_anchored ? "in the log" : "waits"), ago(us(one.reported_ms))]))
      : nothing("journal", "No journal was anchored", h("p", {}, "Machines report the last line of each journal every minute.")));
  },
};

const log = {
  title: "Log",
  async load() { return ask("/v1/entries?limit=100"); },
  show(root, all, state) {
    const top = all.length ? all[0].index : -1;
    if (state.top === top && root.firstChild) return;
    state.top = top;
    refill(root, all.length ? h("div", { class: "stack" }, all.map(({ index, entry }) => h("details", { class: "card" }, h("summary", {}, `${index} `, h("b", {}, seen(entry.body && entry.body.kind, { most: 40 })), " by ", seen(entry.by, { most: 64 }), " at ", date(us(entry.time_ms))), block(JSON.stringify(entry.body, null, 2), `Entry ${index}`))))
      : nothing("journal", "The log is empty"));
  },
};

const audit = {
  title: "Audit",
  async load() { return ask("/v1/audit?limit=200"); },
  show(root, all) {
    refill(root, all.length ? table(["Time", "Who", "Did", "What", "More"], all.map((one) => [date(us(one.time_ms)), short(one.actor), seen(one.action, { most: 60 }), seen(one.subject, { most: 120 }), seen(one.detail, { most: 200 })])) : nothing("stream", "Nothing was done yet"));
  },
};

const VIEWS = [["machines", "now", machines], ["waiting", "waiting", waiting], ["heads", "journal", heads], ["log", "journal", log], ["audit", "stream", audit]];

function gate(why) {
  add(empty(app), h("main", { class: "gate", id: "main" }, h("div", { class: "logo" }, icon("shield")), h("h1", {}, "The hub lets this page in no further"), h("p", {}, why)));
}

async function begin() {
  let me;
  try { me = await ask("/v1/me"); } catch (fault) { return gate(fault.message); }
  const links = VIEWS.map(([id, sign, view]) => h("a", { href: "#" + id, "data-view": id }, icon(sign), h("span", {}, view.title), h("b", { class: "count", hidden: true })));
  const live = h("span", { class: "live", role: "status" });
  add(empty(app), h("header", { class: "side" }, h("div", { class: "brand" }, h("div", { class: "logo" }, icon("shield")), h("div", {}, h("strong", {}, "Bailiwick"), h("small", {}, "fleet"))),
    h("nav", { "aria-label": "Views" }, links), h("div", { class: "foot" }, live, h("small", {}, spelt(`${me.role} ${me.member.slice(0, 8)}`)))),
  h("main", { id: "main", tabindex: "-1" }), h("div", { id: "toasts", "aria-live": "polite" }));
  let current = null;
  const tell = (word, text) => { live.className = "live " + word; live.textContent = text; };
  const count = (all) => {
    const mark = links[1].querySelector(".count");
    mark.hidden = !all.length;
    mark.textContent = all.length || "";
    document.title = (all.length ? `(${all.length}) ` : "") + "Bailiwick fleet";
  };
  const again = async () => {
    const own = current;
    try {
      const found = await own.view.load();
      if (own === current) own.view.show(own.root, found, own.state, again);
      count(own.view === waiting ? found : await waiting.load());
      tell("live", "Live");
    } catch (fault) { tell("away", fault.message); }
  };
  const open = () => {
    const [id, , view] = VIEWS.find(([name]) => name === location.hash.slice(1)) || VIEWS[0];
    for (const link of links) if (link.getAttribute("data-view") === id) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    const root = h("div", {});
    refill(document.getElementById("main"), h("div", { class: "head" }, h("h1", {}, view.title)), root);
    current = { view, root, state: {} };
    again();
  };
  addEventListener("hashchange", () => { open(); document.getElementById("main").focus({ preventScroll: true }); });
  open();
  setInterval(() => { if (document.visibilityState !== "hidden" && !(document.activeElement && document.activeElement.type === "search")) again(); }, 2000);
}

begin();

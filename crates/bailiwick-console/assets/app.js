// The page: who may see it, where one is, and what all views share.

import { h, empty, icon, add, plural } from "/dom.js";
import { enter, follow, get, keep } from "/link.js";
import { data, watch, changed, frame, merge, take, drifted, watchesOnly } from "/store.js";
import * as now from "/now.js";
import * as stream from "/stream.js";
import * as waiting from "/waiting.js";
import * as drift from "/drift.js";
import * as map from "/map.js";
import * as charts from "/charts.js";
import * as journal from "/journal.js";

const VIEWS = [["now", "Now", now], ["stream", "Stream", stream], ["waiting", "Waiting", waiting], ["drift", "Drift", drift], ["map", "Map", map], ["charts", "Charts", charts], ["journal", "Journal", journal]];
const app = document.getElementById("app");

function gate(title, why) {
  const token = h("input", { type: "password", autocomplete: "off", "aria-label": "Token" });
  // Where an operator keeps a token, it opens the page too.
  const form = location.protocol === "https:" && h("div.buttons", {}, token, h("button", { on: { click: () => { keep(token.value.trim()); begin(); } } }, "Use the token"));
  add(empty(app), h("main.gate", { id: "main" }, h("div.logo", {}, icon("shield")), h("h1", {}, title), h("p", {}, why),
    h("pre.type", {}, "bailiwick console --open"), form));
}

function toast(text, cls = "") {
  const note = h("div", { class: "toast " + cls, role: "status" }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 7000);
}

function frameOf() {
  const links = VIEWS.map(([id, label]) => h("a", { href: "#" + id, "data-view": id }, icon(id), h("span", {}, label), h("b.count", { hidden: true })));
  const live = h("span.live", { role: "status" });
  add(empty(app),
    h("header.side", {},
      h("div.brand", {}, h("div.logo", {}, icon("shield")), h("div", {}, h("strong", {}, "Bailiwick"), h("small", {}, "console"))),
      h("nav", { "aria-label": "Views" }, links),
      h("div.foot", {}, live, h("small.where", {}))),
    h("main", { id: "main", tabindex: "-1" }),
    h("div", { id: "toasts", "aria-live": "polite" }));
  const words = { live: "Live", away: "Connecting again", connecting: "Connecting", over: "Ended: start it again" };
  const show = () => {
    const counts = { waiting: data.waiting.all.length, drift: drifted().length };
    for (const link of links) {
      const count = counts[link.getAttribute("data-view")];
      const mark = link.querySelector(".count");
      mark.hidden = !count;
      mark.textContent = count || "";
    }
    document.title = (counts.waiting ? `(${counts.waiting}) ` : "") + "Bailiwick console";
    live.className = "live " + data.status;
    live.textContent = words[data.status] + (watchesOnly() ? " \u00b7 read-only" : "");
    if (data.state) app.querySelector(".where").textContent = plural(data.events.length, "event");
  };
  watch(show);
  show();
  return links;
}

let view = null;
function open(links) {
  const [name, query] = location.hash.slice(1).split("?");
  const found = VIEWS.find(([id]) => id === name) || VIEWS[0];
  for (const link of links) {
    if (link.getAttribute("data-view") === found[0]) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (view && view.id === found[0] && view.query === query) return;
  if (view && view.end) view.end();
  const root = empty(document.getElementById("main"));
  root.className = "view-" + found[0];
  root.scrollTop = 0;
  view = { id: found[0], query, ...found[2].mount(root, { toast, query: new URLSearchParams(query || ""), failed: (fault) => toast(fault.message, "bad") }) };
}

async function begin() {
  let entered = false;
  try { entered = await enter(); } catch (fault) { return gate("This link was used", fault.message); }
  if (!entered) return gate("This page needs a new link", "A link opens the console once. Open another one from the terminal that runs it, or keep a page of it open: this one then borrows its token.");
  const links = frameOf();
  let early = [];
  follow({
    cursor: () => data.cursor,
    frame: (news) => { if (early) early.push(news); else frame(news); },
    status: (word) => { data.status = word; changed("status"); },
  });
  try {
    const [recent, state] = await Promise.all([get("/api/events?limit=" + (new URLSearchParams(location.search).get("limit") || 3000)), get("/api/state")]);
    data.state = state;
    data.waiting = state.waiting;
    frame({ state });
    take(recent.events, recent.unreadable);
    merge(recent.cursor);
  } catch (fault) {
    if (fault.status === 401) return gate("This token is not the right one", fault.message);
    toast(fault.message, "bad");
  }
  const held = early;
  early = null;
  for (const news of held) frame(news);
  changed("status");
  addEventListener("hashchange", () => { open(links); document.getElementById("main").focus({ preventScroll: true }); });
  open(links);
  watch((all) => { if (view && view.update) view.update(all); });
  addEventListener("keydown", (event) => {
    if (event.target.closest("input,select,textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = Number(event.key) - 1;
    if (VIEWS[at]) location.hash = "#" + VIEWS[at][0];
    if (event.key === "/") { const box = document.querySelector("input[type=search]"); if (box) { event.preventDefault(); box.focus(); } }
  });
  waiting.notifier();
}

begin();

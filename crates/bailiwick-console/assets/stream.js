// Stream: every event, newest first. Only the rows in view are in the document, however many events there are.

import { h, seen, empty, add, refill, icon, nothing, number, clock, ms, spelt } from "/dom.js";
import { data, axes, serverOf, title, summary, tone, isDenied } from "/store.js";
import { detail } from "/detail.js";

const GROUPS = {
  all: ["Everything", () => true],
  denied: ["Denied", isDenied],
  calls: ["Calls", (event) => event.kind === "tool-called" || event.kind === "tool-finished"],
  network: ["Network", (event) => event.kind.startsWith("egress")],
  answers: ["Approvals", (event) => event.kind.startsWith("approval") || event.kind === "pin-changed"],
};
const SIGNS = { deny: "deny", ask: "ask", warn: "ask", allow: "allow", plain: "info" };

export function mount(root, ctx) {
  const wanted = { group: "all", server: ctx.query.get("server") || "", tool: "", axis: "", decision: "", text: "" };
  let shown = [], looked = 0, paused = false, chosen = null, held = 0;
  const rowHeight = () => matchMedia("(max-width: 720px)").matches ? 64 : 44;

  const search = h("input", { type: "search", placeholder: "Search   /", "aria-label": "Search in events", on: { input: () => { wanted.text = search.value.toLowerCase(); refilter(); } } });
  const select = (key, label) => h("select", { "aria-label": label, on: { change: (event) => { wanted[key] = event.target.value; refilter(); } } });
  const server = select("server", "Server"), tool = select("tool", "Tool"), axis = select("axis", "What was touched"), decision = select("decision", "Decision");
  const groups = h("div.segments", { role: "group", "aria-label": "Which events" }, Object.entries(GROUPS).map(([id, [label]]) => h("button", { "data-group": id, "aria-pressed": String(id === "all"), on: { click: () => {
    wanted.group = id;
    for (const one of groups.children) one.setAttribute("aria-pressed", String(one.getAttribute("data-group") === id));
    refilter();
  } } }, label)));
  const pause = h("button.quiet", { "aria-pressed": "false", on: { click: () => setPaused(!paused) } });
  const count = h("span.faint.count-shown", { role: "status" });
  const spacer = h("div.spacer", { role: "presentation" });
  const list = h("div.rows", { role: "listbox", tabindex: "0", "aria-label": "Events, newest first" }, spacer);
  const fresh = h("button.fresh", { hidden: true, on: { click: () => { if (paused) setPaused(false); list.scrollTop = 0; } } });
  const none = h("div", { hidden: true });
  const side = h("aside.detail", { hidden: true, "aria-label": "The event that is open" });
  root.append(h("div.head", {}, h("h1", {}, "Stream"), count, h("span.push", {}), pause), h("div.filters", {}, groups, search, server, tool, decision, axis),
    h("div.split", {}, h("div.list", {}, fresh, none, list), side));

  const setPaused = (value) => {
    paused = value;
    refill(pause, icon(paused ? "play" : "pause"), paused ? "Resume" : "Pause");
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) { held = 0; more(); }
    tell();
  };
  const fits = (event) => GROUPS[wanted.group][1](event) && (!wanted.server || serverOf(event) === wanted.server) && (!wanted.tool || event.tool === wanted.tool)
    && (!wanted.axis || event.axis === wanted.axis) && (!wanted.decision || event.decision === wanted.decision)
    && (!wanted.text || `${event.tool || ""} ${event.server || ""} ${event.reason || ""} ${event.capability || ""} ${event.code || ""} ${event.kind} ${event.session}:${event.seq} ${event.args || ""}`.toLowerCase().includes(wanted.text));

  const options = (node, label, values, value) => refill(node, h("option", { value: "" }, label), values.map((one) => h("option", { value: one }, spelt(one).slice(0, 60))), node.value = value);
  let known = "";
  const choices = () => {
    const all = (pick) => [...new Set(data.events.map(pick).filter(Boolean))].sort().slice(0, 200);
    const [named, tools] = [all(serverOf), all((event) => event.tool)];
    const now = JSON.stringify([named, tools]);
    if (now === known) return;
    known = now;
    options(server, "Every server", named, wanted.server);
    options(tool, "Every tool", tools, wanted.tool);
    server.value = wanted.server;
    tool.value = wanted.tool;
  };
  options(axis, "Files, network, \u2026", axes, "");
  options(decision, "Every decision", ["allow", "rewrite", "ask", "deny"], "");
  axis.value = decision.value = "";

  const rows = new Map();
  const row = (event) => {
    const sign = tone(event);
    const node = h("div", { class: "row " + sign, role: "option", "aria-selected": "false" },
      h("time", {}, clock(event.time)), h("span", { class: "tag " + sign }, icon(SIGNS[sign])), h("span.kind", {}, title(event)),
      h("span.who", {}, event.tool ? seen(event.tool, { most: 60 }) : h("span.faint", {}, "\u2013")),
      h("span.what", {}, seen(summary(event), { most: 220 })),
      h("span.took", {}, event.duration_us !== undefined ? ms(event.duration_us) : ""), h("span.server-name", {}, seen(serverOf(event), { most: 40 })));
    node.addEventListener("click", () => choose(event));
    return node;
  };
  let drawn = 0;
  const draw = () => {
    drawn = 0;
    const height = rowHeight(), from = Math.max(0, Math.floor(list.scrollTop / height) - 6), to = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 6);
    const needed = new Set();
    for (let at = from; at < to; at += 1) {
      const event = shown[shown.length - 1 - at];
      needed.add(event);
      let node = rows.get(event);
      if (!node) { rows.set(event, node = row(event)); spacer.append(node); }
      node.style.transform = `translateY(${at * height}px)`;
      node.setAttribute("aria-posinset", at + 1);
      node.setAttribute("aria-setsize", shown.length);
      node.setAttribute("aria-selected", String(event === chosen));
      node.id = event === chosen ? "chosen-event" : "";
      if (event !== chosen) node.removeAttribute("id");
    }
    for (const [event, node] of rows) if (!needed.has(event)) { node.remove(); rows.delete(event); }
    if (chosen && needed.has(chosen)) list.setAttribute("aria-activedescendant", "chosen-event"); else list.removeAttribute("aria-activedescendant");
  };
  const soon = () => { drawn = drawn || requestAnimationFrame(draw); };
  const size = () => {
    spacer.style.height = shown.length * rowHeight() + "px";
    const is = shown.length > 0;
    list.hidden = !is;
    none.hidden = is;
    if (!is) refill(none, data.events.length ? nothing("search", "No event fits", h("p", {}, "Loosen the filters above."), h("button", { on: { click: clear } }, "Show everything"))
      : nothing("stream", "Nothing is recorded yet", h("p", {}, "Every call, denial and connection of a wrapped server appears here as it happens.")));
    tell();
    soon();
  };
  const tell = () => {
    count.textContent = shown.length === data.events.length ? `${number(shown.length)} events` : `${number(shown.length)} of ${number(data.events.length)} events`;
    const away = paused ? data.events.length - looked : held;
    fresh.hidden = away <= 0;
    fresh.textContent = away > 0 ? `${number(away)} new ${away === 1 ? "event" : "events"}${paused ? ", paused" : ""}` : "";
  };
  const clear = () => {
    Object.assign(wanted, { server: "", tool: "", axis: "", decision: "", text: "" });
    for (const one of [server, tool, axis, decision, search]) one.value = "";
    groups.firstChild.click();
  };
  const refilter = () => {
    for (const node of rows.values()) node.remove();
    rows.clear();
    shown = data.events.slice(0, paused ? looked : undefined).filter(fits);
    if (!paused) looked = data.events.length;
    list.scrollTop = 0;
    size();
  };
  const more = () => {
    if (paused) return tell();
    const before = shown.length;
    for (; looked < data.events.length; looked += 1) if (fits(data.events[looked])) shown.push(data.events[looked]);
    const fresh = shown.length - before;
    if (fresh && list.scrollTop > 4) { list.scrollTop += fresh * rowHeight(); held += fresh; }
    choices();
    size();
  };
  const choose = (event, focus) => {
    chosen = event;
    side.hidden = !event;
    if (event) {
      add(empty(side), detail(event, { ...ctx, close: () => { choose(null); list.focus(); }, open: choose }));
      side.scrollTop = 0;
      const at = shown.length - 1 - shown.indexOf(event), height = rowHeight();
      if (at * height < list.scrollTop) list.scrollTop = at * height;
      if ((at + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * height - list.clientHeight;
      if (focus !== "list") { const close = side.querySelector("[data-key=close]"); if (close) close.focus({ preventScroll: true }); }
    }
    soon();
  };
  list.addEventListener("scroll", () => { if (list.scrollTop <= 4 && held) { held = 0; tell(); } soon(); }, { passive: true });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step === undefined && event.key !== "Home" && event.key !== "End" && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Escape") return choose(null);
    const at = chosen ? shown.length - 1 - shown.indexOf(chosen) : -1;
    const next = event.key === "Home" ? 0 : event.key === "End" ? shown.length - 1 : Math.min(Math.max(at + step, 0), shown.length - 1);
    choose(shown[shown.length - 1 - next], "list");
  });
  side.addEventListener("keydown", (event) => { if (event.key === "Escape") { choose(null); list.focus(); } });
  const watching = new ResizeObserver(size);
  watching.observe(list);
  setPaused(false);
  choices();
  refilter();
  const named = /^(.*):(\d+)$/.exec(ctx.query.get("event") || "");
  const found = named && data.events.find((event) => event.session === named[1] && event.seq === Number(named[2]));
  if (found) choose(found);
  return { update: (all) => { if (all.has("events")) more(); }, end: () => { watching.disconnect(); cancelAnimationFrame(drawn); } };
}

// Drift: what a server says of itself, or would be granted, that is not what was accepted. Old and new side by side.

import { h, seen, block, refill, nothing, pill, plural, icon, spelt } from "/dom.js";
import { post } from "/link.js";
import { data, drifted, pins, watchesOnly } from "/store.js";

const pretty = (value) => value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);

// The lines of one side; those that the other side does not have are marked.
function side(label, text, other, cls) {
  const known = new Set(other.split("\n"));
  const lines = text.split("\n");
  return h("div", {}, h("h4", {}, label), text
    ? h("div.code", { tabindex: "0", role: "group", "aria-label": label }, h("pre", {}, lines.slice(0, 400).map((line) => [seen(line, { most: 2000, cls: known.has(line) ? "" : cls }), "\n"]), lines.length > 400 && h("span.cut", {}, plural(lines.length - 400, "more line"))))
    : h("p.faint", {}, "Not there"));
}

function change(one) {
  const widens = one.drift === "widening";
  const [old, now] = [pretty(one.old), pretty(one.new)];
  return h("section.change", {}, h("header", {}, pill(widens ? "deny" : "plain", widens ? "widens" : "harmless"), h("h3", {}, seen(one.subject, { most: 200 }))),
    one.reasons.length > 0 && h("ul.reasons", {}, one.reasons.map((why) => h("li", {}, seen(why)))),
    (old || now) && h("div.sides", {}, side("As you accepted it", old, now, "minus"), side("Now", now, old, widens ? "wider" : "plus")));
}

const grant = (one) => h("section.change", {}, h("header", {}, pill("deny", "widens"), h("h3", {}, "What it may touch")), h("p.faint", {}, "in ", seen(one.project, { most: 300 })), h("ul.reasons", {}, one.wider.map((line) => h("li", {}, seen(line)))));

function card(server, ctx) {
  const accept = h("button.primary", { "data-key": server.identity, disabled: watchesOnly(), on: { click: async () => {
    accept.disabled = true;
    try { await post("/api/pins/accept", { identity: server.identity, seen: server.seen }); ctx.toast("Accepted: " + spelt(server.name), "good"); } catch (fault) { accept.disabled = false; ctx.failed(fault); }
  } } }, "Accept what is shown");
  const widens = server.grants.length > 0 || server.changes.some((one) => one.drift === "widening");
  return h("article.card.drift", {}, h("header", {}, h("span", { class: "tag " + (widens ? "deny" : "warn") }, icon(widens ? "deny" : "ask")), h("h2", {}, seen(server.name, { most: 100 })), h("span.faint", {}, widens ? "its tools that changed are refused until you accept" : "nothing became wider"), h("span.push", {}), accept),
    h("p.faint.small", {}, seen(server.identity, { most: 300 })), server.grants.map(grant), server.changes.map(change));
}

export function mount(root, ctx) {
  const list = h("div.stack", {});
  root.append(h("div.head", {}, h("h1", {}, "Drift"), h("p.faint", {}, "What servers say now that they did not say when you accepted them")), list);
  let before = "";
  const update = () => {
    const all = drifted(), now = JSON.stringify([all, watchesOnly(), pins().length]);
    if (now === before) return;
    before = now;
    refill(list, all.length ? all.map((one) => card(one, ctx)) : nothing("drift", "Nothing has changed", h("p", {}, pins().length ? `${plural(pins().length, "server")} ${pins().length === 1 ? "is" : "are"} as pinned.` : "A server's tools are pinned when they are first seen. Changes appear here, and are refused until you accept them.")));
  };
  update();
  return { update: (all) => { if (all.has("state")) update(); } };
}

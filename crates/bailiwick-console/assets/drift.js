// Drift: what a server says of itself, or would be granted, that is not what was accepted. Old and new side by side.

import { h, e, seen, refill, nothing, pill, plural, icon } from "/dom.js";
import { post } from "/link.js";
import { drifted, pins, watchesOnly } from "/store.js";

const pretty = (value) => value == null ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);

// The lines of one side; those that the other side does not have are marked.
function side(label, text, other, cls) {
	const known = new Set(other.split("\n"));
	const lines = text.split("\n");
	return e("div", e("h4", label), text
		? h("div.code", { tabindex: "0", role: "group", label }, e("pre", lines.slice(0, 400).map((line) => [seen(line, { most: 2000, cls: known.has(line) ? "" : cls }), "\n"]), lines.length > 400 && e("span.cut", plural(lines.length - 400, "more line"))))
		: e("p.faint", "Not there"));
}

function change(one) {
	const widens = one.drift === "widening";
	const [old, now] = [pretty(one.old), pretty(one.new)];
	return e("section.change", e("header", pill(widens ? "deny" : "plain", widens ? "widens" : "harmless"), e("h3", seen(one.subject, { most: 200 }))),
		one.reasons.length > 0 && e("ul.reasons", one.reasons.map((why) => e("li", seen(why)))),
		(old || now) && e("div.sides", side("As you accepted it", old, now, "minus"), side("Now", now, old, widens ? "wider" : "plus")));
}

const grant = (one) => e("section.change", e("header", pill("deny", "widens"), e("h3", "What it may touch")), e("p.faint", "in ", seen(one.project, { most: 300 })), e("ul.reasons", one.wider.map((line) => e("li", seen(line)))));

function card(server, ctx) {
	const accept = h("button.primary", { key: server.identity, disabled: watchesOnly(), click: async () => {
		accept.disabled = true;
		try { await post("/api/pins/accept", { identity: server.identity, seen: server.seen }); ctx.toast(`Accepted: ${server.name}. It counts when the client starts the server again.`, "good"); } catch (fault) { accept.disabled = false; ctx.failed(fault); }
	} }, "Accept what is shown");
	const widens = server.grants.length > 0 || server.changes.some((one) => one.drift === "widening");
	return e("article.card.drift", e("header", h("span", { class: "tag " + (widens ? "deny" : "warn") }, icon(widens ? "deny" : "ask")), e("h2", seen(server.name, { most: 100 })), e("span.faint", widens ? "what changed is refused until you accept, and the client starts the server again" : "nothing became wider"), e("span.push"), accept),
		e("p.faint.small", seen(server.identity, { most: 300 })), server.grants.map(grant), server.changes.map(change));
}

export function mount(root, ctx) {
	const list = e("div.stack");
	root.append(e("div.head", e("h1", "Drift"), e("p.faint", "What servers say that you did not accept")), list);
	let before = "";
	const update = () => {
		const all = drifted(), now = JSON.stringify([all, watchesOnly(), pins().length]);
		if (now === before) return;
		before = now;
		refill(list, all.length ? all.map((one) => card(one, ctx)) : nothing("drift", "Nothing has changed", e("p", pins().length ? `${plural(pins().length, "server")} ${pins().length === 1 ? "is" : "are"} as pinned.` : "A server's tools are pinned when they are first seen. Changes appear here, and are refused until you accept them.")));
	};
	update();
	return { update: (all) => { if (all.has("state")) update(); } };
}

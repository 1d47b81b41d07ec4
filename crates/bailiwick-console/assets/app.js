// The page: who may see it, where one is, and what all views share.

import { h, e, empty, seen, icon, add, refill, nothing, clock } from "/dom.js";
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
const isCode = () => location.hash.startsWith("#code=");
// Another link of this address, opened in this page.
addEventListener("hashchange", () => { if (isCode()) location.reload(); });

function gate(title, why) {
	const token = h("input", { type: "password", autocomplete: "off", label: "Token" });
	// Where an operator keeps a token, it opens the page too.
	const form = location.protocol === "https:" && e("div.buttons", token, h("button", { click: () => { keep(token.value.trim()); begin(); } }, "Use the token"));
	add(empty(app), h("main.gate", { id: "main" }, e("div.logo", icon("shield")), e("h1", title), e("p", why),
		e("pre.type", START), form));
}

const START = "bailiwick console --open";
let lostSince = 0;

// What stands above every view: that what is shown is old, or that nothing can be done here.
function notice() {
	if (data.status === "over") return "This console was started again, and this page is not let in any more. Open its new link:";
	if (lostSince && Date.now() - lostSince > 1500) return `Not connected since ${clock(lostSince * 1000)}: what you see may be out of date. If the console has ended, start it again:`;
	return watchesOnly() && data.status === "live" ? "Read-only: this console was started with --watch." : "";
}

function toast(text, cls = "") {
	const note = h("div", { class: "toast " + cls, role: "status" }, seen(text));
	document.getElementById("toasts").append(note);
	setTimeout(() => note.remove(), 7000);
}

function frameOf() {
	const links = VIEWS.map(([id, label]) => h("a", { href: "#" + id, "data-view": id }, icon(id), e("span", label), h("b.count", { hidden: true })));
	const live = h("span.live", { role: "status" });
	const banner = h("div", { hidden: true, role: "status" });
	let told = "";
	add(empty(app),
		e("header.side",
			e("div.brand", e("div.logo", icon("shield")), e("div", e("strong", "Bailiwick"), e("small", "console"))),
			h("nav", { label: "Views" }, links),
			e("div.foot", live)),
		e("div.body", banner, h("main", { id: "main", tabindex: "-1" }, h("p.faint", { role: "status" }, "Reading the journal\u2026"))),
		h("div", { id: "toasts", "aria-live": "polite" }));
	const words = { live: "Live", away: "Not connected", connecting: "Connecting\u2026", over: "Ended" };
	const show = () => {
		const tell = notice();
		if (tell !== told) {
			told = tell;
			banner.hidden = !tell;
			banner.className = "banner " + (data.status === "live" ? "" : "lost");
			refill(banner, tell && [icon(data.status === "live" ? "info" : "deny"), e("span", tell, data.status !== "live" && e("code", " ", START))]);
		}
		const counts = { waiting: data.waiting.all.length, drift: drifted().length };
		for (const link of links) {
			const count = counts[link.getAttribute("data-view")];
			const mark = link.querySelector(".count");
			mark.hidden = !count;
			mark.textContent = count || "";
		}
		document.title = (counts.waiting ? `(${counts.waiting}) ` : "") + "Bailiwick console";
		live.className = "live is-" + data.status;
		live.textContent = words[data.status];
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

// State and the newest events. A journal that cannot be read leaves the rest.
async function load() {
	const limit = Number(new URLSearchParams(location.search).get("limit")) || 3000;
	const [recent, state] = await Promise.all([get("/api/events?limit=" + limit).catch((fault) => { if (fault.status !== 500) throw fault; data.fault = fault.message; }), get("/api/state")]);
	data.state = state;
	data.waiting = state.waiting;
	frame({ state });
	if (!recent) return;
	if (recent.events.length >= limit) data.since = recent.events[0].time;
	take(recent.events, recent.unreadable);
	merge(recent.cursor);
}

async function begin() {
	let entered = false;
	try { entered = await enter(); } catch (fault) { return gate("This link was used", fault.message); }
	if (!entered) return gate("This page needs a new link", "Each link opens one page, and a page that is loaded again needs another. The terminal that runs the console shows the next link. A page that is open lends its token to this one.");
	const links = frameOf();
	let early = [];
	follow({
		cursor: () => data.cursor,
		frame: (news) => { if (early) early.push(news); else frame(news); },
		status: (word) => {
			data.status = word;
			lostSince = word === "live" ? 0 : lostSince || Date.now();
			if (lostSince) setTimeout(() => changed("status"), 1600);
			changed("status");
		},
	});
	for (;;) {
		try { await load(); break; } catch (fault) {
			if (fault.status === 401) return gate("This token is not good here", "The console was started again since, or it is the token of another one.");
			const main = document.getElementById("main");
			await new Promise((again) => refill(main, nothing("deny", "The console cannot be read", e("p", seen(fault.message)), h("button", { click: again }, "Try again"))));
		}
	}
	const held = early;
	early = null;
	for (const news of held) frame(news);
	changed("status");
	addEventListener("hashchange", () => { if (!isCode()) open(links); document.getElementById("main").focus({ preventScroll: true }); });
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

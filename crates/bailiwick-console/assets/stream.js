// Stream: every event, newest first. Only the rows in view are in the document, however many events there are.

import { h, e, seen, empty, add, refill, icon, nothing, segments, number, clock, date, ms, spelt } from "/dom.js";
import { get } from "/link.js";
import { data, KINDS, serverOf, title, summary, tone, isDenied, prepend } from "/store.js";
import { detail } from "/detail.js";

const GROUPS = {
	Everything: () => true,
	Denied: isDenied,
	Calls: (event) => event.kind === "tool-called" || event.kind === "tool-finished",
	Network: (event) => event.kind.startsWith("egress"),
	Approvals: (event) => event.kind.startsWith("approval") || event.kind === "pin-changed",
};
const SIGNS = { deny: "deny", ask: "ask", warn: "ask", allow: "allow", plain: "info" };

export function mount(root, ctx) {
	const wanted = { group: "Everything", server: ctx.query.get("server") || "", tool: "", axis: "", decision: "", text: "" };
	let shown = [], looked = 0, before = data.before, paused = false, chosen = null, held = 0;
	const rowHeight = () => matchMedia("(max-width: 720px)").matches ? 64 : 44;

	const search = h("input", { type: "search", placeholder: "Search", label: "Search in events", input: () => { wanted.text = search.value.toLowerCase(); refilter(); } });
	const select = (key, label) => h("select", { label, change: (event) => { wanted[key] = event.target.value; refilter(); } });
	const server = select("server", "Server"), tool = select("tool", "Tool"), axis = select("axis", "What was touched"), decision = select("decision", "Decision");
	const groups = segments("Which events", Object.keys(GROUPS), wanted.group, (name) => { wanted.group = name; refilter(); });
	const pause = h("button.quiet", { "aria-pressed": "false", click: () => setPaused(!paused) });
	const count = h("span.faint.count-shown", { role: "status" });
	const spacer = h("div.spacer", { role: "presentation" });
	const list = h("div.rows", { role: "listbox", tabindex: "0", label: "Events, newest first" }, spacer);
	const fresh = h("button.fresh", { hidden: true, click: () => { if (paused) setPaused(false); list.scrollTop = 0; } });
	const none = h("div", { hidden: true });
	const older = h("button.quiet", { click: async () => {
		older.disabled = true;
		try {
			const found = (await get(`/api/events?limit=5000&until=${data.since + 1}`)).events;
			data.since = found.length < 5000 || found[0].time === data.since ? 0 : found[0].time;
			prepend(found);
		} catch (fault) { ctx.failed(fault); }
		older.disabled = false;
	} }, "Load older events");
	const side = h("aside.detail", { hidden: true, label: "The event that is open" });
	root.append(e("div.head", e("h1", "Stream"), count, older, e("span.push"), pause), e("div.filters", groups, search, server, tool, decision, axis),
		e("div.split", e("div.list", fresh, none, list), side));

	const setPaused = (value) => {
		paused = value;
		refill(pause, paused ? "Resume" : "Pause");
		pause.setAttribute("aria-pressed", String(paused));
		if (!paused) { held = 0; more(); }
		tell();
	};
	const fits = (event) => GROUPS[wanted.group](event) && (!wanted.server || serverOf(event) === wanted.server) && (!wanted.tool || event.tool === wanted.tool)
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
		options(server, "Any server", named, wanted.server);
		options(tool, "Any tool", tools, wanted.tool);
		server.value = wanted.server;
		tool.value = wanted.tool;
	};
	options(axis, "Any resource", Object.values(KINDS), "");
	options(decision, "Any decision", ["allow", "rewrite", "ask", "deny"], "");
	axis.value = decision.value = "";

	const rows = new Map();
	const row = (event) => {
		const sign = tone(event);
		const node = h("div", { class: "row " + sign, role: "option", "aria-selected": "false" },
			h("time", { title: date(event.time) }, clock(event.time)), h("span", { class: "tag " + sign }, icon(SIGNS[sign])), e("span.kind", title(event)),
			e("span.who", event.tool ? seen(event.tool, { most: 60 }) : e("span.faint", "\u2013")),
			e("span.what", seen(summary(event), { most: 220 })),
			e("span.took", event.duration_us !== undefined ? ms(event.duration_us) : ""), e("span.server-name", seen(serverOf(event), { most: 40 })));
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
		if (!is) refill(none, data.events.length ? nothing("search", "No event fits", e("p", "Loosen the filters above."), h("button", { click: clear }, "Show everything"))
			: nothing("stream", "Nothing is recorded yet", e("p", "Every call, denial and connection of a wrapped server appears here as it happens.")));
		tell();
		soon();
	};
	const tell = () => {
		count.textContent = shown.length === data.events.length ? `${number(shown.length)} events` : `${number(shown.length)} of ${number(data.events.length)} events`;
		older.hidden = !data.since;
		const away = paused ? data.events.length - looked : held;
		fresh.hidden = away <= 0;
		fresh.textContent = away > 0 ? `${number(away)} new ${away === 1 ? "event" : "events"}${paused ? ", paused" : ""}` : "";
	};
	const clear = () => {
		Object.assign(wanted, { server: "", tool: "", axis: "", decision: "", text: "" });
		for (const one of [server, tool, axis, decision, search]) one.value = "";
		groups.firstChild.click();
	};
	const refilter = (isSame) => {
		for (const node of rows.values()) node.remove();
		rows.clear();
		shown = data.events.slice(0, paused ? looked : undefined).filter(fits);
		if (!paused) looked = data.events.length;
		if (!isSame) list.scrollTop = 0;
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
	return { update: (all) => {
		if (all.has("older")) { choices(); looked += data.before - before; before = data.before; refilter(true); }
		if (all.has("events")) more();
	}, end: () => { watching.disconnect(); cancelAnimationFrame(drawn); } };
}

// Map: the tools of a server on one side, what they touch on the other. Used, declared and denied differ in stroke too.

import { h, e, s, save, spelt, refill, nothing, number, plural } from "/dom.js";
import { data, KINDS, servers, counted, serverOf } from "/store.js";

const KIND_ORDER = Object.keys(KINDS);
// What is left out stands in the middle: the end of a path says more.
const cut = (text, most) => { const all = Array.from(spelt(text)), head = Math.ceil(most / 3); return all.length > most ? all.slice(0, head).join("") + "\u2026" + all.slice(head + 1 - most).join("") : all.join(""); };
const ROW = 34, MOST = 120;
// A picture that is saved stands alone: its colours are in it.
const inks = () => { const own = getComputedStyle(document.documentElement); return Object.fromEntries(["card", "text", "soft", "line2", "accent", "bad", "bg"].map((name) => [name, own.getPropertyValue("--" + name)])); };

function edges(server) {
	const own = server.session && counted(server.session);
	const found = new Map();
	const put = (tool, line, more) => {
		const key = tool + "\n" + line;
		found.set(key, { tool, line, used: 0, denied: 0, declared: false, ...found.get(key), ...more });
	};
	for (const line of server.authority || []) put("", line, { declared: true });
	for (const one of own ? own.touched.values() : []) put(one.tool, one.line, { used: one.used, denied: one.denied });
	const touched = new Set([...found.values()].filter((one) => one.tool).map((one) => one.line));
	// A line of the whole server that a tool was seen with is drawn from that tool.
	for (const [key, one] of found) if (!one.tool && touched.has(one.line)) { found.delete(key); for (const other of found.values()) if (other.line === one.line) other.declared = true; }
	return [...found.values()];
}

function picture(server, narrow) {
	// Where tools end, lines begin, and how much of a name there is room for.
	const [width, from0, to0, toolMost, lineMost] = narrow ? [350, 112, 168, 13, 22] : [960, 250, 510, 27, 54], middle = (from0 + to0) / 2;
	const ink = inks();
	const all = edges(server).slice(0, MOST);
	const tools = [...new Set(all.map((one) => one.tool))].sort();
	const kind = (line) => line.split(":", 1)[0];
	const rank = (line) => { const at = KIND_ORDER.indexOf(kind(line)); return at < 0 ? 9 : at; };
	const lines = [...new Set(all.map((one) => one.line))].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
	const right = new Map();
	const heads = [];
	let y = 20, before = null;
	for (const line of lines) {
		if (kind(line) !== before) { before = kind(line); heads.push([rank(line) < 9 ? KINDS[before] : "Other", y + 14]); y += 26; }
		right.set(line, y + ROW / 2 - 4);
		y += ROW;
	}
	const height = Math.max(y + 16, tools.length * 44 + 40);
	const left = new Map(tools.map((tool, at) => [tool, height / 2 + (at - (tools.length - 1) / 2) * 44]));
	const text = (x, at, words, fill, more) => s("text", { x, y: at, fill, "font-size": 12, "font-family": "monospace", "dominant-baseline": "middle", ...more }, words);
	return s("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, role: "img", label: `What ${spelt(server.name)} may touch, and what it touched: ${plural(lines.length, "resource")}` },
		s("rect", { width, height, fill: ink.card }),
		all.map((one) => {
			const [from, to] = [left.get(one.tool), right.get(one.line)];
			const state = one.denied ? "denied" : one.used ? "used" : "declared";
			return s("path", { d: `M${from0} ${from} C ${middle} ${from}, ${middle} ${to}, ${to0} ${to}`, fill: "none", stroke: state === "denied" ? ink.bad : state === "used" ? ink.accent : ink.line2, "stroke-width": state === "used" ? Math.min(2 + Math.log10(1 + one.used), 5) : 2, "stroke-dasharray": state === "denied" ? "3 5" : state === "declared" ? "7 5" : null },
				s("title", {}, `${cut(one.tool || "the server", 60)}: ${cut(one.line, 120)}: ${state === "declared" ? "declared, not seen in use" : `${one.used} used, ${one.denied} denied`}`));
		}),
		tools.map((tool) => s("g", {}, s("rect", { x: 4, y: left.get(tool) - 16, width: from0 - 4, height: 32, rx: 8, fill: ink.bg, stroke: ink.line2 }), text(12, left.get(tool) + 1, cut(tool || "the server", toolMost), ink.text, { "font-weight": 600 }))),
		heads.map(([label, at]) => text(to0 + 6, at, label, ink.soft, { "font-family": "system-ui, sans-serif", "font-weight": 600 })),
		lines.map((line) => {
			const own = all.filter((one) => one.line === line);
			const idle = !own.some((one) => one.used || one.denied);
			return [s("circle", { cx: to0, cy: right.get(line), r: 4, fill: own.some((one) => one.denied) ? ink.bad : idle ? ink.line2 : ink.accent }), text(to0 + 11, right.get(line) + 1, cut(line, lineMost), idle ? ink.soft : ink.text)];
		}));
}

export function mount(root, ctx) {
	const choose = h("select", { label: "Server", change: () => draw() });
	const keep = h("button", { click: () => save("bailiwick-map.svg", new Blob([new XMLSerializer().serializeToString(picture(named()))], { type: "image/svg+xml" })) }, "Save as SVG");
	const sheet = e("div");
	const sample = (dash, cls, label) => e("span", s("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, s("path", { d: "M0 5H30", stroke: cls, "stroke-width": 2.5, "stroke-dasharray": dash })), label);
	root.append(e("div.head", e("h1", "Map"), e("span.push"), choose, keep), sheet);
	const dark = matchMedia("(prefers-color-scheme: dark)");
	const all = () => {
		const live = servers(), names = new Map(live.map((one) => [one.name, one]));
		for (const event of data.events) { const name = serverOf(event); if (event.capability && !names.has(name)) names.set(name, { name, session: event.session, authority: [] }); }
		return [...names.values()];
	};
	let wanted = ctx.query.get("server") || "", known = "";
	const named = () => { const list = all(); return list.find((one) => one.name === choose.value) || list[0]; };
	const draw = () => {
		const list = all(), names = list.map((one) => one.name);
		if (names.join("\n") !== known) { known = names.join("\n"); const value = choose.value || wanted || names[0]; refill(choose, names.map((name) => h("option", { value: name }, spelt(name).slice(0, 60)))); choose.value = names.includes(value) ? value : names[0] || ""; }
		const server = named();
		choose.hidden = keep.hidden = !server;
		if (!server || !edges(server).length) return refill(sheet, nothing("map", server ? "Nothing was declared or touched" : "There is no server to draw", e("p", "It shows the tools of a server, and the files, hosts, programs and variables that they may touch or did.")));
		const ink = inks();
		refill(sheet, e("div.legend", sample(null, ink.accent, "used"), sample("7 5", ink.line2, "declared, not seen in use"), sample("3 5", ink.bad, "denied"), e("span", "Paths of allowed calls are not recorded."), edges(server).length > MOST && e("span", `${number(edges(server).length - MOST)} more are not drawn`)), h("div.card.map", { key: "map", tabindex: "0", role: "group", label: "The map" }, picture(server, innerWidth <= 720)));
	};
	draw();
	dark.addEventListener("change", draw);
	addEventListener("resize", draw);
	let wait = null;
	return { update: (what) => { if ((what.has("events") || what.has("state")) && !wait) wait = setTimeout(() => { wait = null; draw(); }, 1000); }, end: () => { clearTimeout(wait); dark.removeEventListener("change", draw); removeEventListener("resize", draw); } };
}

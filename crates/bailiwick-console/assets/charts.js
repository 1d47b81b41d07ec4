// Charts: calls and denials over time, how long calls took, and what was denied most.

import { h, e, s, seen, refill, nothing, segments, number, plural, clock, ms } from "/dom.js";
import { data, isCall, isDenied } from "/store.js";

const SPANS = { "1 hour": 3600, "24 hours": 86400, "7 days": 604800 };
const COLUMNS = 48;

function columns(events, seconds) {
	const until = Date.now() * 1000, from = until - seconds * 1e6;
	const found = Array.from({ length: COLUMNS }, () => ({ calls: 0, denied: 0, took: [] }));
	for (const event of events) {
		if (event.time < from || event.time > until) continue;
		const at = found[Math.min(COLUMNS - 1, Math.floor((event.time - from) / (seconds * 1e6) * COLUMNS))];
		if (isCall(event)) at.calls += 1;
		if (isDenied(event)) at.denied += 1;
		if (event.kind === "tool-finished" && event.duration_us !== undefined) at.took.push(event.duration_us);
	}
	return found;
}

const axis = (seconds, top, width) => (width < 500 ? [0, .5, 1] : [0, .25, .5, .75, 1]).map((part) => {
	const x = part * width;
	return [s("path", { d: `M${x} 20V164`, stroke: "var(--line)" }), s("text", { x, y: 180, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, part === 1 ? "now" : clock((Date.now() - (1 - part) * seconds * 1000) * 1000))];
}).concat(s("path", { d: `M0 160H${width}`, stroke: "var(--line2)" }), s("text", { x: 0, y: 10 }, top));

function bars(found, seconds, width) {
	const most = Math.max(1, ...found.map((one) => one.calls + one.denied));
	const wide = width / COLUMNS;
	const bar = (at, from, count, fill) => count > 0 && s("rect", { x: at * wide + 1.5, y: 160 - (from + count) / most * 140, width: wide - 3, height: count / most * 140, rx: 1.5, fill });
	const [calls, denied] = [found.reduce((sum, one) => sum + one.calls, 0), found.reduce((sum, one) => sum + one.denied, 0)];
	return s("svg", { viewBox: `0 0 ${width} 184`, role: "img", label: `${plural(calls, "call")}, ${plural(denied, "denial")}` }, axis(seconds, number(most), width), found.map((one, at) => [bar(at, 0, one.calls, "var(--accent)"), bar(at, one.calls, one.denied, "var(--bad)")]));
}

const rank = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

function lines(found, seconds, width) {
	const parts = [[.5, "var(--accent)", null], [.95, "var(--warn)", "5 4"]];
	const at = (part) => found.map((one, x) => { const sorted = one.took.sort((a, b) => a - b); return sorted.length ? [x, rank(sorted, part)] : null; }).filter(Boolean);
	const all = parts.map(([part]) => at(part)), most = Math.max(1, ...all.flat().map(([, us]) => us));
	const place = ([x, us]) => `${((x + .5) * width / COLUMNS).toFixed(1)},${(160 - us / most * 140).toFixed(1)}`;
	return s("svg", { viewBox: `0 0 ${width} 184`, role: "img", label: `latency, at most ${ms(most)}` }, axis(seconds, ms(most), width),
		all.map((points, part) => [s("polyline", { points: points.map(place).join(" "), fill: "none", stroke: parts[part][1], "stroke-width": 2, "stroke-dasharray": parts[part][2] }), points.map((point) => s("circle", { cx: place(point).split(",")[0], cy: place(point).split(",")[1], r: 2.5, fill: parts[part][1] }))]));
}

function top(events, seconds) {
	const from = (Date.now() - seconds * 1000) * 1000, counts = new Map();
	for (const event of events) if (event.time >= from && isDenied(event)) { const key = (event.capability || event.code || event.kind).split("\n")[0]; counts.set(key, (counts.get(key) || 0) + 1); }
	return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 10);
}

export function mount(root) {
	let span = "24 hours";
	const choose = segments("How far back", Object.keys(SPANS), span, (name) => { span = name; draw(); });
	const sheet = e("div");
	root.append(e("div.head", e("h1", "Charts"), e("span.push"), choose), sheet);
	const chart = (title, sub, cls, ...kids) => h("section", { class: "card chart " + cls }, e("h2", title), e("p.faint.small", sub), kids);
	const draw = () => {
		const wide = Math.max(260, sheet.clientWidth - 38);
		const seconds = SPANS[span], found = columns(data.events, seconds);
		const took = found.flatMap((one) => one.took).sort((a, b) => a - b);
		if (!data.events.some((event) => isCall(event) || isDenied(event))) return refill(sheet, nothing("charts", "There is nothing to draw yet", e("p", "Calls and denials are counted here once a server is used.")));
		const denied = top(data.events, seconds), most = denied.length ? denied[0][1] : 1;
		const from = (Date.now() - seconds * 1000) * 1000;
		refill(sheet, data.since > from && e("p.faint", `What was before ${clock(data.since)} is not counted: Stream loads older events.`), e("div.charts", chart("Calls and denials", [e("i.used"), " calls ", e("i.denied"), " denials, above them"], "wide", bars(found, seconds, wide)),
			chart("Latency", took.length ? `Median ${ms(rank(took, .5))} \u00b7 95th percentile ${ms(rank(took, .95))} (dashed) \u00b7 99th ${ms(rank(took, .99))}` : "No call has ended in this time.", "", took.length > 0 && lines(found, seconds, innerWidth > 720 ? wide / 2 - 26 : wide)),
			chart("Denied most", denied.length ? "By the grant that would have allowed it" : "Nothing was denied in this time.", "", e("ul.bars", denied.map(([name, count]) => e("li", e("code", seen(name, { most: 120 })), e("b", number(count)), h("meter", { min: 0, max: most, value: String(count), label: `${count} times` })))))));
	};
	draw();
	addEventListener("resize", draw);
	let wait = null;
	return { update: (all) => { if ((all.has("events") || all.has("older")) && !wait) wait = setTimeout(() => { wait = null; draw(); }, 1000); }, end: () => { clearTimeout(wait); removeEventListener("resize", draw); } };
}

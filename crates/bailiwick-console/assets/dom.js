// Elements and text. All text becomes text nodes: nothing here, or anywhere in this page, reads markup from a string.
// What comes from tools and servers goes through `seen`, which shows every character that hides or reorders as a mark.

const SHORT = { label: "aria-label", key: "data-key" };
const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, kids) {
	for (const [name, value] of Object.entries(props || {})) {
		if (value == null || value === false) continue;
		if (typeof value === "function") node.addEventListener(name, value);
		else if (name === "value") node.value = value;
		else node.setAttribute(SHORT[name] || name, value === true ? "" : String(value));
	}
	add(node, kids);
	return node;
}

export function add(node, ...kids) {
	for (const kid of [kids].flat(Infinity)) {
		if (kid == null || kid === false) continue;
		node.append(kid instanceof Node ? kid : document.createTextNode(String(kid)));
	}
	return node;
}

// `h("div.card.ask", …)`: an element with these classes.
export const h = (tag, props, ...kids) => {
	const [name, ...classes] = tag.split(".");
	const node = document.createElement(name);
	if (classes.length) node.className = classes.join(" ");
	if (name === "button") node.type = "button";
	return fill(node, props, kids);
};
export const e = (tag, ...kids) => h(tag, null, kids);
export const s = (tag, props, ...kids) => fill(document.createElementNS(SVG, tag), props, kids);
export const empty = (node) => { while (node.firstChild) node.removeChild(node.firstChild); return node; };

// Replaces what is in `root`; the control that had the focus has it again.
export function refill(root, ...kids) {
	const active = document.activeElement;
	const named = (node) => node.getAttribute("data-key") || node.getAttribute("href");
	const key = active && root.contains(active) ? named(active) : null;
	add(empty(root), kids);
	if (key) for (const node of root.querySelectorAll("[data-key],[href]")) if (named(node) === key) return node.focus({ preventScroll: true });
}

const ODD = /[\p{C}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const code = (point) => "U+" + point.toString(16).toUpperCase().padStart(4, "0");

// The same with every odd character spelt out: for titles and labels, which hold no elements.
export const spelt = (text) => Array.from(String(text ?? ""), (c) => (ODD.test(c) ? "\u27e8" + code(c.codePointAt(0)) + "\u27e9" : c)).join("");

// Text that others wrote. `lines` keeps line breaks and tabs; `most` is how many characters are shown.
export function seen(text, { most = 600, lines = false, tag = "span", cls = "" } = {}) {
	const all = String(text ?? "");
	const node = h(tag, { class: ("seen " + cls).trim(), dir: "ltr" });
	let shown = 0, run = "";
	const flush = () => { if (run) node.append(document.createTextNode(run)); run = ""; };
	for (const c of all) {
		if (shown >= most) break;
		shown += c.length;
		if (!ODD.test(c) || (lines && (c === "\n" || c === "\t"))) { run += c; continue; }
		flush();
		const point = c.codePointAt(0);
		const sign = point === 10 ? "\u23ce" : point === 9 ? "\u21e5" : code(point);
		node.append(h("span.mark", { title: /\p{Bidi_C}/u.test(c) ? "changes the order in which text is shown" : "is not visible" }, sign));
	}
	flush();
	if (shown < all.length) node.append(e("span.cut", ` \u2026 ${number(all.length - shown)} more characters`));
	return node;
}

export function block(text, label) {
	const all = String(text ?? "");
	const box = h("div.code", { tabindex: "0", role: "group", label });
	const show = (most) => refill(box, seen(all, { most, lines: true, tag: "pre" }),
		all.length > most && h("button.quiet", { key: "more", click: () => show(most * 8) }, "Show more"));
	show(4000);
	return box;
}

const counted = new Intl.NumberFormat("en");
export const number = (value) => counted.format(value);
export const plural = (count, one, more) => `${number(count)} ${count === 1 ? one : more || one + "s"}`;
export const ms = (us) => us === undefined ? "" : us < 1000 ? `${us} \u00b5s` : us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(1)} s`;
export const bytes = (n) => n < 1e3 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(0)} kB` : n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(1)} GB`;
// Times are those of this machine; what is exact is in UTC, as `bailiwick log` writes it.
const written = (us, how) => { const at = new Date(us / 1000); return Number.isNaN(at.getTime()) ? "unknown time" : how(at); };
const day = { day: "numeric", month: "short" }, hour = { hour: "2-digit", minute: "2-digit" };
export const clock = (us) => written(us, (at) => at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString("en-GB") : at.toLocaleString("en-GB", { ...day, ...hour }).replace(",", ""));
export const date = (us) => written(us, (at) => at.toISOString().replace("T", " ").slice(0, 23) + " UTC");
export const local = (us) => written(us, (at) => h("time", { title: date(us) }, at.toLocaleString("en-GB", { ...day, year: "numeric", ...hour, second: "2-digit" })));
export function ago(us) {
	const sec = Math.max(0, Math.round(Date.now() / 1000 - us / 1e6));
	if (sec < 60) return "just now";
	if (sec < 3600) return `${Math.floor(sec / 60)} min ago`;
	if (sec < 86400) return `${Math.floor(sec / 3600)} h ago`;
	return `${Math.floor(sec / 86400)} d ago`;
}

const ICONS = {
	now: "M3 12h4l3-8 4 16 3-8h4", stream: "M4 6h16M4 12h16M4 18h10", waiting: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
	drift: "M7 4v16M17 4v16M7 8h10M7 16h10", map: "M5 6h4v4H5zM15 4h4v4h-4zM15 16h4v4h-4zM9 8h6M9 9l6 9", charts: "M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6",
	journal: "M6 3h10l3 3v15H6zM9 9h7M9 13h7M9 17h4", allow: "M5 12.5l4.5 4.5L19 7.5", deny: "M6 6l12 12M18 6L6 18", ask: "M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17v.5",
	info: "M12 11v6M12 7.5v.5", bell: "M6 17V11a6 6 0 0 1 12 0v6l1.5 2h-15zM10.5 21h3",
	search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M15.5 15.5L20 20", shield: "M5 4h14v9c0 4.5-3 7-7 8.5-4-1.5-7-4-7-8.5z",
};
export const icon = (name) => s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[name] || ICONS.info }));

// Lines of a change, each with its sign.
export const patch = (label, lines) => h("div.code.patch", { role: "group", label }, lines.map(([sign, text]) => h("div", { class: sign === "+" ? "plus" : sign === "-" ? "minus" : "" }, e("span", sign), seen(text, { most: 2000 }))));

export function save(name, blob) {
	const href = URL.createObjectURL(blob);
	h("a", { href, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(href), 1000);
}

// Buttons of which one is pressed.
export function segments(label, names, first, act) {
	const all = names.map((name, at) => h("button", { key: label + at, "aria-pressed": String(name === first), click: () => {
		for (const one of all) one.setAttribute("aria-pressed", String(one === all[at]));
		act(name);
	} }, name));
	return h("div.segments", { role: "group", label }, all);
}
export const nothing = (name, title, ...more) => e("div.nothing", e("div.badge", icon(name)), e("h2", title), e("div.more", more));
export const pill = (cls, text) => h("span", { class: "pill " + cls }, spelt(text));

// Now: every wrapped server that runs, and what needs a look.

import { h, e, s, seen, refill, icon, nothing, pill, plural, number, bytes, ms, ago, clock, spelt } from "/dom.js";
import { data, servers, counted, drifted, isDenied, isCall, serverOf, reasonOf } from "/store.js";

function authority(lines) {
	if (!lines) return "more than a list can say";
	if (!lines.length) return "nothing";
	const short = (line) => line.replace(/^(fs:[^:]+|net:connect|exec:spawn|env:[a-z]+):/, (all, kind) => ({ "net:connect": "connects to ", "exec:spawn": "runs " })[kind] || (kind.startsWith("fs:") ? kind.slice(3).split(",").map((one) => one + "s").join(" and ") + " " : kind + " "));
	const shown = lines.slice(0, 3).map(short).join(" \u00b7 ");
	return lines.length > 3 ? `${shown} \u00b7 and ${lines.length - 3} more` : shown;
}

function spark(took) {
	if (took.length < 2) return e("span.faint", took.length ? ms(took[0]) : "\u2013");
	const most = Math.max(...took, 1);
	const points = took.map((us, at) => `${(at / (took.length - 1) * 96).toFixed(1)},${(24 - us / most * 22).toFixed(1)}`).join(" ");
	const sorted = [...took].sort((a, b) => a - b);
	const middle = sorted[sorted.length >> 1];
	return e("span.spark", s("svg", { viewBox: "0 0 96 26", role: "img", label: `latency of the last ${took.length} calls, median ${ms(middle)}` }, s("polyline", { points })), e("span", ms(middle)));
}

const fact = (label, ...value) => e("div.fact", e("dt", label), e("dd", value));

function card(server) {
	const own = server.session && counted(server.session);
	const calls = Math.max(server.calls, own ? own.calls : 0), denials = Math.max(server.denials, own ? own.denials : 0);
	const pins = server.pins;
	return e("article.card.server",
		e("header", h("span.dot.on", { title: "running" }), h("h3", { title: spelt(server.name) }, seen(server.name, { most: 80 })), e("span.faint", server.served ? "served" : server.era ? "connected" : "no client yet")),
		e("p.authority", e("b", "May touch "), seen(authority(server.authority), { most: 260 })),
		e("dl.facts",
			fact("Calls", number(calls)),
			fact("Denied", h("span", { class: denials ? "bad" : "" }, number(denials))),
			fact("Latency", spark(own ? own.took : [])),
			fact("Memory", bytes(server.memory.server + server.memory.wrap)),
			!server.served && fact("Pins", !pins ? pill("warn", "unreadable") : pins.waiting ? h("a", { href: "#drift" }, pill("warn", `${pins.waiting} changed`)) : pins.tools ? pill("allow", `${pins.tools} as pinned`) : pill("plain", "none yet"))),
		e("footer", h("span.faint", { title: server.since }, `started ${ago(Date.parse(server.since) * 1000)} \u00b7 pid ${server.pid}`),
			e("span", h("a", { href: "#stream?server=" + encodeURIComponent(server.name), label: "Events of " + spelt(server.name) }, "Events"), " \u00b7 ", h("a", { href: "#map?server=" + encodeURIComponent(server.name), label: "Map of " + spelt(server.name) }, "Map"))));
}

function attention() {
	const waits = data.waiting.all.length, changed = drifted().length;
	const item = (href, cls, name, text, sub) => h("a", { class: "alert " + cls, href }, icon(name), e("span", e("b", text), e("small", seen(sub))));
	return [
		waits > 0 && item("#waiting", "ask", "waiting", `${plural(waits, "call")} ${waits === 1 ? "waits" : "wait"} for you`, "They do not run until you answer"),
		changed > 0 && item("#drift", "warn", "drift", `${plural(changed, "server")} changed`, "What it says or may touch is not what you accepted"),
		(data.state && (data.state.servers.fault || data.state.pins.fault)) && item("#now", "deny", "deny", "Something cannot be read", data.state.servers.fault || data.state.pins.fault),
		data.fault && item("#journal", "deny", "deny", "The journal cannot be read", data.fault),
		data.unreadable.length > 0 && item("#journal", "deny", "deny", `${plural(data.unreadable.length, "line")} of the journal cannot be read`, "Verify it"),
	];
}

export function mount(root) {
	const top = e("div.alerts"), stats = e("div.stats"), list = e("div.cards"), recent = e("div.card.recent");
	root.append(e("div.head", e("h1", "Now")), top, stats, list, recent);
	const stat = (label, value, cls = "") => h("div", { class: "stat " + cls }, e("span", label), e("b", value));
	const update = () => {
		refill(top, attention());
		const all = servers();
		const from = (Date.now() - 864e5) * 1000, day = data.events.filter((event) => event.time > from);
		// Of what is not here nothing is counted.
		const lately = data.since > from ? "since " + clock(data.since) : "last 24 h";
		const denied = day.filter(isDenied);
		refill(stats, stat("Servers running", number(all.length)), stat("Calls, " + lately, number(day.filter(isCall).length)),
			stat("Denied, " + lately, number(denied.length), denied.length ? "bad" : ""), stat("Waiting for you", number(data.waiting.all.length), data.waiting.all.length ? "hot" : ""));
		refill(list, e("h2", "Servers"), all.length ? e("div.grid", all.map(card)) : !data.state.servers.fault && nothing("now", "No wrapped server runs now",
			e("p", "A server appears when its client starts it. To wrap all servers of your clients:"), e("pre.type", "bailiwick install --servers"),
			e("p", "Or try one by hand:"), e("pre.type", "bailiwick wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes")));
		const last = denied.slice(-6).reverse();
		refill(recent, e("h2", "Last denials"), last.length
			? e("ul.plain", last.map((event) => e("li", h("a", { href: `#stream?event=${encodeURIComponent(event.session)}:${event.seq}` }, e("span.tag.deny", icon("deny")), e("span.who", seen(event.tool || serverOf(event), { most: 60 })), e("span.what", seen(reasonOf(event), { most: 160 })), e("time", ago(event.time))))))
			: e("p.faint", `No denials, ${lately}.`));
	};
	update();
	const timer = setInterval(update, 15000);
	let wait = null;
	return { update: () => { wait = wait || setTimeout(() => { wait = null; update(); }, 250); }, end: () => { clearInterval(timer); clearTimeout(wait); } };
}

// Journal: the sessions, whether they are what was written, and their lines to keep elsewhere.

import { h, e, save, seen, refill, nothing, pill, plural, bytes, local, spelt } from "/dom.js";
import { ask, get, post } from "/link.js";
import { data, counted } from "/store.js";

export function mount(root, ctx) {
	const verify = h("button.primary", { click: () => check() }, "Verify");
	const result = e("div.stack"), list = e("div");
	root.append(e("div.head", e("h1", "Journal"), e("p.faint", seen((data.state || {}).journal || "", { most: 300 })), e("span.push"), verify), result, list);
	let report = null;
	const keep = async (session) => {
		try {
			save(`${session || "journal"}.jsonl`, await (await ask("/api/export" + (session ? "?session=" + session : ""))).blob());
		} catch (fault) { ctx.failed(fault); }
	};
	const state = (name) => {
		const found = report && report.sessions.find((one) => one.session === name);
		if (!found) return e("span.faint", "not verified");
		return found.problems.length ? pill("deny", `breaks at line ${found.problems[0].line}`) : [pill("allow", "intact"), found.is_live && " ", found.is_live && pill("plain", "live")];
	};
	const show = (sessions) => refill(list, sessions.length ? e("div.card.scroll", e("table.table", e("thead", e("tr", ["Session", "Last event", "Size", "State", ""].map((name) => h("th", { scope: "col" }, name || e("span.skip", "Export"))))),
		e("tbody", sessions.slice(0, 300).map((one) => e("tr", e("td", e("code", seen(one.session)), e("span.faint", " ", seen((counted(one.session) || {}).name, { most: 60 }))), e("td", one.last_us ? local(one.last_us) : "\u2013"), e("td", bytes(one.bytes)), e("td", state(one.session)), e("td", h("button.quiet", { label: "Export " + spelt(one.session), click: () => keep(one.session) }, "Export"))))))) : nothing("journal", "The journal is empty", e("p", "Everything that a server calls, is allowed and is denied is written there, in a chain that shows later changes.")));
	let sessions = [];
	const load = async () => {
		try { sessions = (await get("/api/sessions")).sessions.sort((a, b) => (b.last_us || 0) - (a.last_us || 0)); show(sessions); } catch (fault) { ctx.failed(fault); }
	};
	const check = async () => {
		verify.disabled = true;
		refill(result, h("p.faint", { role: "status" }, "Every line of every session is being read\u2026"));
		try {
			report = await post("/api/verify", {});
			const broken = [...report.index, ...report.sessions.flatMap((one) => one.problems)];
			const lines = report.sessions.reduce((sum, one) => sum + one.lines, 0);
			refill(result, h("div.card.stack", { role: "status" }, e("h2", report.intact ? pill("allow", "intact") : pill("deny", "not intact"), ` ${plural(report.sessions.length, "session")}, ${plural(lines, "line")}`),
				broken.length > 0 && e("ul.plain", broken.slice(0, 50).map((one) => e("li", e("code", seen(`${one.file.split("/").pop()}:${one.line}`)), " ", pill("deny", one.code), " ", seen(one.why)))),
				report.key && e("p.faint.small", "Signed with the key ", e("code.hash", seen(report.key)), report.key_beside_journal ? ", which lies beside the journal: a program that can read it can write another history. Keep this fingerprint elsewhere." : ".")));
			show(sessions);
		} catch (fault) { refill(result); ctx.failed(fault); }
		verify.disabled = false;
	};
	load();
	return {};
}

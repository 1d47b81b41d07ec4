// One event, whole, and from a denial the way to a grant.

import { h, e, seen, block, patch, refill, icon, pill, date, ms } from "/dom.js";
import { post } from "/link.js";
import { title, tone, serverOf, reasonOf, related, summary, watchesOnly, isDenied } from "/store.js";

const HELD = { kernel: "allow", mediated: "allow", advisory: "warn", unsupported: "plain" };
const hash = (text) => e("code.hash", seen(text));
const section = (name, ...kids) => e("section", e("h3", name), kids);
const pair = (name, value) => value != null && value !== "" && [e("dt", name), e("dd", value instanceof Node ? value : seen(value))];

function body(event) {
	if (event.args) {
		let text = event.args;
		try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it stands */ }
		return section("Arguments", block(text, "Arguments"));
	}
	return event.args_digest && section("Arguments", e("p.faint", "Only their digest is recorded. ", e("code", "bailiwick wrap --record-arguments"), " records them, without what looks secret."), hash(event.args_digest));
}

export function detail(event, ctx) {
	const grant = e("div.grant");
	const { axis, ...line } = event;
	const kin = related(event);
	const verdict = event.decision ? { allow: "Allowed", deny: "Denied", ask: "Asked", rewrite: "Rewritten" }[event.decision] : "";
	const lines = (event.capability || "").split("\n").filter(Boolean);
	if (isDenied(event) && lines.length) propose(grant, event, ctx);
	return [
		e("header", e("div", e("h2", title(event), event.tool && " \u00b7 ", event.tool && seen(event.tool, { most: 120 })), e("p.faint", seen(serverOf(event), { most: 80 }), ` \u00b7 ${date(event.time)}`)),
			h("button.quiet.icon-only", { key: "close", label: "Close", click: ctx.close }, icon("deny"))),
		h("div", { class: "verdict " + tone(event) }, verdict && pill(tone(event), verdict), e("div", seen(reasonOf(event) || title(event), { most: 4000 }))),
		grant,
		section("Decision", e("dl.pairs", pair("Code", event.code && e("code", seen(event.code))), pair("Decided by", event.origin), pair(event.decision === "deny" ? "Would allow it" : "Capability", lines.length ? e("span", lines.map((one) => e("code.line", seen(one)))) : ""),
			pair("Granted", (event.reason || "").includes(" (granted: ") ? event.reason.split(" (granted: ").pop().replace(/\)$/, "") : ""), pair("Risk", event.risk), pair("Took", event.duration_us !== undefined ? ms(event.duration_us) : ""), pair("Agent", event.agent))),
		body(event),
		event.result && section("Result", block(event.result, "Result")),
		event.enforcement && section("Held by", e("ul.held", Object.entries(event.enforcement).map(([name, level]) => e("li", e("span", seen(name)), pill(HELD[level] || "plain", level))))),
		kin.length > 0 && section("The same call", e("ul.plain.kin", kin.slice(0, 20).map((one) => e("li", h("button.linklike", { click: () => ctx.open(one) }, h("b", { class: tone(one) }, title(one)), " ", seen(summary(one), { most: 90 })))))),
		section("In the chain", e("dl.pairs", pair("Event", hash(`${event.session}:${event.seq}`)), pair("Hash", hash(event.hash)), pair("Before it", hash(event.prev)), pair("Plan", event.plan_hash && hash(event.plan_hash)), pair("Policy", event.policy_hash && hash(event.policy_hash))),
			e("details", e("summary", "The line of the journal"), block(JSON.stringify(line, null, 2), "The line of the journal"))),
	];
}

function propose(root, event, ctx) {
	const asked = { session: event.session, seq: event.seq };
	const start = () => refill(root, h("button.primary", { key: "propose", click: look }, "Propose a grant"), e("span.faint", "Shows the smallest change first"));
	const look = async () => {
		try { preview(await post("/api/grant/preview", asked)); } catch (fault) { ctx.failed(fault); }
	};
	const preview = (found) => {
		if (found.by_hand) {
			return refill(root, e("div.panel", e("h3", "The smallest grant"), e("div.code", e("pre", found.lines.map((one) => [seen(one), "\n"]))), e("p", seen(found.by_hand, { most: 1000 })), h("button.quiet", { key: "cancel", click: start }, "Close")));
		}
		const confirm = h("button.primary", { key: "confirm", disabled: watchesOnly(), click: async () => {
			try { done(await post("/api/grant/apply", { ...asked, after: found.after })); } catch (fault) { ctx.failed(fault); start(); }
		} }, "Grant this");
		refill(root, e("div.panel", e("h3", "Grant this to ", seen(found.tool, { most: 80 }), "?"), e("p.faint", found.is_new && "Your own copy of the shipped manifest takes its place: ", seen(found.file, { most: 300 })),
			patch("The change of the manifest", found.patch),
			e("h4", "What a reviewer asks"),
			e("ul.questions", found.questions.map(({ question, evidence }) => e("li", pill(evidence ? "deny" : "plain", evidence ? "yes" : "no"), e("div", seen(question), evidence && e("small", seen(evidence)))))),
			found.differences.length > 0 && [e("h4", "What widens"), e("ul.plain", found.differences.map((one) => e("li", pill(one.widens ? "warn" : "plain", one.severity), " ", seen(one.message), one.example && [" ", e("code", seen(one.example))])))],
			e("div.buttons", confirm, h("button.quiet", { key: "cancel", click: start }, "Cancel"))));
		confirm.focus({ preventScroll: true });
		root.scrollIntoView({ block: "start" });
	};
	const done = (made) => {
		ctx.toast(`Granted in ${made.file}`, "good");
		refill(root, e("div.panel.good", e("h3", "Granted"), e("p", "It counts when the client starts the server again; the running one keeps the sandbox that it began with."), made.note && e("p.bad", seen(made.note)),
			h("button", { key: "undo", click: async () => {
				try { await post("/api/grant/undo", { change: made.change }); ctx.toast("Taken back", "good"); start(); } catch (fault) { ctx.failed(fault); }
			} }, "Undo")));
	};
	start();
}

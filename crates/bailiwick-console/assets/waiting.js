// Waiting: calls that a person has to answer, each with what runs and until when.

import { h, e, seen, block, patch, refill, icon, nothing, pill, spelt } from "/dom.js";
import { post } from "/link.js";
import { data, watch, watchesOnly } from "/store.js";

const split = (tool) => { const at = tool.indexOf("/"); return at > 0 ? [tool.slice(0, at), tool.slice(at + 1)] : ["", tool]; };

// Paths and addresses that the arguments name.
function named(value, found = []) {
	if (typeof value === "string") { if (/^(\/|~\/|\.\.?\/)/.test(value) || /^[a-z][a-z0-9+.-]*:\/\//i.test(value)) found.push(value); }
	else if (value && typeof value === "object") for (const one of Object.values(value)) named(one, found);
	return found;
}

function card(one, ctx, answered) {
	const [server, tool] = split(one.tool);
	let text = one.arguments, touches = [];
	try { const parsed = JSON.parse(text); touches = named(parsed); text = JSON.stringify(parsed, null, 2); } catch { /* shown as it stands */ }
	const note = h("input", { type: "text", maxlength: "500", placeholder: "A note for the record (optional)", label: "A note for the record", key: one.id + "note" });
	const left = e("span.left");
	const buttons = e("div.buttons");
	const act = async (answer) => {
		for (const button of buttons.children) button.disabled = true;
		try {
			await post("/api/answer", { id: one.id, digest: one.digest, answer, note: note.value });
			ctx.toast({ once: "Allowed once", session: "Allowed for this session", always: "Allowed always", deny: "Denied" }[answer] + ": " + tool, answer === "deny" ? "" : "good");
			answered(one.id);
		} catch (fault) {
			ctx.failed(fault);
			if (fault.status === 409) answered(one.id); else for (const button of buttons.children) button.disabled = false;
		}
	};
	const rule = e("div.rule");
	const shut = () => refill(rule);
	const offer = () => {
		refill(rule, e("div.panel", e("h3", "Write this rule?"), patch("The rule", one.rule.map((line) => ["+", line])),
			e("p.faint", "The same call then runs unasked in every session, until you take the rule back."),
			e("div.buttons", h("button.primary", { key: one.id + "rule", click: () => act("always") }, "Allow always"), h("button.quiet", { click: shut }, "Cancel"))));
		rule.querySelector("button").focus();
	};
	const button = (answer, cls, label) => h("button", { class: cls, key: one.id + answer, disabled: watchesOnly(), click: () => act(answer) }, label);
	buttons.append(button("once", "primary", "Allow once"), ...(one.of_session ? [button("session", "", "Allow for this session")] : []), ...(one.rule ? [h("button", { key: one.id + "always", disabled: watchesOnly(), click: offer }, "Always\u2026")] : []), button("deny", "danger", "Deny"));
	const node = h("article.card.ask", { "data-id": one.id },
		e("header", e("span.tag.ask", icon("ask")), e("h2", seen(tool, { most: 120 })), server && e("span.faint", "of ", seen(server, { most: 80 })), e("span.push"), left),
		e("p.why", seen(one.question, { most: 1000 })),
		block(text, "Arguments of " + spelt(tool)),
		one.is_shortened && e("p.verdict.deny", "The arguments are longer than what is shown: the call would do more than you see here."),
		touches.length > 0 && e("p.touches", e("b", "Names "), touches.slice(0, 8).map((path) => [e("code", seen(path, { most: 160 })), " "])),
		note, buttons, rule, e("p.faint.small", "Answers this exact call. In a terminal: ", e("code", "bailiwick approve " + one.id)));
	return { node, left, buttons };
}

function standing(one, ctx) {
	const [server, tool] = split(one.tool);
	const back = h("button.quiet", { key: one.id + "back", label: "Take back the rule for " + spelt(tool), disabled: watchesOnly(), click: async () => {
		back.disabled = true;
		try { await post("/api/take-back", { id: one.id }); ctx.toast("Taken back: " + tool); } catch (fault) { back.disabled = false; ctx.failed(fault); }
	} }, "Take back");
	return e("li", e("div", e("div", e("b", seen(tool, { most: 120 })), server && e("span.faint", " of ", seen(server, { most: 80 }))), e("code", seen(one.arguments, { most: 300 }))), back);
}

export function mount(root, ctx) {
	const bell = h("button.quiet", { click: async () => { await Notification.requestPermission(); showBell(); } });
	const list = e("div.stack");
	const rules = e("section.rules");
	root.append(e("div.head", e("h1", "Waiting"), e("span.push"), bell), list, rules);
	const showBell = () => {
		const may = "Notification" in window ? Notification.permission : "denied";
		refill(bell, icon("bell"), may === "granted" ? "Notifications are on" : may === "denied" ? "Notifications are blocked" : "Notify me");
		bell.disabled = may !== "default";
	};
	const cards = new Map();
	const drop = (id) => { const found = cards.get(id); if (found) { found.node.remove(); cards.delete(id); } show(); };
	const done = new Set();
	const answered = (id) => { done.add(id); drop(id); };
	const blank = e("div");
	list.append(blank);
	const show = () => {
		const all = data.waiting.all.filter((one) => !done.has(one.id));
		const ids = new Set(all.map((one) => one.id));
		for (const id of [...cards.keys()]) if (!ids.has(id)) { cards.get(id).node.remove(); cards.delete(id); }
		for (const one of all.sort((a, b) => a.expires_us - b.expires_us)) if (!cards.has(one.id)) { const made = card(one, ctx, answered); cards.set(one.id, made); list.append(made.node); }
		if (data.waiting.fault) refill(blank, e("p.bad", seen(data.waiting.fault)));
		else if (all.length) refill(blank);
		else refill(blank, nothing("waiting", "Nothing waits for you", e("p", "A call appears here when a rule asks for a person: a tool with ", e("code", "confirm = true"), ", or a guardrail with ", e("code", 'action = "ask"'), "."), e("p", "While this page is open, the call is held until you answer.")));
		const kept = data.waiting.rules || [];
		refill(rules, kept.length > 0 && e("div.card", e("h2", "Always allowed"), e("p.faint", "Rules that you wrote here. Each is for one exact call, and ends when its tool or manifest changes."), e("ul.plain", kept.map((one) => standing(one, ctx)))));
		tick();
	};
	const tick = () => {
		for (const one of data.waiting.all) {
			const found = cards.get(one.id);
			if (!found) continue;
			const sec = Math.max(0, Math.round(one.expires_us / 1e6 - Date.now() / 1000));
			refill(found.left, pill(sec < 60 ? "deny" : "plain", sec ? `${Math.floor(sec / 60)}:${String(sec % 60).padStart(2, "0")} left` : "expired"));
			if (!sec) for (const button of found.buttons.children) button.disabled = true;
		}
	};
	showBell();
	show();
	const timer = setInterval(tick, 1000);
	return { update: (all) => { if (all.has("waiting") || all.has("state")) show(); }, end: () => clearInterval(timer) };
}

// Says that something waits, where that was asked for and the page is not looked at.
export function notifier() {
	const known = new Set(data.waiting.all.map((one) => one.id));
	watch((all) => {
		if (!all.has("waiting")) return;
		for (const one of data.waiting.all) {
			if (known.has(one.id)) continue;
			known.add(one.id);
			if ("Notification" in window && Notification.permission === "granted" && document.visibilityState === "hidden") {
				const note = new Notification("A call waits for you", { body: spelt(one.tool).slice(0, 120), tag: one.id, icon: "/icon.svg" });
				note.onclick = () => { window.focus(); location.hash = "#waiting"; };
			}
		}
	});
}

// What is known: events in the order they came, each known by session and number, and what was counted of them.

const last = new Map();
const sessions = new Map();
const watchers = new Set();
// `since`: the time of the oldest event, if there are older ones elsewhere. `before`: how many came by `prepend`.
export const data = { events: [], cursor: {}, state: null, waiting: { all: [] }, status: "connecting", unreadable: [], since: 0, before: 0 };

export const watch = (act) => { watchers.add(act); };
let due = new Set();
export function changed(what) {
	if (!due.size) queueMicrotask(() => { const all = due; due = new Set(); for (const act of watchers) act(all); });
	due.add(what);
}

export const KINDS = { fs: "Files", net: "Hosts", exec: "Programs", env: "Variables", ipc: "Sockets", clock: "Clock" };
const axisOf = (event) => {
	const kind = (event.capability || "").split(":", 1)[0];
	return Object.hasOwn(KINDS, kind) ? KINDS[kind] : event.kind.startsWith("egress") ? KINDS.net : "";
};

function session(id) {
	let found = sessions.get(id);
	if (!found) sessions.set(id, found = { id, name: "", calls: 0, denials: 0, took: [], touched: new Map() });
	return found;
}
export const counted = (id) => sessions.get(id);

export function serverOf(event) {
	const own = sessions.get(event.session);
	return event.server || (own && own.name) || (event.agent ? "agent" : event.session.startsWith("day-") ? "this machine" : event.session);
}

export const isCall = (event) => event.kind === "tool-called";
export const isDenied = (event) => event.decision === "deny" && event.kind !== "tool-finished";

function note(event, isOld) {
	const own = session(event.session);
	if (event.kind === "session-started") {
		const named = /^wraps `([^`]*)`/.exec(event.reason || "");
		if (named) own.name = named[1];
	}
	if (isCall(event)) own.calls += 1;
	if (isDenied(event)) own.denials += 1;
	if (event.kind === "tool-finished" && event.duration_us !== undefined && !isOld) { own.took.push(event.duration_us); if (own.took.length > 48) own.took.shift(); }
	event.axis = axisOf(event);
	for (const line of (event.capability || "").split("\n")) {
		if (!line) continue;
		const key = (event.tool || "") + "\n" + line;
		const known = own.touched.get(key) || { tool: event.tool || "", line, used: 0, denied: 0 };
		if (event.decision === "deny") known.denied += 1; else known.used += 1;
		own.touched.set(key, known);
	}
}

export function merge(cursor) { Object.assign(data.cursor, cursor); }

export function take(records, unreadable) {
	let fresh = 0;
	const floor = new Map();
	for (const event of records) {
		if (!floor.has(event.session)) floor.set(event.session, last.get(event.session) ?? -1);
		if (event.seq <= floor.get(event.session)) continue;
		last.set(event.session, Math.max(event.seq, last.get(event.session) ?? -1));
		note(event);
		data.events.push(event);
		fresh += 1;
	}
	if (unreadable && unreadable.length) { data.unreadable = data.unreadable.concat(unreadable).slice(-50); changed("unreadable"); }
	if (fresh) changed("events");
	return fresh;
}

// Events from before those that are here.
export function prepend(records) {
	const first = new Map();
	for (const event of data.events) first.set(event.session, Math.min(event.seq, first.get(event.session) ?? Infinity));
	const fresh = records.filter((event) => event.seq < (first.get(event.session) ?? Infinity));
	for (const event of fresh) { note(event, true); last.set(event.session, Math.max(event.seq, last.get(event.session) ?? -1)); }
	data.events = fresh.concat(data.events);
	data.before += fresh.length;
	changed("older");
}

export function frame(news) {
	if (news.cursor) merge(news.cursor);
	if (news.events) take(news.events, news.unreadable);
	if (news.state) { data.state = news.state; name(); changed("state"); }
	if (news.waiting) { data.waiting = news.waiting; changed("waiting"); }
	if (news.fault) { data.fault = news.fault; changed("state"); }
}
function name() {
	for (const server of servers()) if (server.session) session(server.session).name = server.name;
}
export const servers = () => (data.state && data.state.servers.all) || [];
export const pins = () => (data.state && data.state.pins.all) || [];
export const drifted = () => pins().filter((one) => one.changes.length + one.grants.length > 0);
export const watchesOnly = () => !!(data.state && data.state.watches_only);

// Events that belong to the same call.
export function related(event) {
	const root = event.parent !== undefined ? event.parent : event.seq;
	return data.events.filter((one) => one.session === event.session && one !== event && (one.seq === root || one.parent === root));
}

const TITLES = {
	"capability-granted": "Allowed", "capability-denied": "Denied", "tool-called": "Call", "tool-finished": "Finished",
	"sandbox-started": "Sandbox started", "sandbox-ended": "Sandbox ended", "egress-allowed": "Connected", "egress-denied": "Refused",
	"guardrail-blocked": "Guardrail", "approval-asked": "Asked", "approval-decided": "Answered", "pin-changed": "Pins changed",
	"session-started": "Session began", "session-ended": "Session ended", fault: "Fault",
};
export const title = (event) => TITLES[event.kind] || "Event";
export const reasonOf = (event) => (event.reason || "").split(" (granted: ", 1)[0].replace(/^Tool '.*?' denied by policy: /, "");
export function summary(event) {
	if (event.kind === "tool-finished" && !event.reason) return event.decision === "deny" ? "refused" : "answered";
	if (isCall(event)) return reasonOf(event) || event.args || "called";
	return reasonOf(event) || (event.capability || "").replaceAll("\n", ", ") || event.code || "";
}
export const tone = (event) => event.decision === "deny" ? "deny" : event.kind === "fault" || event.kind === "pin-changed" ? "warn" : event.decision === "ask" ? "ask" : event.decision ? "allow" : "plain";

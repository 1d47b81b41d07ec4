// The way to the console: the token, requests, and one stream that all open pages of this console share.
// The token is in this page's memory, and in that of pages of the same origin that ask for it; it is never stored.

let token = null;
const channel = new BroadcastChannel("bailiwick-console");

class Refused extends Error {
	constructor(status, why) { super(why); this.status = status; }
}

async function reason(answer) {
	try { return (await answer.json()).error || answer.statusText; } catch { return answer.statusText || "the console refused"; }
}

// The code in the address is used and taken out of the address; else another open page is asked for the token.
export async function enter() {
	const found = /^#code=([0-9a-f]{16,128})$/.exec(location.hash);
	if (found) {
		history.replaceState(null, "", "/");
		const answer = await fetch("/enter", { method: "POST", body: found[1] });
		if (!answer.ok) throw new Refused(answer.status, await reason(answer));
		token = (await answer.json()).token;
	} else if (!token) {
		token = await borrowed();
	}
	return !!token;
}
export const keep = (value) => { token = value; };
channel.addEventListener("message", ({ data }) => {
	if (data.want === "token" && token) channel.postMessage({ token });
});

function borrowed() {
	return new Promise((done) => {
		const hear = ({ data }) => { if (typeof data.token === "string") end(data.token); };
		const end = (value) => { channel.removeEventListener("message", hear); clearTimeout(timer); done(value); };
		const timer = setTimeout(() => end(null), 400);
		channel.addEventListener("message", hear);
		channel.postMessage({ want: "token" });
	});
}

export async function ask(path, body, signal) {
	const headers = { authorization: "Bearer " + token };
	const options = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
	let answer;
	try { answer = await fetch(path, { ...options, signal }); } catch { throw new Refused(0, "the console does not answer: was it ended?"); }
	if (!answer.ok) throw new Refused(answer.status, await reason(answer));
	return answer;
}
export const get = async (path) => (await ask(path)).json();
export const post = async (path, body) => (await ask(path, body)).json();

// Frames of the stream, in order. One page reads it, under a lock that all share; the others are told by that page.
export function follow({ cursor, frame, status }) {
	let last = performance.now(), leads = false, word = "connecting";
	const say = (now) => { status(word = now); channel.postMessage({ status: now }); };
	const told = (data, own) => {
		last = performance.now();
		if (own) channel.postMessage({ frame: data });
		frame(data);
	};
	// The page that reads the stream says how it is connected: those that are told by it are so too.
	channel.addEventListener("message", ({ data }) => {
		if (data.frame) told(data.frame, false);
		if (data.status && !leads) status(data.status);
		if (data.want && leads) say(word);
	});
	channel.postMessage({ want: "status" });
	const lead = (steal) => navigator.locks.request("bailiwick-stream", steal ? { steal: true } : {}, async () => {
		leads = true;
		let pause = 250;
		for (;;) {
			const began = performance.now();
			try { await read(cursor(), (data) => told(data, true), () => say("live")); } catch (fault) {
				if (fault.status === 401) { say("over"); return; }
			}
			say("away");
			pause = performance.now() - began > 5000 ? 250 : Math.min(pause * 2, 5000);
			await new Promise((done) => setTimeout(done, pause));
		}
	}).catch(() => { leads = false; return lead(false); });
	lead(false);
	// A page that sleeps keeps the lock and tells nothing: one that is looked at takes it over.
	setInterval(() => {
		if (!leads && document.visibilityState === "visible" && performance.now() - last > 16000) { last = performance.now(); lead(true); }
	}, 2000);
}

async function read(cursor, told, live) {
	const stop = new AbortController();
	let heard = performance.now();
	// Something comes every ten seconds: silence means that the connection is gone.
	const watch = setInterval(() => { if (performance.now() - heard > 25000) stop.abort(); }, 1000);
	try {
		const answer = await ask("/api/stream", { cursor }, stop.signal);
		live();
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "";
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			heard = performance.now();
			const lines = (rest + value).split("\n");
			rest = lines.pop();
			for (const line of lines) if (line) told(JSON.parse(line));
		}
	} finally {
		clearInterval(watch);
		stop.abort();
	}
}

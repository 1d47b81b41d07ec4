// Now: every wrapped server that runs, and what needs a look.

import { h, s, seen, refill, icon, nothing, pill, plural, number, bytes, ms, ago, spelt } from "/dom.js";
import { data, servers, counted, drifted, isDenied, isCall, serverOf, reasonOf } from "/store.js";

export function authority(lines) {
  if (!lines) return "more than a list can say";
  if (!lines.length) return "nothing";
  const short = (line) => line.replace(/^(fs:[^:]+|net:connect|exec:spawn|env:[a-z]+):/, (all, kind) => ({ "net:connect": "connects to ", "exec:spawn": "runs " })[kind] || (kind.startsWith("fs:") ? kind.slice(3).replaceAll(",", "+") + "s " : kind + " "));
  const shown = lines.slice(0, 3).map(short).join(" \u00b7 ");
  return lines.length > 3 ? `${shown} \u00b7 and ${lines.length - 3} more` : shown;
}

export function spark(took) {
  if (took.length < 2) return h("span.faint", {}, took.length ? ms(took[0]) : "\u2013");
  const most = Math.max(...took, 1);
  const points = took.map((us, at) => `${(at / (took.length - 1) * 96).toFixed(1)},${(24 - us / most * 22).toFixed(1)}`).join(" ");
  const sorted = [...took].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1];
  return h("span.spark", {}, s("svg", { viewBox: "0 0 96 26", role: "img", "aria-label": `latency of the last ${took.length} calls, median ${ms(middle)}` }, s("polyline", { points })), h("span", {}, ms(middle)));
}

const fact = (label, ...value) => h("div.fact", {}, h("dt", {}, label), h("dd", {}, value));

function card(server) {
  const own = server.session && counted(server.session);
  const calls = Math.max(server.calls, own ? own.calls : 0), denials = Math.max(server.denials, own ? own.denials : 0);
  const pins = server.pins;
  return h("article.card.server", {},
    h("header", {}, h("span.dot.on", { title: "running" }), h("h3", { title: spelt(server.name) }, seen(server.name, { most: 80 })), h("span.faint", {}, server.served ? "served" : server.era ? "connected" : "no client yet")),
    h("p.authority", {}, h("b", {}, "May touch "), seen(authority(server.authority), { most: 260 })),
    h("dl.facts", {},
      fact("Calls", number(calls)),
      fact("Denied", h("span", { class: denials ? "bad" : "" }, number(denials))),
      fact("Latency", spark(own ? own.took : [])),
      fact("Memory", bytes(server.memory.server + server.memory.wrap)),
      !server.served && fact("Pins", !pins ? pill("warn", "unreadable") : pins.waiting ? h("a", { href: "#drift" }, pill("warn", `${pins.waiting} changed`)) : pins.tools ? pill("allow", `${pins.tools} as pinned`) : pill("plain", "none yet"))),
    h("footer", {}, h("span.faint", {}, `since ${server.since.slice(0, 16).replace("T", " ")} \u00b7 pid ${server.pid}`),
      h("span", {}, h("a", { href: "#stream?server=" + encodeURIComponent(server.name), "aria-label": "Events of " + spelt(server.name) }, "Events"), " \u00b7 ", h("a", { href: "#map?server=" + encodeURIComponent(server.name), "aria-label": "Map of " + spelt(server.name) }, "Map"))));
}

function attention() {
  const waits = data.waiting.all.length, changed = drifted().length;
  const item = (href, cls, name, text, sub) => h("a", { class: "alert " + cls, href }, icon(name), h("span", {}, h("b", {}, text), h("small", {}, sub)));
  return [
    waits > 0 && item("#waiting", "ask", "waiting", `${plural(waits, "call")} ${waits === 1 ? "waits" : "wait"} for you`, "Nothing runs until you answer"),
    changed > 0 && item("#drift", "warn", "drift", `${plural(changed, "server")} changed`, "What it says or may touch is not what you accepted"),
    (data.state && (data.state.servers.fault || data.state.pins.fault)) && item("#now", "deny", "deny", "Something cannot be read", data.state.servers.fault || data.state.pins.fault),
    data.fault && item("#journal", "deny", "deny", "The journal cannot be read", data.fault),
    data.unreadable.length > 0 && item("#journal", "deny", "deny", `${plural(data.unreadable.length, "line")} of the journal cannot be read`, "Verify it"),
  ];
}

export function mount(root) {
  const top = h("div.alerts", {}), stats = h("div.stats", {}), list = h("div.cards", {}), recent = h("div.card.recent", {});
  root.append(h("div.head", {}, h("h1", {}, "Now")), top, stats, list, recent);
  const stat = (label, value, cls = "") => h("div", { class: "stat " + cls }, h("span", {}, label), h("b", {}, value));
  const update = () => {
    refill(top, attention());
    const all = servers();
    const day = data.events.filter((event) => event.time > (Date.now() - 864e5) * 1000);
    const denied = day.filter(isDenied);
    refill(stats, stat("Servers running", number(all.length)), stat("Calls, last 24 h", number(day.filter(isCall).length)),
      stat("Denied, last 24 h", number(denied.length), denied.length ? "bad" : ""), stat("Waiting for you", number(data.waiting.all.length), data.waiting.all.length ? "hot" : ""));
    refill(list, h("h2", {}, "Servers"), all.length ? h("div.grid", {}, all.map(card)) : nothing("now", "No wrapped server runs now",
      h("p", {}, "A server appears here when its client starts it. To put every server of your clients behind Bailiwick:"), h("pre.type", {}, "bailiwick install --servers"),
      h("p", {}, "Or try one by hand:"), h("pre.type", {}, "bailiwick wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes")));
    const last = denied.slice(-6).reverse();
    refill(recent, h("h2", {}, "Last denials"), last.length
      ? h("ul.plain", {}, last.map((event) => h("li", {}, h("a", { href: `#stream?event=${encodeURIComponent(event.session)}:${event.seq}` }, h("span.tag.deny", {}, icon("deny")), h("span.who", {}, seen(event.tool || serverOf(event), { most: 60 })), h("span.what", {}, seen(reasonOf(event), { most: 160 })), h("time", {}, ago(event.time))))))
      : h("p.faint", {}, "Nothing was denied in the last 24 hours."));
  };
  update();
  const timer = setInterval(update, 15000);
  let wait = null;
  return { update: () => { wait = wait || setTimeout(() => { wait = null; update(); }, 250); }, end: () => { clearInterval(timer); clearTimeout(wait); } };
}

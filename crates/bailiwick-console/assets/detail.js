// One event, whole, and from a denial the way to a grant.

import { h, seen, block, refill, icon, pill, date, ms, spelt } from "/dom.js";
import { post } from "/link.js";
import { title, tone, serverOf, reasonOf, related, summary, watchesOnly, isDenied } from "/store.js";

const HELD = { kernel: "allow", mediated: "allow", advisory: "warn", unsupported: "plain" };
const section = (name, ...kids) => h("section", {}, h("h3", {}, name), kids);
const pair = (name, value) => value !== undefined && value !== null && value !== "" && [h("dt", {}, name), h("dd", {}, value instanceof Node ? value : seen(value))];

function body(event) {
  if (event.args) {
    let text = event.args;
    try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it stands */ }
    return section("Arguments", block(text, "Arguments"));
  }
  return event.args_digest && section("Arguments", h("p.faint", {}, "Only their digest is recorded: the journal keeps no arguments, which may hold secrets."), h("code.hash", {}, event.args_digest));
}

export function detail(event, ctx) {
  const grant = h("div.grant", {});
  const { axis, ...line } = event;
  const kin = related(event);
  const verdict = event.decision ? { allow: "Allowed", deny: "Denied", ask: "Asked", rewrite: "Rewritten" }[event.decision] : "";
  const lines = (event.capability || "").split("\n").filter(Boolean);
  if (isDenied(event) && lines.length) propose(grant, event, ctx);
  return [
    h("header", {}, h("div", {}, h("h2", {}, title(event), event.tool && " \u00b7 ", event.tool && seen(event.tool, { most: 120 })), h("p.faint", {}, seen(serverOf(event), { most: 80 }), ` \u00b7 ${date(event.time)}`)),
      h("button.quiet.icon-only", { "data-key": "close", "aria-label": "Close", on: { click: ctx.close } }, icon("close"))),
    h("div", { class: "verdict " + tone(event) }, verdict && pill(tone(event), verdict), h("div", {}, seen(reasonOf(event) || title(event), { most: 4000 }))),
    grant,
    section("Decision", h("dl.pairs", {}, pair("Code", event.code && h("code", {}, seen(event.code))), pair("Decided by", event.origin), pair(event.decision === "deny" ? "Would allow it" : "Capability", lines.length ? h("span", {}, lines.map((one) => h("code.line", {}, seen(one)))) : ""),
      pair("Granted", (event.reason || "").includes(" (granted: ") ? event.reason.split(" (granted: ").pop().replace(/\)$/, "") : ""), pair("Risk", event.risk), pair("Took", event.duration_us !== undefined ? ms(event.duration_us) : ""), pair("Agent", event.agent))),
    body(event),
    event.result && section("Result", block(event.result, "Result")),
    event.enforcement && section("Held by", h("ul.held", {}, Object.entries(event.enforcement).map(([name, level]) => h("li", {}, h("span", {}, name), pill(HELD[level] || "plain", level))))),
    kin.length > 0 && section("The same call", h("ul.plain.kin", {}, kin.slice(0, 20).map((one) => h("li", {}, h("button.linklike", { on: { click: () => ctx.open(one) } }, h("b", { class: tone(one) }, title(one)), " ", seen(summary(one), { most: 90 })))))),
    section("In the chain", h("dl.pairs", {}, pair("Event", h("code", {}, `${event.session}:${event.seq}`)), pair("Hash", h("code.hash", {}, event.hash)), pair("Before it", h("code.hash", {}, event.prev)), pair("Plan", event.plan_hash && h("code.hash", {}, event.plan_hash)), pair("Policy", event.policy_hash && h("code.hash", {}, event.policy_hash))),
      h("details", {}, h("summary", {}, "The line of the journal"), block(JSON.stringify(line, null, 2), "The line of the journal"))),
  ];
}

function propose(root, event, ctx) {
  const asked = { session: event.session, seq: event.seq };
  const start = () => refill(root, h("button.primary", { "data-key": "propose", on: { click: look } }, "Propose a grant"), h("span.faint", {}, "Shows the smallest change first"));
  const look = async () => {
    try { preview(await post("/api/grant/preview", asked)); } catch (fault) { ctx.failed(fault); }
  };
  const preview = (found) => {
    if (found.by_hand) {
      return refill(root, h("div.panel", {}, h("h3", {}, "The smallest grant"), h("div.code", {}, h("pre", {}, found.lines.map((one) => [seen(one), "\n"]))), h("p", {}, seen(found.by_hand, { most: 1000 })), h("button.quiet", { "data-key": "cancel", on: { click: start } }, "Close")));
    }
    const confirm = h("button.primary", { "data-key": "confirm", disabled: watchesOnly(), on: { click: async () => {
      try { done(await post("/api/grant/apply", { ...asked, after: found.after })); } catch (fault) { ctx.failed(fault); start(); }
    } } }, "Grant this");
    refill(root, h("div.panel", {}, h("h3", {}, "Grant this to ", seen(found.tool, { most: 80 }), "?"), h("p.faint", {}, seen(found.file, { most: 300 })),
      h("div.code.patch", { role: "group", "aria-label": "The change of the manifest" }, found.patch.map(([sign, text]) => h("div", { class: sign === "+" ? "plus" : sign === "-" ? "minus" : "" }, h("span", {}, sign), seen(text, { most: 2000 })))),
      h("h4", {}, "What a reviewer asks"),
      h("ul.questions", {}, found.questions.map(({ question, evidence }) => h("li", {}, pill(evidence ? "deny" : "plain", evidence ? "yes" : "no"), h("div", {}, question, evidence && h("small", {}, seen(evidence)))))),
      found.differences.length > 0 && [h("h4", {}, "What widens"), h("ul.plain", {}, found.differences.map((one) => h("li", {}, pill(one.widens ? "warn" : "plain", one.severity), " ", seen(one.message), one.example && [" ", h("code", {}, seen(one.example))])))],
      h("div.buttons", {}, confirm, h("button.quiet", { "data-key": "cancel", on: { click: start } }, "Cancel")), watchesOnly() && h("p.faint", {}, "This console only watches.")));
    confirm.focus({ preventScroll: true });
    root.scrollIntoView({ block: "start" });
  };
  const done = (made) => {
    ctx.toast(`Granted in ${spelt(made.file)}`, "good");
    refill(root, h("div.panel.good", {}, h("h3", {}, "Granted"), h("p", {}, "It counts when the client starts the server again; the running one keeps the sandbox that it began with."), made.note && h("p.bad", {}, seen(made.note)),
      h("button.quiet", { "data-key": "undo", on: { click: async () => {
        try { await post("/api/grant/undo", { change: made.change }); ctx.toast("Taken back", "good"); start(); } catch (fault) { ctx.failed(fault); }
      } } }, "Undo")));
  };
  start();
}

// Journal: the sessions, whether they are what was written, and their lines to keep elsewhere.

import { h, seen, refill, icon, nothing, pill, plural, number, bytes, date } from "/dom.js";
import { ask, get, post } from "/link.js";
import { data } from "/store.js";

export function mount(root, ctx) {
  const verify = h("button.primary", { on: { click: () => check() } }, "Verify");
  const result = h("div.stack", {}), list = h("div", {});
  root.append(h("div.head", {}, h("h1", {}, "Journal"), h("p.faint", {}, seen((data.state || {}).journal || "", { most: 300 })), h("span.push", {}), verify), result, list);
  let report = null;
  const save = async (session) => {
    try {
      const answer = await ask("/api/export" + (session ? "?session=" + session : ""));
      const at = URL.createObjectURL(await answer.blob());
      h("a", { href: at, download: `${session || "journal"}.jsonl` }).click();
      setTimeout(() => URL.revokeObjectURL(at), 1000);
    } catch (fault) { ctx.failed(fault); }
  };
  const state = (name) => {
    const found = report && report.sessions.find((one) => one.session === name);
    if (!found) return h("span.faint", {}, "not verified");
    return found.problems.length ? pill("deny", `breaks at line ${found.problems[0].line}`) : [pill("allow", "intact"), found.is_live && " ", found.is_live && pill("plain", "live")];
  };
  const show = (sessions) => refill(list, sessions.length ? h("div.card.scroll", {}, h("table.table", {}, h("thead", {}, h("tr", {}, ["Session", "Last event", "Size", "State", ""].map((name) => h("th", { scope: "col" }, name || h("span.skip", {}, "Export"))))),
    h("tbody", {}, sessions.slice(0, 300).map((one) => h("tr", {}, h("td", {}, h("code", {}, one.session)), h("td", {}, one.last_us ? date(one.last_us) : "\u2013"), h("td", {}, bytes(one.bytes)), h("td", {}, state(one.session)), h("td", {}, h("button.quiet", { "aria-label": "Export " + one.session, on: { click: () => save(one.session) } }, "Export"))))))) : nothing("journal", "The journal is empty", h("p", {}, "Everything that a server calls, is allowed and is denied is written there, in a chain that shows later changes.")));
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
      refill(result, h("div.card.stack", { role: "status" }, h("h2", {}, report.intact ? pill("allow", "intact") : pill("deny", "not intact"), ` ${plural(report.sessions.length, "session")}, ${plural(lines, "line")}`),
        broken.length > 0 && h("ul.plain", {}, broken.slice(0, 50).map((one) => h("li", {}, h("code", {}, seen(`${one.file.split("/").pop()}:${one.line}`)), " ", pill("deny", one.code), " ", seen(one.why)))),
        report.key && h("p.faint.small", {}, "Signed with the key ", h("code.hash", {}, report.key), report.key_beside_journal ? ", which lies beside the journal: who can read it could have written another history. Keep this fingerprint elsewhere." : ".")));
      show(sessions);
    } catch (fault) { refill(result); ctx.failed(fault); }
    verify.disabled = false;
  };
  load();
  return {};
}

// Pages of other origins, in the browser that has the console open.
import { createServer } from "node:http";
import { holds, pause, until } from "./world.mjs";

export async function strangers(world, page, served, notes) {
  const { errors } = page.context().seen, before = errors.length;
  const page_of = `<!doctype html><title>other</title><iframe id=framed src="${served.origin}/"></iframe><form id=form method=post enctype=text/plain target=sink></form><iframe name=sink></iframe>`;
  const other = createServer((_, answer) => { answer.writeHead(200, { "content-type": "text/html" }); answer.end(page_of); });
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  const waits = () => page.evaluate(async () => (await import("/store.js")).data.waiting.all.map((one) => ({ id: one.id, digest: one.digest })));
  const asked = notes.call("send", { to: "attacked", text: "x" });
  await until("a call waits", async () => (await waits()).length === 1);
  const [one] = await waits();
  const from = await page.context().newPage();
  await from.goto(`http://127.0.0.1:${other.address().port}/`);
  const tried = await from.evaluate(async ([origin, one]) => {
    const body = JSON.stringify({ ...one, answer: "once" });
    const results = {};
    const attempt = async (name, path, options) => { try { const answer = await fetch(origin + path, options); results[name] = `${answer.type} ${answer.status}`; } catch { results[name] = "refused"; } };
    await attempt("simple", "/api/answer", { method: "POST", body, mode: "no-cors", credentials: "include" });
    await attempt("json", "/api/answer", { method: "POST", body, headers: { "content-type": "application/json", authorization: "Bearer x" } });
    await attempt("read", "/api/state", {});
    await attempt("page", "/", {});
    await attempt("code", "/enter", { method: "POST", body: "guess", mode: "no-cors" });
    const form = document.getElementById("form");
    form.action = origin + "/api/answer";
    const field = document.createElement("input");
    field.name = body.slice(0, -1) + ',"note":"';
    field.value = '"}';
    form.append(field);
    form.submit();
    const channel = new BroadcastChannel("bailiwick-console");
    results.token = await new Promise((done) => { channel.onmessage = ({ data }) => done(JSON.stringify(data)); channel.postMessage({ want: "token" }); setTimeout(() => done("none"), 500); });
    return results;
  }, [served.origin, one]);
  await pause(500);
  holds(`a page of another origin reads nothing: ${JSON.stringify(tried)}`, tried.json === "refused" && tried.read === "refused" && tried.page === "refused" && tried.token === "none" && /^opaque/.test(tried.simple));
  holds("and answers nothing, by a form or a simple request", (await waits()).length === 1);
  const framed = await from.evaluate(() => { try { return document.getElementById("framed").contentDocument ? "readable" : "kept out"; } catch { return "kept out"; } });
  const frames = from.frames().map((frame) => frame.url());
  holds(`the console is shown in no frame (${frames.join(" ")})`, framed === "kept out" && frames.some((url) => url.startsWith("chrome-error:")) && !(await Promise.all(from.frames().slice(1).map((frame) => frame.locator(".gate, nav").count().catch(() => 0)))).some(Boolean));
  // A name that is bound to this machine after its page was loaded.
  const rebound = await from.goto(`http://rebound.test:${new URL(served.origin).port}/`);
  holds("a name of others that leads here is not served", rebound.status() === 403);
  await from.close();
  // What the browser says of the pages of others is no fault of this one.
  errors.splice(before);
  other.close();
  await world.run(["deny", one.id, "--yes"]);
  await asked;
}

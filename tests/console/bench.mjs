// How long a call that waits takes from the click that allows it to its answer at the client, and what frames cost with
// 100,000 events in the list.
import { World, entered, view } from "./world.mjs";

const rounds = Number(process.argv[2] || 40);
const world = new World();
const rank = (all, part) => all.sort((a, b) => a - b)[Math.floor(all.length * part)].toFixed(1);
try {
  const browser = await world.browser();
  const page = await entered(browser, await world.console());
  const notes = await world.wrap();
  await view(page, "waiting");
  const took = [];
  for (let round = 0; round < rounds; round += 1) {
    let answered = 0;
    const answer = notes.call("send", { to: "a", text: String(round) }).then((said) => { answered = performance.now(); return said; });
    const button = page.locator("article.ask button.primary");
    await button.waitFor();
    const began = performance.now();
    await button.evaluate((node) => node.click());
    if ((await answer) !== "sent") throw new Error("the call was refused");
    took.push(answered - began);
    await page.waitForSelector("article.ask", { state: "detached" });
  }
  console.log(`approve-to-resume, ${rounds} calls: median ${rank(took, .5)} ms, 95th percentile ${rank(took, .95)} ms`);
} finally {
  await world.end();
}

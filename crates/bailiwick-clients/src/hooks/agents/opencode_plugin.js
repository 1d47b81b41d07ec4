// >>> bailiwick: written by `bailiwick install --hooks opencode`, taken out by `--undo`; options may be added to COMMAND.
// Asks before and after every tool, and at the end of every turn. A call that cannot be judged does not run.
import { spawn } from "node:child_process";

const COMMAND = {command};

function ask(event) {
  return new Promise((resolve, reject) => {
    const [program, ...options] = COMMAND;
    const child = spawn(program, options, { stdio: ["pipe", "pipe", "pipe"] });
    let said = "";
    let complaint = "";
    child.stdout.on("data", (part) => (said += part));
    child.stderr.on("data", (part) => (complaint += part));
    child.on("error", (error) => reject(new Error(`[guardrail] nothing runs: ${error.message}`)));
    child.on("close", (code) => {
      if (code !== 0) return reject(new Error(complaint.trim() || `[guardrail] nothing runs: exit code ${code}`));
      try {
        resolve(JSON.parse(said));
      } catch (error) {
        reject(new Error(`[guardrail] nothing runs: ${error.message}`));
      }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(event));
  });
}

export const Bailiwick = async ({ client, directory }) => {
  const lastWords = new Map();
  const sentBack = new Set();
  return {
    "tool.execute.before": async (input, output) => {
      const call = { session: input.sessionID, id: input.callID, tool: input.tool, params: output.args, cwd: directory };
      const answer = await ask({ event: "before", ...call });
      if (answer.decision !== "allow") throw new Error(answer.message);
    },
    "tool.execute.after": async (input, output) => {
      const call = { session: input.sessionID, id: input.callID, tool: input.tool, params: input.args, cwd: directory };
      const exit = output.metadata?.exit;
      const success = input.tool === "bash" ? (typeof exit === "number" ? exit === 0 : null) : true;
      const text = output.output ?? output.content?.map((part) => part.text ?? "").join("\n") ?? "";
      try {
        const { inject = [] } = await ask({ event: "after", ...call, result: text, success });
        if (typeof output.output === "string") output.output += inject.map(({ text }) => `\n\n${text}`).join("");
        else output.content?.push(...inject.map(({ text }) => ({ type: "text", text })));
      } catch (error) {
        console.error(`bailiwick: ${error.message}`);
      }
    },
    event: async ({ event }) => {
      if (event.type === "message.part.updated" && event.properties.part?.type === "text")
        lastWords.set(event.properties.part.sessionID, event.properties.part.text);
      if (event.type !== "session.idle") return;
      const session = event.properties.sessionID;
      const turn = { event: "stop", session, cwd: directory, text: lastWords.get(session), again: sentBack.has(session) };
      const { inject = [] } = await ask(turn).catch(() => ({}));
      if (!inject.length) return sentBack.delete(session);
      sentBack.add(session);
      await client.session.prompt({ path: { id: session }, body: { parts: inject.map(({ text }) => ({ type: "text", text })) } });
    },
  };
};
// <<< bailiwick

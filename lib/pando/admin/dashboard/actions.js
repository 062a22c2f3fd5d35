// Commands, each confirmed in a dialog.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { command, hasToken, setToken } from "./server.js";

const COMMANDS = {
  refork: { label: "Refork", text: "Fork a new generation from a warm worker and replace the workers with it." },
  reload: { label: "Reload", text: "Boot the code that is on disk now and replace all workers with it." },
  scale: { label: "Scale", text: "Change the number of workers.", workers: true },
  drain: { label: "Drain", text: "Tell load balancers to send no more requests. Requests that come are served." },
  quiet: { label: "Quiet", text: "Job nodes take no new jobs." }
};

export function Actions({ server, pool, pools }) {
  const [word, open] = useState(null);
  const [said, say] = useState("");
  const undo = { drain: server.state === "draining", quiet: Boolean(server.quiet) };
  return html`<div class="actions" role="group" aria-label="Commands">
      ${Object.entries(COMMANDS).map(([key, one]) => html`
        <button key=${key} onClick=${() => open(key)}>${undo[key] ? `End ${key}` : one.label}</button>`)}
    </div>
    <p class="said" role="status">${said}</p>
    ${word && html`<${Dialog} word=${word} undo=${undo[word]} pool=${pools > 1 ? pool : undefined} workers=${server.workers}
      close=${() => open(null)} say=${say} />`}`;
}

function Dialog({ word, undo, pool, workers, close, say }) {
  const dialog = useRef(null);
  const { text, label, workers: asksWorkers } = COMMANDS[word];
  const takesPool = ["refork", "scale"].includes(word) && pool;
  useEffect(() => dialog.current.showModal(), []);

  const carryOut = async (submitted) => {
    submitted.preventDefault();
    const given = new FormData(submitted.target);
    if (given.get("token")) setToken(given.get("token").trim());
    close();
    say(`${label}: asked.`);
    try {
      say(`${label}: ${await command(word, { ...(undo ? { undo: "1" } : {}), ...(takesPool ? { pool } : {}),
        ...(asksWorkers ? { workers: given.get("workers") } : {}) })}`);
    } catch (error) {
      say(`${label} failed: ${error.message}`);
    }
  };

  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="dialog-title">
    <form onSubmit=${carryOut}>
      <h2 id="dialog-title">${undo ? `End ${word}` : label}${takesPool ? ` (${pool})` : ""}</h2>
      <p>${undo ? "Go back to the normal state." : text}</p>
      ${asksWorkers && html`<label>Workers <input name="workers" type="number" min="1" value=${workers} required /></label>`}
      ${!hasToken() && html`<${TokenField} />`}
      <p class="buttons"><button type="button" onClick=${close}>Cancel</button>
        <button class="primary">${undo ? `End ${word}` : label}</button></p>
    </form></dialog>`;
}

function TokenField() {
  return html`<label>Token <input name="token" type="password" autocomplete="off" required minlength="16" /></label>
    <p class="hint"><code>pando dashboard</code> prints a link that contains it.</p>`;
}

// The page cannot read anything without the token.
export function TokenForm({ refusal, done }) {
  const submit = (submitted) => {
    submitted.preventDefault();
    setToken(new FormData(submitted.target).get("token").trim());
    done();
  };
  return html`<main class="token"><h1>Pando</h1><p role="alert">${refusal}</p>
    <form onSubmit=${submit}><${TokenField} /><button class="primary">Open</button></form></main>`;
}

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

const KILL = "Kill this worker at once (SIGKILL), with the requests that it has. Another one takes its place.";

// @param workers the present number of the chosen pool
export function Actions({ server, pool, pools, workers }) {
  const [word, open] = useState(null);
  const [said, say] = useState("");
  const undo = { drain: server.state === "draining", quiet: Boolean(server.quiet) };
  const chosen = undo[word] ? { label: `End ${word}`, text: "Go back to the normal state." } : COMMANDS[word];
  const takesPool = pools > 1 && ["refork", "scale"].includes(word);
  return html`<div class="actions" role="group" aria-label="Commands">
      ${Object.entries(COMMANDS).map(([key, one]) => html`
        <button key=${key} onClick=${() => open(key)}>${undo[key] ? `End ${key}` : one.label}</button>`)}
    </div>
    <p class="said" role="status">${said}</p>
    ${word && html`<${Dialog} word=${word} label=${chosen.label} title=${takesPool ? `(${pool})` : ""} text=${chosen.text}
      parameters=${{ ...(undo[word] ? { undo: "1" } : {}), ...(takesPool ? { pool } : {}) }}
      workers=${chosen.workers && workers} close=${() => open(null)} say=${say} />`}`;
}

// The process id makes sure that no other worker is hit, if this one has been replaced since.
export function Kill({ process, name }) {
  const [opened, open] = useState(false);
  const [said, say] = useState("");
  const { slot, pid, pool } = process;
  return html`<button onClick=${() => open(true)}>Kill</button> <span role="status">${said}</span>
    ${opened && html`<${Dialog} word="kill" label="Kill" title=${`${name} (pid ${pid})`} text=${KILL}
      parameters=${{ slot, pid, ...(pool ? { pool } : {}) }} close=${() => open(false)} say=${say} />`}`;
}

// @param workers the present number, if the command asks for a new one
function Dialog({ word, label, title, text, parameters, workers, close, say }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);

  const carryOut = async (submitted) => {
    submitted.preventDefault();
    const given = new FormData(submitted.target);
    if (given.get("token")) setToken(given.get("token").trim());
    close();
    say(`${label}: asked.`);
    try {
      say(`${label}: ${await command(word, { ...parameters, ...(workers ? { workers: given.get("workers") } : {}) })}`);
    } catch (error) {
      say(`${label} failed: ${error.message}`);
    }
  };

  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="dialog-title">
    <form onSubmit=${carryOut}>
      <h2 id="dialog-title">${label} ${title}</h2>
      <p>${text}</p>
      ${workers && html`<label>Workers <input name="workers" type="number" min="1" value=${workers} required /></label>`}
      ${!hasToken() && html`<${TokenField} />`}
      <p class="buttons"><button type="button" onClick=${close}>Cancel</button>
        <button class="primary">${label}</button></p>
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

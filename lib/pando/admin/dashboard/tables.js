// Reforks, reloads and reboots with what they changed, slow requests, job nodes, and events.

import { html, useState } from "./vendor/preact.js";
import { slowStacks } from "./server.js";
import { bytes, moment, number, seconds, unixTime } from "./words.js";

// Seconds after the end of a refork by which its workers have been measured and have served a little.
const MEASURED = 20;

export function Changes({ events, samples }) {
  const rows = changes(events, samples);
  if (rows.length === 0) return html`<p>None is remembered.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Reforks and reloads"><table>
    <thead><tr><th>time</th><th>change</th><th>reason</th><th class="number">took</th>
      <th class="number">memory</th><th class="number">saved</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.key}>
      <td>${moment(row.time)}</td><td>${row.what}</td><td>${row.reason}</td>
      <td class="number">${row.took === undefined ? "" : seconds(row.took)}</td>
      <td class="number">${row.before === undefined ? "" : `${bytes(row.before)} → ${bytes(row.after)}`}</td>
      <td class="number">${row.before === undefined ? "" : bytes(row.before - row.after)}</td></tr>`)}</tbody>
  </table></div>`;
}

// One row for each refork, reload or reboot, the newest first.
function changes(events, samples) {
  const rows = [];
  const started = new Map();
  const reasons = new Map(); // of `refork :auto`
  const discarded = new Map(events.filter((event) => event.event === "generation.discarded")
    .map((event) => [place(event), event.reason])); // also after the rollout
  for (const event of events) {
    const [what, verb] = event.event.split(".");
    if (!["refork", "reload", "reboot"].includes(what)) continue;
    const key = `${what} ${event.pool ?? ""}`;
    if (verb === "decided" && event.decision === "refork") reasons.set(key, event.reason);
    if (verb === "started") started.set(key, event);
    if (!["finished", "failed", "refused"].includes(verb) || toldOtherwise(event, started.get(key))) continue;
    if (verb === "refused") { // another one may be under way
      rows.push(row(what, verb, event, undefined, undefined, samples));
      continue;
    }
    const withdrawn = verb === "finished" && discarded.has(place(event));
    const reason = withdrawn ? discarded.get(place(event)) : event.reason;
    rows.push(row(what, withdrawn ? "taken back" : verb, { ...event, reason }, started.get(key), reasons.get(key), samples));
    started.delete(key);
    reasons.delete(key);
  }
  for (const [key, event] of started) {
    rows.push(row(key.split(" ")[0], "under way", event, event, reasons.get(key), samples));
  }
  return rows.sort((one, other) => other.time - one.time);
}

// If a refork had begun before it was refused, `refork.failed` tells of its end. One that fails after it had finished is
// shown as taken back.
function toldOtherwise(event, started) {
  return (event.event === "refork.refused" && event.generation !== undefined) ||
    (event.event === "refork.failed" && started?.generation !== event.generation);
}

function place(event) {
  return `${event.pool ?? ""} ${event.generation}`;
}

function row(what, verb, event, started, why, samples) {
  const time = unixTime(started ?? event);
  const from = started?.slot === undefined ? "" : ` from worker ${started.slot}, after ${started.requests} requests`;
  const generation = event.generation === undefined ? "" : ` to generation ${event.generation}`;
  const end = verb === "finished" ? unixTime(event) : undefined;
  const reasons = verb === "finished" ? [why, started?.reason, event.reason] : [event.reason, why, started?.reason];
  return { key: `${event.time} ${event.event}`, time, reason: reasons.find((one) => one) ?? "",
    what: `${what}${event.pool ? ` of ${event.pool}` : ""}${generation}${verb === "finished" ? "" : ` ${verb}`}${from}`,
    took: event.seconds ?? (end && end - time), ...(end ? saved(samples, time, end, event.pool) : {}) };
}

// Memory of all generations of a pool, or of all pools. The time of a sample has no fractions.
function saved(samples, start, end, pool) {
  const before = memory(samples.findLast((sample) => sample.t + 1 <= start), pool);
  const after = memory(samples.find((sample) => sample.t >= end + MEASURED), pool);
  return before === undefined || after === undefined ? {} : { before, after };
}

function memory(sample, pool) {
  const pools = pool ? [sample?.pools[pool]] : Object.values(sample?.pools ?? {});
  const sizes = pools.flatMap((one) => Object.values(one?.memory ?? {}));
  return sizes.length > 0 ? sizes.reduce((sum, size) => sum + size) : undefined;
}

export function Slow({ requests }) {
  if (requests === undefined) return html`<p>Not known yet.</p>`;
  if (!requests) return html`<p>The slow log is off. Add <code>slow_log 2, "log/slow.log"</code> to the config file.</p>`;
  if (requests.length === 0) return html`<p>No request has been slow.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Slow requests"><table>
    <thead><tr><th>time</th><th>request</th><th class="number">took, or has taken</th><th>where it stood</th><th>worker</th></tr></thead>
    <tbody>${requests.map((one, at) => html`<tr key=${at}>
      <td>${moment(one.time)}</td><td><code>${one.request}</code></td>
      <td class="number">${one.ended ? "" : "runs, after "}${seconds(one.seconds)}${one.status ? `, ${one.status}` : ""}</td>
      <td><code>${one.location ?? one.reason}</code></td>
      <td>${one.pool} ${one.slot}, generation ${one.generation}</td></tr>`)}</tbody>
  </table></div><${Stacks} />`;
}

function Stacks() {
  const [text, show] = useState(null);
  const read = async () => {
    try {
      show(readable(await slowStacks()) || "The slow log is empty.");
    } catch (error) {
      show(error.message);
    }
  };
  return html`<p><button onClick=${read}>${text === null ? "Show stacks" : "Show newest stacks"}</button></p>
    ${text !== null && html`<pre class="wide tall" tabindex="0" role="region" aria-label="Slow log" ref=${toEnd}>${text}</pre>`}`;
}

// With `log_format :json` an entry is one line of JSON.
function readable(text) {
  return text.split("\n").map((line) => {
    if (!line.startsWith("{")) return line;
    try {
      const { stack = [], ...entry } = JSON.parse(line);
      return [`${entry.time} ${facts(entry)}`, ...stack.map((frame) => `    ${frame}`)].join("\n");
    } catch {
      return line;
    }
  }).join("\n");
}

// The newest entry is the last one.
function toEnd(element) {
  if (element) element.scrollTop = element.scrollHeight;
}

// One row for each kind of job node. What a node has done is lost with it here; the metrics keep it.
export function Jobs({ report }) {
  const nodes = Map.groupBy(report.processes.filter((one) => one.running !== undefined), (one) => one.pool);
  const total = (all, key) => number(all.reduce((sum, one) => sum + (one[key] ?? 0), 0));
  const most = (all, key, text) => {
    const told = all.map((one) => one[key]).filter((value) => value !== undefined && value !== null);
    return told.length ? text(Math.max(...told)) : "not told";
  };
  return html`<div class="wide" tabindex="0" role="region" aria-label="Jobs"><table>
    <thead><tr><th>nodes</th><th class="number">ready</th><th class="number">running now</th><th class="number">waiting</th>
      <th class="number">oldest has waited</th>
      <th class="number">done</th><th class="number">failed</th></tr></thead>
    <tbody>${[...nodes].map(([pool, all]) => html`<tr key=${pool}>
      <td>${pool}</td><td class="number">${all.filter((one) => ["idle", "busy"].includes(one.state)).length} of ${all.length}</td>
      <td class="number">${total(all, "running")}</td>
      <td class="number">${most(all, "lag", number)}</td><td class="number">${most(all, "latency", seconds)}</td>
      <td class="number">${total(all, "requests")}</td><td class="number">${total(all, "failed")}</td></tr>`)}</tbody>
  </table></div><p class="hint">Done and failed: by the nodes that run now. “Waiting” comes from the broker.</p>`;
}

export function Events({ events }) {
  const [words, search] = useState("");
  const wanted = words.toLowerCase();
  const shown = events.filter((event) => `${event.event} ${facts(event)}`.toLowerCase().includes(wanted)).slice(-200);
  return html`<label>Search <input type="search" value=${words} onInput=${(input) => search(input.target.value)} /></label>
    <div class="wide tall" tabindex="0" role="region" aria-label="Events"><table>
    <thead><tr><th>time</th><th>event</th><th>facts</th></tr></thead>
    <tbody>${shown.reverse().map((event, at) => html`<tr class=${event.level} key=${shown.length - at}>
      <td>${moment(unixTime(event))}</td><td>${event.event}</td><td>${facts(event)}</td></tr>`)}</tbody>
  </table></div>`;
}

function facts(event) {
  return Object.entries(event).filter(([key]) => !["time", "event", "level"].includes(key))
    .map(([key, value]) => `${key}=${value}`).join(" ");
}

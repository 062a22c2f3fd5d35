// The processes as a tree: the monitor, its helpers, and for each generation the mold with its workers.

import { html, useState } from "./vendor/preact.js";
import { Kill } from "./actions.js";
import { hasToken, stacks } from "./server.js";
import { bytes, counted, duration, number, seconds } from "./words.js";

const STANDING = { canary: "its first worker proves itself", rolling: "it replaces the workers one by one",
  current: "it serves", booting: "it starts", ready: "its mold is ready", retired: "it has been replaced" };

const PURPOSE = { boot: "Booted", refork: "Reforked", reload: "Reloaded", heal: "Started for a mold that died",
  reboot: "Booted anew" };
const from = (generation) => (generation?.release ? `, from ${generation.release}` : "");

export function Processes({ report }) {
  const [selected, select] = useState(null);
  const largest = Math.max(...report.processes.map((one) => one.pss ?? 0), 1);
  const tile = (one) => html`<${Tile} key=${one.pid} process=${one} largest=${largest} chosen=${one.pid === selected}
    choose=${() => select(one.pid === selected ? null : one.pid)} />`;
  const chosen = report.processes.find((one) => one.pid === selected);
  return html`
    <p class="legend"><span class="key own"></span> private memory <span class="key shared"></span> its share of
      shared memory. Select a process to look into it.</p>
    <section class="generation" aria-label="Processes without the app">
      <h3>Without the app</h3>
      <ul class="tiles">${report.processes.filter((one) => one.generation === undefined).map(tile)}</ul>
    </section>
    ${generations(report).map((group) => html`
      <section class="generation ${group.state}" key=${group.key} aria-label=${group.name}>
        <h3>${group.name} <span class="badge ${group.state}">${group.state}</span></h3>
        <p>${group.text}${memory(group.processes)}</p>
        <ul class="tiles">${group.processes.map(tile)}</ul>
      </section>`)}
    ${chosen && html`<${Details} key=${chosen.pid} process=${chosen} close=${() => select(null)} />`}`;
}

// Newest first.
function generations(report) {
  const groups = new Map();
  for (const one of report.processes.filter((process) => process.generation !== undefined)) {
    const key = `${one.pool ?? ""} ${one.generation}`;
    if (!groups.has(key)) groups.set(key, { key, pool: one.pool, number: one.generation, processes: [] });
    groups.get(key).processes.push(one);
  }
  return [...groups.values()].sort((one, other) => other.number - one.number).map((group) => {
    const known = report.generations.find((one) => one.number === group.number && one.pool === group.pool) ??
      report.generations.find((one) => one.number === group.number);
    const state = known?.state ?? "retired";
    const age = known ? `, ${duration(known.age)} old` : "";
    return { ...group, state, name: `Generation ${group.number}${group.pool ? ` of ${group.pool}` : ""}`,
      text: `${known ? `${PURPOSE[known.purpose] ?? known.purpose}: ` : ""}${STANDING[state] ?? state}${age}${from(known)}` };
  });
}

// Of those that have been measured.
function memory(processes) {
  const known = processes.filter((one) => one.pss !== undefined);
  if (known.length === 0) return "";
  const [pss, own] = ["pss", "private"].map((key) => known.reduce((sum, one) => sum + one[key], 0));
  return `. Memory: ${bytes(own)} private, ${bytes(pss - own)} shared`;
}

function name(process) {
  const place = process.name ?? process.slot;
  return `${process.pool ? `${process.pool} ` : ""}${process.running === undefined ? process.role : "node"}` +
    `${place === undefined ? "" : ` ${place}`}`;
}

function Tile({ process, largest, chosen, choose }) {
  const shared = (process.pss ?? 0) - (process.private ?? 0);
  return html`<li><button class="tile ${process.state} ${process.role}" aria-expanded=${chosen} onClick=${choose}>
    <span class="name">${name(process)}</span>
    <span class="state">${process.job ? seconds(process.seconds) : process.state}</span>
    <span class="doing">${process.job ?? (process.requests === undefined ? " " : counted(process.requests, "request"))}</span>
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="own" width=${100 * (process.private ?? 0) / largest} height="4" />
      <rect class="shared" x=${100 * (process.private ?? 0) / largest} width=${100 * shared / largest} height="4" />
    </svg>
    <span class="memory">${process.pss === undefined ? "not measured yet" : `${bytes(process.private)} + ${bytes(shared)}`}</span>
  </button></li>`;
}

function Details({ process, close }) {
  const [stack, show] = useState(null);
  const look = async () => {
    try {
      show(await stacks(process));
    } catch (error) {
      show(error.message);
    }
  };
  const facts = { "process id": process.pid, state: process.state, generation: process.generation,
    "requests served": process.requests !== undefined ? number(process.requests) : undefined,
    "works on": process.job && `${process.job}, for ${seconds(process.seconds)}`,
    "waited for the interpreter lock": process.lock_wait && seconds(process.lock_wait),
    "requests at once": process.at_once, connections: process.connections, streams: process.streams,
    "private memory": bytes(process.private), "with its share of shared memory (PSS)": bytes(process.pss),
    "jobs running": process.running, "jobs failed": process.failed, "jobs waiting": process.lag,
    "cannot become a mold": process.unsafe ? "yes" : undefined, listens: process.listen };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null);
  return html`<section class="details" aria-label="Process ${process.pid}" aria-live="off">
    <h3>${name(process)}</h3>
    <div class="actions"><button onClick=${close}>Close</button>
      ${process.role === "worker" && hasToken() && html`<button onClick=${look}>Stack now</button>`}
      ${process.role === "worker" && html`<${Kill} key=${process.pid} process=${process} name=${name(process)} />`}</div>
    <dl>${known.map(([fact, value]) => html`<div key=${fact}><dt>${fact}</dt><dd>${value}</dd></div>`)}</dl>
    ${stack !== null && html`<pre class="wide tall" tabindex="0" role="region" aria-label="Stack">${stack}</pre>`}
  </section>`;
}

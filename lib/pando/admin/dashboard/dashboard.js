// The dashboard: follows the server and shows it.

import { html, render, useEffect, useMemo, useState } from "./vendor/preact.js";
import { Actions, TokenForm } from "./actions.js";
import { Charts, isChange } from "./charts.js";
import { Processes } from "./processes.js";
import { Follower, takeToken } from "./server.js";
import { Changes, Events, Jobs, Slow } from "./tables.js";
import { bytes, duration, number, seconds, unixTime } from "./words.js";

const CONNECTION = { connecting: "connecting", live: "live", lost: "connection lost, trying again",
  silent: "the monitor does not answer" };

function Dashboard() {
  const [state, set] = useState(null);
  const [tries, again] = useState(0);
  useEffect(() => { new Follower(set).follow(); }, [tries]);

  if (state?.connection === "refused") {
    return html`<${TokenForm} refusal=${state.refusal} done=${() => again(tries + 1)} />`;
  }
  if (state?.report) return html`<${Page} state=${state} />`;
  return html`<main><h1>Pando</h1><p role="status">${CONNECTION[state?.connection ?? "connecting"]}</p></main>`;
}

function Page({ state }) {
  const { report, hour, day, events, slow, connection } = state;
  const [range, setRange] = useState("hour");
  const pools = report.pools?.map((one) => one.name) ?? Object.keys(hour.at(-1)?.pools ?? { web: true });
  const [chosen, choose] = useState(null);
  const pool = pools.includes(chosen) ? chosen : pools[0];
  const changes = useMemo(() => events.filter(isChange).map(unixTime), [events]);

  const workers = report.pools?.find((one) => one.name === pool)?.workers ?? report.server.workers;
  const jobs = report.processes.some((one) => one.running !== undefined);
  const release = report.generations.find((one) => one.state === "current")?.release;

  return html`
    <header>
      <h1>Pando</h1>
      <p><strong class="server ${report.server.state}">${report.server.state}</strong>, up ${duration(report.server.uptime)},
        Pando ${report.server.version}${release ? `, release ${release}` : ""}</p>
      <p class="connection ${connection}" role="status">${CONNECTION[connection]}</p>
    </header>
    <main>
      <nav aria-label="Parts of the page"><a href="#processes">Processes</a><a href="#past">Past</a><a href="#reforks">Reforks</a>
        ${jobs && html`<a href="#jobs">Jobs</a>`}<a href="#slow">Slow requests</a><a href="#events">Events</a></nav>
      <${Actions} server=${report.server} pool=${pool} pools=${pools.length} workers=${workers} />
      <${Figures} report=${report} sample=${hour.at(-1)} pool=${pool} />
      <section id="past"><h2>Past</h2>
        <div class="choices">
          <label>Time <select value=${range} onChange=${(one) => setRange(one.target.value)}>
            <option value="hour">last hour</option><option value="day">last day</option></select></label>
          ${pools.length > 1 && html`<label>Pool <select value=${pool} onChange=${(one) => choose(one.target.value)}>
            ${pools.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`}
        </div>
        <${Charts} samples=${range === "hour" ? hour : day} pool=${pool} changes=${changes} />
        <p class="hint">A dashed line marks a refork, a reload, a reboot or an upgrade.</p></section>
      <section id="processes"><h2>Processes</h2>
        <${Processes} report=${report} /></section>
      <section id="reforks"><h2>Reforks and reloads</h2>
        <${Changes} events=${events} samples=${hour} /></section>
      ${jobs && html`<section id="jobs"><h2>Jobs</h2><${Jobs} report=${report} /></section>`}
      <section id="slow"><h2>Slow requests</h2><${Slow} requests=${slow} /></section>
      <section id="events"><h2>Events</h2><${Events} events=${events} /></section>
    </main>`;
}

function Figures({ report, sample, pool }) {
  const now = sample?.pools[pool] ?? {};
  const known = report.processes.filter((one) => one.pss !== undefined);
  const [pss, own] = [sum(known, "pss"), sum(known, "private")];
  const workers = report.processes.filter((one) => one.role === "worker" && (one.pool ?? pool) === pool);
  const busy = workers.filter((one) => one.job !== undefined).length;
  const figures = [["requests/s", number(now.requests)], ["errors/s", number(now.errors)], ["p95", seconds(now.p95)],
    ["queue p95", seconds(now.queue)], ["busy workers", `${busy} of ${workers.length}`], ["in the queue", number(now.queued ?? 0)],
    ["memory", bytes(pss)], ["of it shared", pss ? `${Math.round(100 * (pss - own) / pss)}%` : "–"]];
  return html`<dl class="figures">${figures.map(([label, value]) => html`
    <div key=${label}><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`;
}

const sum = (all, key) => all.reduce((total, one) => total + (one[key] ?? 0), 0);

takeToken();
const place = document.getElementById("dashboard");
place.replaceChildren();
render(html`<${Dashboard} />`, place);

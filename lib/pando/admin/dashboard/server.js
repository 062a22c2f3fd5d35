// The server, as the page sees it: what it tells by itself (/live), what the page asks for, and commands.

const TOKEN = "pando-token";
// The page keeps as many events as Admin::History does: of those that tell how the server changes, and of the others.
const EVENTS = 200;
const MILESTONE = /^(refork|generation|reload|monitor|server|canary|reboot|pool|setting)\./;
const SAMPLES = { hour: 360, day: 1440 };
const PAUSE = 1000; // ms until a lost connection is made again
const FRESH = 1100; // ms after which an answer of the server is a new one
const AGAIN = 3000; // ms until a slow request that runs is asked for again
const RUNNING = 600; // seconds for which one that was seen may still run: a worker that was killed tells of no end
const SILENCE = 15000; // ms without a word after which a connection counts as lost

// The URL that `pando dashboard` prints has the token after the #: browsers send that part to nobody.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return;
  setToken(given);
  history.replaceState(null, "", location.pathname);
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export const setToken = (token) => sessionStorage.setItem(TOKEN, token);
const forgetToken = () => sessionStorage.removeItem(TOKEN);

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  if (answer.status === 401) forgetToken();
  const { error } = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, error || `the server answered ${answer.status}`);
}

// A command such as "refork". The server says whether it has begun; the events tell how it goes on.
export async function command(word, parameters = {}) {
  const query = new URLSearchParams({ ...parameters, wait: "0" });
  const answer = await ask(`/${word}?${query}`, { method: "POST" });
  const { outcome, text } = await answer.json();
  return outcome === "begun" ? "It has begun." : text;
}

// Where the threads of a worker stand now.
export async function stacks({ slot, pid, pool }) {
  const query = new URLSearchParams({ slot, pid, ...(pool ? { pool } : {}) });
  return (await ask(`/stack?${query}`, { method: "POST" })).text();
}

// The end of the slow log's file.
export async function slowStacks() {
  return (await ask("/slow.log")).text();
}

// Follows the server for ever, and calls changed(state) with what is known.
export class Follower {
  constructor(changed) {
    this.changed = changed;
    // Which requests were slow is not known yet. It is null if there is no slow log.
    this.state = { connection: "connecting", report: null, hour: [], day: [], events: [], slow: undefined,
      refusal: null };
  }

  async follow() {
    for (;;) {
      try {
        await this.once();
        this.set({ connection: "lost" });
      } catch (error) {
        if (error instanceof Refused && [401, 403, 421].includes(error.status)) {
          this.set({ connection: "refused", refusal: error.message });
          return;
        }
        this.set({ connection: "lost" });
      }
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }

  // One connection, until it is lost. It must not stay open then: a browser has few, and the server has few followers.
  async once() {
    const abort = new AbortController();
    const inTime = (work) => {
      const timer = setTimeout(() => abort.abort(), SILENCE);
      return work.finally(() => clearTimeout(timer));
    };
    try {
      const live = await inTime(ask("/live", { signal: abort.signal }));
      const past = await inTime(ask("/history.json", { signal: abort.signal }).then((answer) => answer.json()));
      this.set({ ...this.joined(past), refusal: null });
      const reader = live.body.pipeThrough(new TextDecoderStream()).getReader();
      await this.listen(() => inTime(reader.read()));
    } finally {
      abort.abort();
    }
  }

  async listen(read) {
    let text = "";
    for (;;) {
      const { value, done } = await read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      this.hear(parts);
    }
  }

  // The server saves its past every ten seconds. What it forgets when its admin process dies is known here.
  joined(past) {
    const events = new Map([...this.state.events, ...past.events].map((event) => [JSON.stringify(event), event]));
    return {
      slow: past.slow === undefined ? this.state.slow : past.slow,
      hour: merged(this.state.hour, past.hour), day: merged(this.state.day, past.day),
      events: kept([...events.values()].sort((one, other) => one.time.localeCompare(other.time)))
    };
  }

  hear(messages) {
    const news = {};
    for (const message of messages) {
      const kind = /^event: (\w+)$/m.exec(message)?.[1] ?? "event";
      const data = /^data: (.*)$/m.exec(message)?.[1];
      if (data) this.take(kind, JSON.parse(data), news);
    }
    if (Object.keys(news).length > 0) this.set(news);
  }

  take(kind, data, news) {
    if (kind === "status") {
      Object.assign(news, { report: data, connection: "live" });
      if (this.state.slow === undefined) this.askSlow(); // the monitor was silent when the past came
    }
    if (kind === "silent") news.connection = "silent";
    if (kind === "sample") news.hour = appended(news.hour ?? this.state.hour, data, SAMPLES.hour);
    if (kind !== "event") return;

    news.events = kept([...(news.events ?? this.state.events), data]);
    if (data.event === "request.slow") this.askSlow();
  }

  // Later, because an answer may be a second old; and once for many. No event tells of a slow request's end.
  askSlow(after = FRESH) {
    this.slowSoon ??= setTimeout(async () => {
      this.slowSoon = null;
      try {
        const slow = (await (await ask("/slow")).json()).requests;
        this.set({ slow });
        if (slow.some((one) => !one.ended && Date.now() / 1000 - one.time < RUNNING)) this.askSlow(AGAIN);
      } catch (error) {
        if (error.status === 404) this.set({ slow: null }); // there is no slow log
        else if (!(error.status < 500)) this.askSlow(AGAIN); // the monitor was silent, or there is no connection
      }
    }, after);
  }

  // The server tells samples of the last hour only: of those the page makes the last values of the day.
  set(news) {
    if (news.hour && !news.day) {
      const [last, day] = [news.hour.at(-1), this.state.day];
      if (last && (day.length === 0 || last.t - day.at(-1).t >= 60)) news.day = appended(day, last, SAMPLES.day);
    }
    this.state = { ...this.state, ...news };
    this.changed(this.state);
  }
}

// The others may be many: they must not push out the last refork.
function kept(events) {
  const { true: milestones = [], false: others = [] } = Object.groupBy(events, (one) => MILESTONE.test(one.event));
  const last = new Set([...milestones.slice(-EVENTS), ...others.slice(-EVENTS)]);
  return events.filter((event) => last.has(event));
}

function appended(samples, sample, most) {
  return samples.at(-1)?.t >= sample.t ? samples : [...samples, sample].slice(-most);
}

// By time: where both have a value, the server's counts.
function merged(known, told) {
  const all = new Map([...known, ...told].map((sample) => [sample.t, sample]));
  return [...all.values()].sort((one, other) => one.t - other.t);
}

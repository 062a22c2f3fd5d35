// Figures as text.

const UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

export function bytes(size) {
  if (size === undefined || size === null) return "–";
  const [name, unit] = UNITS.find(([, one]) => Math.abs(size) >= one) ?? UNITS.at(-1);
  const value = size / unit;
  return `${Math.abs(value) < 10 ? value.toFixed(1) : Math.round(value)} ${name}`;
}

export function seconds(value) {
  if (value === undefined || value === null) return "–";
  if (value < 0.01) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 60 ? `${value.toFixed(1)} s` : duration(value);
}

export function duration(value) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let left = Math.floor(value ?? 0);
  const words = [];
  for (const [unit, name] of parts) {
    if (left >= unit) words.push(`${Math.floor(left / unit)} ${name}`);
    left %= unit;
  }
  return words.slice(0, 2).join(" ") || "0 s";
}

export function number(value) {
  if (value === undefined || value === null) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 1 : 0 });
}

export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function clock(unixTime) {
  return new Date(unixTime * 1000).toLocaleTimeString("en-GB");
}

// With the date, unless it is today's.
export function moment(unixTime) {
  const date = new Date(unixTime * 1000);
  if (date.toDateString() === new Date().toDateString()) return clock(unixTime);
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clock(unixTime)}`;
}

export const unixTime = (event) => Date.parse(event.time) / 1000;

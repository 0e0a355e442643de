// Number formats: three digits, and a suitable unit.

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "–";
  if (ns === 0) return "0";
  const size = Math.abs(ns);
  const [unit, name] = UNITS.find(([each]) => size >= each * 0.9995) ?? [1, "ns"];
  return `${threeDigits(ns / unit)} ${name}`;
}

/** A duration on an axis, where digits that are zero have no meaning. */
export function tickDuration(ns: number): string {
  return duration(ns).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

export function ms(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "–";
  return threeDigits(ns / 1e6);
}

/** A number on an axis, without digits that are zero. */
export function tickNumber(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

export function threeDigits(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-9));
  return value.toFixed(Math.min(digits, 8));
}

export function count(n: number): string {
  return (Math.round(n) + 0).toLocaleString("en"); // avoids "-0"
}

export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return "0 %";
  return `${value >= 9.95 ? value.toFixed(0) : value >= 0.1 ? value.toFixed(1) : "<0.1"} %`;
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) {
    n /= 1024;
    at += 1;
  }
  return `${Number.isInteger(n) ? n : threeDigits(n)} ${units[at]}`;
}

export function dateText(utc: string): string {
  return utc.replace("T", " ").replace(/:\d\dZ$/, "");
}

/** Ticks of a logarithmic axis: decades, and multiples of them where there are few. */
export function logTicks(low: number, high: number, about = Infinity): number[] {
  const decades = Math.log10(high / low);
  const steps = decades > 3.5 ? [1] : decades > 1.6 ? [1, 3] : decades > 0.8 ? [1, 2, 5] : about < 3 ? [1, 1.5, 2, 3, 5, 7] : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const ticks: number[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const step of steps) {
      const value = step * 10 ** e;
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
    }
  return ticks;
}

/** Ticks of a logarithmic axis: as many as fit next to each other. */
export function powerTicks(low: number, high: number, about: number): number[] {
  return withSpacing(logTicks(10 ** low, 10 ** high).map(Math.log10), (high - low) / (about * 1.6));
}

/** Ticks whose labels are far enough from the previous one not to overlap. */
export function withSpacing(ticks: number[], distance: number): number[] {
  let last = -Infinity;
  return ticks.filter((at) => {
    if (at - last < distance) return false;
    last = at;
    return true;
  });
}

/** Approximately the given number of round values from low to high. */
export function linearTicks(low: number, high: number, about: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10) * power;
  const ticks: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at++) ticks.push(at * step);
  return ticks;
}

export function tickOf(axis: "number" | "time", low: number, high: number): (value: number) => string {
  if (axis === "number") return (value) => count(value);
  const [unit, name] = UNITS.find(([each]) => high >= each) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10((high - low) / unit / 8)));
  return (value) => `${(value / unit).toLocaleString("en", { minimumFractionDigits: Math.min(digits, 9), maximumFractionDigits: Math.min(digits, 9) })} ${name}`;
}

/** Modes of I/Os, by the number in the column `mode`. */
export function modeName(code: number): string {
  return ["read", "write", "trim", "append", "reset", "finish", "open", "close"][code] ?? "";
}

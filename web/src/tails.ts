// Share of I/Os slower than a given time (CCDF) of several runs on the same axes, for tail latencies.

import type { Plain } from "./api";
import { h } from "./dom";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { duration, powerTicks } from "./format";

export interface Tail { words: string; hue: string; dash?: number[]; spread: Plain }

interface Steps { tail: Tail; at: number[]; share: number[] }

/** Shares of slower I/Os at the lower edge of each class; zero at the maximum. */
function steps(tail: Tail): Steps {
  const { counts, edges_ns, longest_ns, count } = tail.spread;
  const [at, share]: [number[], number[]] = [[], []];
  let remaining = count;
  counts.forEach((n: number, i: number) => {
    at.push(edges_ns[i]);
    share.push(remaining / count);
    remaining -= n;
  });
  return { tail, at: [...at, longest_ns], share: [...share, 0] };
}

export function tails(name: string, runs: Tail[]): HTMLElement | null {
  const all = runs.filter((each) => each.spread.count).map(steps);
  if (!all.length) return null;
  const ends = all.flatMap((each) => [each.at[0]!, each.at.at(-1)!]);
  const [low, high] = [Math.min(...ends) / 1.2, Math.max(...ends) * 1.4];
  const least = Math.min(0.1, ...all.flatMap((each) => each.share).filter((each) => each > 0)) / 1.5;
  const shares = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7].filter((each) => each >= least);
  const plot = new Plot({
    title: `Share of slower I/Os: ${name}`, name: `${name}-ccdf`, height: 240,
    x: { range: { low: Math.log10(low), high: Math.log10(high) }, label: "response time", ticks: powerTicks, tick: () => (value) => duration(10 ** value) },
    y: { range: { low: least, high: 1.3 }, log: true, label: "share of slower I/Os", ticks: () => shares, tick: () => (value) => (value >= 0.01 ? `${Math.round(value * 100)} %` : `${Number((value * 100).toPrecision(1))} %`) },
    paint: (pen, plane) => {
      for (const { tail, at, share } of all) {
        const points: [number, number][] = at.flatMap((value, i): [number, number][] => {
          const x = plane.x(Math.log10(value));
          const y = plane.y(Math.max(share[i]!, least));
          return i ? [[x, plane.y(share[i - 1]!)], [x, y]] : [[x, y]];
        });
        pen.line(points, tail.hue, 1.8, tail.dash);
      }
    },
  });
  return h("div", {}, h("p", { class: "quiet" }, "Share of I/Os slower than a response time, without the start-up: the further left and down, the better. A step is a class of response times, 6 to 12 % wide; the last one ends at the maximum."), plot.node,
    plot.saving([["CSV", () => saveCsv(`${name}-ccdf`, ["run", "response_time_ns", "share_longer"], all.flatMap((each) => each.at.map((value, i) => [each.tail.words, value, each.share[i]])))]]));
}

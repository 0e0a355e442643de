// Gantt chart of the channels and dies in the visible stretch: a row each, a bar per operation, and
// the waits. For a long stretch, the share of time of each kind of operation.

import { ask, unpacked, type Picture, type Plain } from "./api";
import { color, fill, h, later } from "./dom";
import { activity, operation as hue, type Axis } from "./paint";
import type { Pen } from "./pen";
import { Plot, type Plane, type Range } from "./plot";
import { saveCsv } from "./save";
import { count, duration, linearTicks, percent, tickOf } from "./words";

interface Lane { name: string; channel: number; die: number }

// Waits are lines below the row of the die, each in a track of its own: by `uflip.results.operations.WAITS`, after those
// for the die itself.
const WAITS: [string, string][] = [["waits for the die", "die_wait_ns"], ["waits for a free page", "free_page_wait_ns"], ["waits for the write cache", "cache_wait_ns"]];

/** A selected I/O: its start and end, and its flash operations. */
export interface Marked { io: number; from: number; until: number; rows: number[] }

/** An operation as text. */
export function whom(each: Plain): string {
  const of = [each.io === undefined ? "" : `I/O ${count(each.io)}`, each.job === undefined ? "" : `${each.made}${each.block === undefined ? "" : ` of block ${count(each.block)}`}${each.valid === undefined ? "" : ` with ${count(each.valid)} valid pages`}`];
  return `${each.count > 1 ? `${count(each.count)} × ` : ""}${each.what} on die ${each.dies?.length > 1 ? each.dies.join(", ") : each.die}${of.some(Boolean) ? ` (${of.filter(Boolean).join(", ")})` : ""}, ${duration(each.ns)}`;
}

export class Gantt {
  readonly node: HTMLDetailsElement;
  private readonly plot: Plot;
  private readonly legend = h("ul", { class: "legend" });
  private readonly said = h("p", { class: "quiet" });
  private readonly readout = h("p", { class: "readout", "aria-live": "polite" });
  private found: Picture | null = null;
  private asking = new AbortController();
  private chosen = -1;
  private seen: (Range & { axis: Axis }) | null = null;
  private asked = "";
  private marked: Marked | null = null;
  private readonly tell: () => void;

  constructor(private readonly key: string, private readonly name: string, private readonly select: (io: number) => void, chosen: (range: Range) => void) {
    const view = this;
    this.plot = new Plot({
      title: `Dies and channels: ${name}`, name: `${name}-dies`, height: 420,
      x: { get range() { return view.stretch(); }, label: "since the first I/O was submitted", ticks: linearTicks, tick: (low, high) => tickOf("time", low, high) },
      y: {
        get range() { return { low: -view.lanes.length + 0.5, high: 0.5 }; }, label: "", size: 84,
        ticks: () => { const step = Math.ceil(view.lanes.length / 26); return view.lanes.map((_, i) => -i).filter((i) => i % step === 0); },
        tick: () => (value) => view.lanes[-value]?.name ?? "",
      },
      paint: (pen, plane) => this.paint(pen, plane),
      chosen,
      at: (x, y) => this.hover(x, y),
      clicked: (x, y) => this.click(x, y),
    });
    this.node = h("details", { class: "panel gantt", open: true, ontoggle: () => this.follow() }, h("summary", {}, h("h2", {}, "Dies and channels")),
      h("p", { class: "quiet" }, "Full: the cells work. Pale: the die is held, and waits for its channel or has its data there. Lines below a row: the host waits for the die, for a free page of it, or for the page that it programs to leave the write cache. The selected I/O is shaded, and what the flash did for it is framed. Drag to zoom; click an operation for its I/O."),
      this.legend, this.plot.node, this.readout, this.said, this.plot.saving([["CSV", () => this.save()]]));
    this.tell = later(60, () => void this.ask());
  }

  private get lanes(): Lane[] {
    return ((this.found as Plain)?.lanes as Lane[]) ?? [];
  }

  private stretch(): Range {
    const { from_ns: low = 0, until_ns: high = 1 } = (this.found as Plain) ?? {};
    return { low, high: Math.max(high, low + 1) };
  }

  /** Follows the visible stretch. */
  of(seen: Range, axis: Axis): void {
    this.seen = { ...seen, axis };
    this.follow();
  }

  private follow(): void {
    const { seen } = this;
    if (!seen || !this.node.open) return;
    const asked = `${seen.axis} ${seen.low} ${seen.high}`;
    if (asked !== this.asked) void this.look(seen);
    this.asked = asked;
  }

  private async look(seen: Range & { axis: Axis }): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const columns = Math.max(Math.floor(this.plot.over.clientWidth), 100);
    const found = await unpacked("gantt", { key: this.key, run: this.name, axis: seen.axis, from: seen.low, to: seen.high, columns }, this.asking.signal).catch(() => null);
    if (!found) return;
    this.node.hidden = (found as Plain).kind === "nothing"; // of an older version without this log
    if (this.node.hidden) return;
    this.found = found;
    this.chosen = -1;
    const { operations, kept, recorded, gaps, whats } = found as Plain;
    const met = new Set<number>();
    if (found.kind === ("operations" as Picture["kind"])) for (const what of found.at.what!) met.add(what);
    else {
      const { shares } = found.at;
      const wide = (found as Plain).columns as number;
      for (let i = 0; i < shares!.length; i++) if (shares![i]) met.add(Math.floor(i / wide) % whats.length);
    }
    fill(this.legend, [...met].sort((a, b) => a - b).map((what) => h("li", { vars: { "--hue": hue(what) } }, whats[what])),
      this.waits().map((kind) => h("li", { class: "stroke", vars: { "--hue": activity(WAITS[kind]![1]) } }, WAITS[kind]![0])));
    fill(this.said, `${count(operations)} operations of the flash in this stretch`, found.at.shares ? ", drawn as shares of time: zoom in to see each of them." : ".",
      kept < recorded ? ` Of ${count(recorded)} in this run ${count(kept)} were kept, those beside its slowest I/Os; ${gaps.length ? "some of this stretch are missing, where it is shaded." : "all of this stretch are."}` : "");
    fill(this.readout, "Hover an operation: what it was, for which I/O, and what it waited for.");
    this.plot.draw();
    this.plot.node.dataset.drawn = String(Number(this.plot.node.dataset.drawn ?? 0) + 1);
  }

  /** Marks the operations of the selected I/O. */
  mark(marked: Marked | null): void {
    this.marked = marked;
    this.plot.draw();
    this.plot.node.dataset.marked = marked ? String(marked.io) : "";
  }

  /** The kinds of waits that are drawn. */
  private waits(): number[] {
    const { at } = this.found!;
    if (!at.row) return [];
    const kinds = new Set(Array.from(at.wait_kind!, (kind) => kind + 1));
    if (at.row.some((_, i) => this.waitsForDie(at, i))) kinds.add(0);
    return [...kinds].sort();
  }

  private waitsForDie(at: Picture["at"], i: number): boolean {
    const ofHost = at.io![i]! >= 0 || (this.found as Plain).whats[at.what![i]!].startsWith("host ");
    return ofHost && at.begin![i]! > at.asked![i]!;
  }

  private row(plane: Plane, lane: number): [number, number] {
    const [top, bottom] = [plane.y(-lane + 0.42), plane.y(-lane - 0.36)];
    return [top, bottom - top];
  }

  private paint(pen: Pen, plane: Plane): void {
    const { found } = this;
    if (!found) return;
    this.lanes.forEach((lane, i) => {
      if (lane.die < 0) pen.rect(plane.left, plane.y(-i + 0.5), plane.width, plane.y(-i - 0.5) - plane.y(-i + 0.5), color("shade"));
    });
    for (const [from, until] of (found as Plain).gaps as [number, number][]) pen.rect(plane.x(from), plane.top, Math.max(plane.x(until) - plane.x(from), 1), plane.height, color("startup"));
    if (found.at.shares) this.paintShares(pen, plane, found);
    else this.paintOperations(pen, plane, found);
    if (this.marked) this.paintMarked(pen, plane, found.at, this.marked);
  }

  /** The selected I/O: a band over all rows; its operations are framed, its waits are thick. */
  private paintMarked(pen: Pen, plane: Plane, at: Picture["at"], { io, from, until, rows }: Marked): void {
    const within = (value: number) => Math.min(Math.max(plane.x(value), plane.left), plane.left + plane.width);
    const [left, right] = [within(from), within(until)];
    pen.rect(left, plane.top, Math.max(right - left, 1), plane.height, color("accent"), 0.13);
    for (const x of [from, until]) if (within(x) === plane.x(x)) pen.line([[plane.x(x), plane.top], [plane.x(x), plane.top + plane.height]], color("accent"), 1, [3, 3]);
    if (!at.row) return;
    const [place, own] = [this.places(), new Set(rows)];
    at.row.forEach((row, i) => {
      const lane = place.get(at.die![i]!);
      if (lane === undefined || !own.has(row)) return;
      const [top, tall] = this.row(plane, lane);
      const [begin, end] = [within(at.begin![i]!), within(at.end![i]!)];
      pen.line([[begin, top], [end, top], [end, top + tall], [begin, top + tall], [begin, top]], color("accent"), 2);
    });
    at.wait_io!.forEach((waits, i) => {
      const lane = place.get(at.wait_die![i]!);
      if (lane === undefined || waits !== io) return;
      const [top, tall] = this.row(plane, lane);
      pen.line([[within(at.wait_begin![i]!), top + tall * 1.12], [within(at.wait_end![i]!), top + tall * 1.12]], activity(WAITS[at.wait_kind![i]! + 1]![1]), 3.5);
    });
  }

  private paintShares(pen: Pen, plane: Plane, found: Picture): void {
    const { shares } = found.at;
    const { columns, whats } = found as Plain;
    const { low, high } = this.stretch();
    const edge = (i: number) => plane.x(low + ((high - low) * i) / columns);
    this.lanes.forEach((_, lane) => {
      const [top, tall] = this.row(plane, lane);
      for (let i = 0; i < columns; i++) {
        let bottom = top + tall;
        for (let what = 0; what < whats.length; what++) {
          const share = shares![(lane * whats.length + what) * columns + i]!;
          if (!share) continue;
          const high = Math.min((tall * share) / 255, bottom - top);
          pen.rect(edge(i), bottom - high, edge(i + 1) - edge(i), high, hue(what));
          bottom -= high;
        }
      }
    });
  }

  private paintOperations(pen: Pen, plane: Plane, found: Picture): void {
    const { at } = found;
    const place = this.places();
    const wide = (from: number, until: number, top: number, tall: number, tone: string, alpha = 1, least = 0.7) => {
      const [left, right] = [Math.max(plane.x(from), plane.left), Math.min(plane.x(until), plane.left + plane.width)];
      if (right >= left) pen.rect(left, top, Math.max(right - left, least), tall, tone, alpha);
    };
    for (let i = 0; i < at.row!.length; i++) {
      const die = place.get(at.die![i]!);
      if (die === undefined) continue;
      const tone = hue(at.what![i]!);
      const [top, tall] = this.row(plane, die);
      wide(at.begin![i]!, at.end![i]!, top, tall, tone, 0.35);
      wide(at.cells_from![i]!, at.cells_until![i]!, top, tall, tone);
      if (this.waitsForDie(at, i)) wide(at.asked![i]!, at.begin![i]!, ...track(top, tall, 0), activity(WAITS[0]![1]));
      if (at.sent_until![i]! > at.sent![i]!) {
        const [top, tall] = this.row(plane, place.get(-1 - this.channelOf(at.die![i]!))!);
        wide(at.sent![i]!, at.sent_until![i]!, top, tall, tone);
      }
    }
    for (let i = 0; i < at.wait_kind!.length; i++) {
      const lane = place.get(at.wait_die![i]!);
      if (lane === undefined) continue;
      const [top, tall] = this.row(plane, lane);
      const kind = at.wait_kind![i]! + 1;
      wide(at.wait_begin![i]!, at.wait_end![i]!, ...track(top, tall, kind), activity(WAITS[kind]![1]));
    }
    if (this.chosen >= 0) this.paintChosen(pen, plane, at, place);
  }

  /** The operation under the mouse: framed, with its wait. */
  private paintChosen(pen: Pen, plane: Plane, at: Picture["at"], place: Map<number, number>): void {
    const i = this.chosen;
    const [top, tall] = this.row(plane, place.get(at.die![i]!)!);
    const [left, right, asked] = [plane.x(at.begin![i]!), plane.x(at.end![i]!), plane.x(at.asked![i]!)];
    pen.line([[left, top], [right, top], [right, top + tall], [left, top + tall], [left, top]], color("ink"), 1.6);
    if (left > asked) pen.line([[asked, top], [asked, top + tall], [left, top + tall]], activity(WAITS[0]![1]), 2.5);
  }

  private places(): Map<number, number> {
    return new Map(this.lanes.map((lane, i) => [lane.die < 0 ? -1 - lane.channel : lane.die, i]));
  }

  private channelOf(die: number): number {
    return this.lanes.find((lane) => lane.die === die)!.channel;
  }

  private at(x: number | null, y: number): number {
    const { found } = this;
    const lane = this.lanes[Math.round(-y)];
    if (x === null || !found?.at.row || !lane) return -1;
    const { at } = found;
    const { low, high } = this.stretch();
    const near = (high - low) / 400;
    let [best, least] = [-1, near];
    for (let i = 0; i < at.row!.length; i++) {
      const on = lane.die < 0 ? this.channelOf(at.die![i]!) === lane.channel && at.sent_until![i]! > at.sent![i]! : at.die![i]! === lane.die;
      if (!on) continue;
      const [from, until] = lane.die < 0 ? [at.sent![i]!, at.sent_until![i]!] : [at.begin![i]!, at.end![i]!];
      const far = x < from ? from - x : x > until ? x - until : -1;
      if (far < least) [best, least] = [i, far];
      if (far < 0) break;
    }
    return best;
  }

  private hover(x: number | null, y: number): void {
    const { found } = this;
    if (found?.at.shares && x !== null) return this.hoverShares(found, x, y);
    const i = this.at(x, y);
    if (i === this.chosen) {
      this.plot.tip(i < 0 ? "" : this.readout.textContent ?? ""); // it follows the pointer
      return;
    }
    this.chosen = i;
    this.plot.draw();
    this.plot.over.style.cursor = i >= 0 ? "pointer" : "crosshair";
    if (i < 0 || !found) {
      this.plot.tip("");
      return fill(this.readout, "");
    }
    const { at } = found;
    const what = (found as Plain).whats[at.what![i]!];
    const whose = [at.io![i]! >= 0 ? `I/O ${count(at.io![i]!)}` : "", at.job![i]! >= 0 && at.block![i]! >= 0 ? `${(found as Plain).jobs[at.made![i]!]} of block ${count(at.block![i]!)}` : ""].filter(Boolean).join(", ");
    fill(this.readout, h("b", {}, what), whose ? ` for ${whose}` : "", `: ${this.lanes.find((lane) => lane.die === at.die![i])!.name}, ${duration(at.end![i]! - at.begin![i]!)} from ${duration(at.begin![i]!)} on`,
      at.begin![i]! > at.asked![i]! ? `; waited ${duration(at.begin![i]! - at.asked![i]!)} for the die` : "; did not wait for the die");
    this.plot.tip(this.readout.textContent ?? "");
    this.tell();
  }

  private hoverShares(found: Picture, x: number, y: number): void {
    const lane = Math.round(-y);
    const { columns, whats } = found as Plain;
    const { low, high } = this.stretch();
    const column = Math.floor(((x - low) / (high - low)) * columns);
    const shares = (whats as string[]).map((what, i): [string, number] => [what, (found.at.shares![(lane * whats.length + i) * columns + column] ?? 0) / 255]).filter(([, share]) => share > 0);
    fill(this.readout, h("b", {}, this.lanes[lane]?.name ?? ""), `: ${shares.map(([what, share]) => `${what} ${percent(share)}`).join(", ") || "idle"}`);
    this.plot.tip(this.readout.textContent ?? "");
  }

  /** Shows what the operation under the mouse waited for. */
  private async ask(): Promise<void> {
    const { chosen, found } = this;
    const row = found?.at.row?.[chosen];
    if (row === undefined) return;
    const told = await ask("operation", { key: this.key, run: this.name, row }).catch(() => null);
    if (!told || this.chosen !== chosen || this.found !== found) return;
    const few = (all: Plain[]) => all.slice(0, 3).map(whom).join("; ") + (all.length > 3 ? `; and ${all.length - 3} more` : "");
    if (told.waited_for.length) this.readout.append(` — for ${few(told.waited_for)}`);
    if (told.channel_waited_ns) this.readout.append(` — and ${duration(told.channel_waited_ns)} for the channel: ${few(told.channel_waited_for)}`);
    this.readout.append(".");
    this.plot.tip(this.readout.textContent ?? "");
    this.readout.dataset.told = String(row);
  }

  private click(x: number, y: number): void {
    const io = this.found?.at.io?.[this.at(x, y)];
    if (io !== undefined && io >= 0) this.select(io);
  }

  private save(): void {
    const { found } = this;
    if (!found) return;
    const { whats } = found as Plain;
    if (found.at.row) {
      const codes = ["row", "die", "io", "job", "block"];
      const times = ["asked", "begin", "cells_from", "cells_until", "sent", "sent_until", "end"];
      saveCsv(`${this.name}-operations`, ["operation", ...codes, ...times.map((each) => `${each}_ns`)],
        Array.from(found.at.row, (_, i) => [whats[found.at.what![i]!], ...[...codes, ...times].map((each) => found.at[each]![i])]));
      return;
    }
    const { columns } = found as Plain;
    const { low, high } = this.stretch();
    const rows = this.lanes.flatMap((lane, place) => (whats as string[]).flatMap((what, i) => Array.from({ length: columns }, (_, column): [string, string, number, number] => [lane.name, what, low + ((high - low) * column) / columns, found.at.shares![(place * whats.length + i) * columns + column]! / 255]).filter(([, , , share]) => share > 0)));
    saveCsv(`${this.name}-shares`, ["lane", "operation", "from_ns", "share"], rows);
  }

  remove(): void {
    this.asking.abort();
    this.plot.remove();
  }
}

/** Position of the line of a wait, below a row: its top and its height. */
function track(top: number, tall: number, kind: number): [number, number] {
  return [top + tall * (1.03 + 0.08 * kind), Math.max(tall * 0.07, 1)];
}

// Gantt chart of the channels and dies in the visible range: a row each, a bar per operation, and
// the waits. For a long range, the share of time of each kind of operation.

import { fetchJson, fetchArrays, Latest, type Picture, type Plain } from "./api";
import { color, fill, h, debounce } from "./dom";
import { activity, operation as hue, type Axis } from "./paint";
import type { Pen } from "./pen";
import { Plot, type Plane, type Range } from "./plot";
import { saveCsv } from "./save";
import { count, duration, linearTicks, percent, tickOf } from "./format";

interface Lane { name: string; channel: number; die: number }

// Waits are lines below the row of the die, each in a track of its own: by `uflip.results.device_log.WAITS`, after those
// for the die itself.
const WAITS: [string, string][] = [["waits for the die", "die_wait_ns"], ["waits for a free page", "free_page_wait_ns"], ["waits for the write cache", "cache_wait_ns"]];

/** A selected I/O: its start and end, and its flash operations. */
export interface Marked { io: number; from: number; until: number; rows: number[] }

/** An operation as text. */
export function operationText(each: Plain): string {
  const owner = [each.io === undefined ? "" : `I/O ${count(each.io)}`, each.job === undefined ? "" : `${each.made}${each.block === undefined ? "" : ` of block ${count(each.block)}`}${each.valid === undefined ? "" : ` with ${count(each.valid)} valid pages`}`];
  return `${each.count > 1 ? `${count(each.count)} × ` : ""}${each.what} on die ${each.dies?.length > 1 ? each.dies.join(", ") : each.die}${owner.some(Boolean) ? ` (${owner.filter(Boolean).join(", ")})` : ""}, ${duration(each.ns)}`;
}

export class Gantt {
  readonly node: HTMLDetailsElement;
  private readonly plot: Plot;
  private readonly legend = h("ul", { class: "legend" });
  private readonly status = h("p", { class: "quiet" });
  private readonly readout = h("p", { class: "readout", "aria-live": "polite" });
  private data: Picture | null = null;
  private readonly pending = new Latest();
  private hovered = -1;
  private visible: (Range & { axis: Axis }) | null = null;
  private requested = "";
  private marked: Marked | null = null;
  private readonly requestWaits: () => void;

  constructor(private readonly key: string, private readonly name: string, private readonly select: (io: number) => void, chosen: (range: Range) => void) {
    const view = this;
    this.plot = new Plot({
      title: `Dies and channels: ${name}`, name: `${name}-dies`, height: 420,
      x: { get range() { return view.visibleRange(); }, label: "since the first I/O was submitted", ticks: linearTicks, tick: (low, high) => tickOf("time", low, high) },
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
    this.node = h("details", { class: "panel gantt", open: true, ontoggle: () => this.refresh() }, h("summary", {}, h("h2", {}, "Dies and channels")),
      h("p", { class: "quiet" }, "Full colour: the cells work. Pale: the die waits for the channel, or transfers. A line below a row: the host waits for the die, for a free page of it, or for the page that it programs to leave the write cache. The selected I/O is shaded, and its flash operations are framed. Drag to zoom; click an operation for its I/O."),
      this.legend, this.plot.node, this.readout, this.status, this.plot.saving([["CSV", () => this.save()]]));
    this.requestWaits = debounce(60, () => void this.showWaits());
  }

  private get lanes(): Lane[] {
    return ((this.data as Plain)?.lanes as Lane[]) ?? [];
  }

  private visibleRange(): Range {
    const { from_ns: low = 0, until_ns: high = 1 } = (this.data as Plain) ?? {};
    return { low, high: Math.max(high, low + 1) };
  }

  /** Follows the visible range. */
  follow(visible: Range, axis: Axis): void {
    this.visible = { ...visible, axis };
    this.refresh();
  }

  private refresh(): void {
    const { visible } = this;
    if (!visible || !this.node.open) return;
    const requested = `${visible.axis} ${visible.low} ${visible.high}`;
    if (requested !== this.requested) void this.request(visible);
    this.requested = requested;
  }

  private async request(visible: Range & { axis: Axis }): Promise<void> {
    const columns = Math.max(Math.floor(this.plot.over.clientWidth), 100);
    const data = await fetchArrays("gantt", { key: this.key, run: this.name, axis: visible.axis, from: visible.low, to: visible.high, columns }, this.pending.begin()).catch(() => null);
    if (!data) return;
    this.node.hidden = (data as Plain).kind === "nothing"; // of a run without this log
    if (this.node.hidden) return;
    this.data = data;
    this.hovered = -1;
    const { operations, kept, recorded, gaps, whats } = data as Plain;
    const present = new Set<number>();
    if (data.kind === ("operations" as Picture["kind"])) for (const what of data.at.what!) present.add(what);
    else {
      const { shares } = data.at;
      const wide = (data as Plain).columns as number;
      for (let i = 0; i < shares!.length; i++) if (shares![i]) present.add(Math.floor(i / wide) % whats.length);
    }
    fill(this.legend, [...present].sort((a, b) => a - b).map((what) => h("li", { vars: { "--hue": hue(what) } }, whats[what])),
      this.waits().map((kind) => h("li", { class: "stroke", vars: { "--hue": activity(WAITS[kind]![1]) } }, WAITS[kind]![0])));
    fill(this.status, `${count(operations)} flash operations in this time range`, data.at.shares ? ", drawn as shares of time: zoom in to see each of them." : ".",
      kept < recorded ? ` Of ${count(recorded)} in this run ${count(kept)} were stored, around its slowest I/Os; ${gaps.length ? "the shaded parts of this time range were not stored." : "this time range is complete."}` : "");
    fill(this.readout, "Hover over an operation to see its I/O and its waits.");
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
    const { at } = this.data!;
    if (!at.row) return [];
    const kinds = new Set(Array.from(at.wait_kind!, (kind) => kind + 1));
    if (at.row.some((_, i) => this.waitsForDie(at, i))) kinds.add(0);
    return [...kinds].sort();
  }

  private waitsForDie(at: Picture["at"], i: number): boolean {
    const ofHost = at.io![i]! >= 0 || (this.data as Plain).whats[at.what![i]!].startsWith("host ");
    return ofHost && at.begin![i]! > at.asked![i]!;
  }

  private row(plane: Plane, lane: number): [number, number] {
    const [top, bottom] = [plane.y(-lane + 0.42), plane.y(-lane - 0.36)];
    return [top, bottom - top];
  }

  private paint(pen: Pen, plane: Plane): void {
    const { data } = this;
    if (!data) return;
    this.lanes.forEach((lane, i) => {
      if (lane.die < 0) pen.rect(plane.left, plane.y(-i + 0.5), plane.width, plane.y(-i - 0.5) - plane.y(-i + 0.5), color("shade"));
    });
    for (const [from, until] of (data as Plain).gaps as [number, number][]) pen.rect(plane.x(from), plane.top, Math.max(plane.x(until) - plane.x(from), 1), plane.height, color("startup"));
    if (data.at.shares) this.paintShares(pen, plane, data);
    else this.paintOperations(pen, plane, data);
    if (this.marked) this.paintMarked(pen, plane, data.at, this.marked);
  }

  /** The selected I/O: a band over all rows; its operations are framed, its waits are thick. */
  private paintMarked(pen: Pen, plane: Plane, at: Picture["at"], { io, from, until, rows }: Marked): void {
    const within = (value: number) => Math.min(Math.max(plane.x(value), plane.left), plane.left + plane.width);
    const [left, right] = [within(from), within(until)];
    pen.rect(left, plane.top, Math.max(right - left, 1), plane.height, color("accent"), 0.13);
    for (const x of [from, until]) if (within(x) === plane.x(x)) pen.line([[plane.x(x), plane.top], [plane.x(x), plane.top + plane.height]], color("accent"), 1, [3, 3]);
    if (!at.row) return;
    const [laneOf, own] = [this.lanesByDie(), new Set(rows)];
    at.row.forEach((row, i) => {
      const lane = laneOf.get(at.die![i]!);
      if (lane === undefined || !own.has(row)) return;
      const [top, tall] = this.row(plane, lane);
      const [begin, end] = [within(at.begin![i]!), within(at.end![i]!)];
      pen.line([[begin, top], [end, top], [end, top + tall], [begin, top + tall], [begin, top]], color("accent"), 2);
    });
    at.wait_io!.forEach((waits, i) => {
      const lane = laneOf.get(at.wait_die![i]!);
      if (lane === undefined || waits !== io) return;
      const [top, tall] = this.row(plane, lane);
      pen.line([[within(at.wait_begin![i]!), top + tall * 1.12], [within(at.wait_end![i]!), top + tall * 1.12]], activity(WAITS[at.wait_kind![i]! + 1]![1]), 3.5);
    });
  }

  private paintShares(pen: Pen, plane: Plane, data: Picture): void {
    const { shares } = data.at;
    const { columns, whats } = data as Plain;
    const { low, high } = this.visibleRange();
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

  private paintOperations(pen: Pen, plane: Plane, data: Picture): void {
    const { at } = data;
    const laneOf = this.lanesByDie();
    const wide = (from: number, until: number, top: number, tall: number, tone: string, alpha = 1, least = 0.7) => {
      const [left, right] = [Math.max(plane.x(from), plane.left), Math.min(plane.x(until), plane.left + plane.width)];
      if (right >= left) pen.rect(left, top, Math.max(right - left, least), tall, tone, alpha);
    };
    for (let i = 0; i < at.row!.length; i++) {
      const die = laneOf.get(at.die![i]!);
      if (die === undefined) continue;
      const tone = hue(at.what![i]!);
      const [top, tall] = this.row(plane, die);
      wide(at.begin![i]!, at.end![i]!, top, tall, tone, 0.35);
      wide(at.cells_from![i]!, at.cells_until![i]!, top, tall, tone);
      if (this.waitsForDie(at, i)) wide(at.asked![i]!, at.begin![i]!, ...track(top, tall, 0), activity(WAITS[0]![1]));
      if (at.sent_until![i]! > at.sent![i]!) {
        const [top, tall] = this.row(plane, laneOf.get(-1 - this.channelOf(at.die![i]!))!);
        wide(at.sent![i]!, at.sent_until![i]!, top, tall, tone);
      }
    }
    for (let i = 0; i < at.wait_kind!.length; i++) {
      const lane = laneOf.get(at.wait_die![i]!);
      if (lane === undefined) continue;
      const [top, tall] = this.row(plane, lane);
      const kind = at.wait_kind![i]! + 1;
      wide(at.wait_begin![i]!, at.wait_end![i]!, ...track(top, tall, kind), activity(WAITS[kind]![1]));
    }
    if (this.hovered >= 0) this.paintHovered(pen, plane, at, laneOf);
  }

  /** The operation under the mouse: framed, with its wait. */
  private paintHovered(pen: Pen, plane: Plane, at: Picture["at"], laneOf: Map<number, number>): void {
    const i = this.hovered;
    const [top, tall] = this.row(plane, laneOf.get(at.die![i]!)!);
    const [left, right, asked] = [plane.x(at.begin![i]!), plane.x(at.end![i]!), plane.x(at.asked![i]!)];
    pen.line([[left, top], [right, top], [right, top + tall], [left, top + tall], [left, top]], color("ink"), 1.6);
    if (left > asked) pen.line([[asked, top], [asked, top + tall], [left, top + tall]], activity(WAITS[0]![1]), 2.5);
  }

  private lanesByDie(): Map<number, number> {
    return new Map(this.lanes.map((lane, i) => [lane.die < 0 ? -1 - lane.channel : lane.die, i]));
  }

  private channelOf(die: number): number {
    return this.lanes.find((lane) => lane.die === die)!.channel;
  }

  private at(x: number | null, y: number): number {
    const { data } = this;
    const lane = this.lanes[Math.round(-y)];
    if (x === null || !data?.at.row || !lane) return -1;
    const { at } = data;
    const { low, high } = this.visibleRange();
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
    const { data } = this;
    if (data?.at.shares && x !== null) return this.hoverShares(data, x, y);
    const i = this.at(x, y);
    if (i === this.hovered) {
      this.plot.tip(i < 0 ? "" : this.readout.textContent ?? ""); // it follows the pointer
      return;
    }
    this.hovered = i;
    this.plot.draw();
    this.plot.over.style.cursor = i >= 0 ? "pointer" : "crosshair";
    if (i < 0 || !data) {
      this.plot.tip("");
      return fill(this.readout, "");
    }
    const { at } = data;
    const what = (data as Plain).whats[at.what![i]!];
    const owner = [at.io![i]! >= 0 ? `I/O ${count(at.io![i]!)}` : "", at.job![i]! >= 0 && at.block![i]! >= 0 ? `${(data as Plain).jobs[at.made![i]!]} of block ${count(at.block![i]!)}` : ""].filter(Boolean).join(", ");
    fill(this.readout, h("b", {}, what), owner ? ` for ${owner}` : "", `: ${this.lanes.find((lane) => lane.die === at.die![i])!.name}, ${duration(at.end![i]! - at.begin![i]!)} from ${duration(at.begin![i]!)} on`,
      at.begin![i]! > at.asked![i]! ? `; waited ${duration(at.begin![i]! - at.asked![i]!)} for the die` : "; did not wait for the die");
    this.plot.tip(this.readout.textContent ?? "");
    this.requestWaits();
  }

  private hoverShares(data: Picture, x: number, y: number): void {
    const lane = Math.round(-y);
    const { columns, whats } = data as Plain;
    const { low, high } = this.visibleRange();
    const column = Math.floor(((x - low) / (high - low)) * columns);
    const shares = (whats as string[]).map((what, i): [string, number] => [what, (data.at.shares![(lane * whats.length + i) * columns + column] ?? 0) / 255]).filter(([, share]) => share > 0);
    fill(this.readout, h("b", {}, this.lanes[lane]?.name ?? ""), `: ${shares.map(([what, share]) => `${what} ${percent(share)}`).join(", ") || "idle"}`);
    this.plot.tip(this.readout.textContent ?? "");
  }

  /** Shows what the operation under the mouse waited for. */
  private async showWaits(): Promise<void> {
    const { hovered, data } = this;
    const row = data?.at.row?.[hovered];
    if (row === undefined) return;
    const operation = await fetchJson("operation", { key: this.key, run: this.name, row }).catch(() => null);
    if (!operation || this.hovered !== hovered || this.data !== data) return;
    const few = (all: Plain[]) => all.slice(0, 3).map(operationText).join("; ") + (all.length > 3 ? `; and ${all.length - 3} more` : "");
    if (operation.waited_for.length) this.readout.append(` — for ${few(operation.waited_for)}`);
    if (operation.channel_waited_ns) this.readout.append(` — and ${duration(operation.channel_waited_ns)} for the channel: ${few(operation.channel_waited_for)}`);
    this.readout.append(".");
    this.plot.tip(this.readout.textContent ?? "");
    this.readout.dataset.row = String(row);
  }

  private click(x: number, y: number): void {
    const io = this.data?.at.io?.[this.at(x, y)];
    if (io !== undefined && io >= 0) this.select(io);
  }

  private save(): void {
    const { data } = this;
    if (!data) return;
    const { whats } = data as Plain;
    if (data.at.row) {
      const codes = ["row", "die", "io", "job", "block"];
      const times = ["asked", "begin", "cells_from", "cells_until", "sent", "sent_until", "end"];
      saveCsv(`${this.name}-operations`, ["operation", ...codes, ...times.map((each) => `${each}_ns`)],
        Array.from(data.at.row, (_, i) => [whats[data.at.what![i]!], ...[...codes, ...times].map((each) => data.at[each]![i])]));
      return;
    }
    const { columns } = data as Plain;
    const { low, high } = this.visibleRange();
    const rows = this.lanes.flatMap((lane, index) => (whats as string[]).flatMap((what, i) => Array.from({ length: columns }, (_, column): [string, string, number, number] => [lane.name, what, low + ((high - low) * column) / columns, data.at.shares![(index * whats.length + i) * columns + column]! / 255]).filter(([, , , share]) => share > 0)));
    saveCsv(`${this.name}-shares`, ["lane", "operation", "from_ns", "share"], rows);
  }

  remove(): void {
    this.pending.cancel();
    this.plot.remove();
  }
}

/** Position of the line of a wait, below a row: its top and its height. */
function track(top: number, tall: number, kind: number): [number, number] {
  return [top + tall * (1.03 + 0.08 * kind), Math.max(tall * 0.07, 1)];
}

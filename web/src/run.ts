// A run: every I/O, from the whole down to single ones; the visible range is in the
// URL. Other panels follow it: the distribution of response times, and the slowest I/Os.

import type { Io, ResultView, RunView as RunNumbers } from "./api_types";
import { fetchJson, fetchPicture, Latest, type Picture } from "./api";
import * as addresses from "./addresses";
import * as card from "./card";
import { Causes } from "./causes";
import { color, facts, fill, h, debounce, table, type Child } from "./dom";
import { Gantt } from "./gantt";
import { COLOURS, coloured, ends, paint, type Axis, type Colour } from "./paint";
import { Inside } from "./inside";
import { link, onLeave, updateQuery, type Route } from "./route";
import { onTouch, Plot, type Plane, type Range } from "./plot";
import { Remedy } from "./remedy";
import { provenance, rail, warningNotice } from "./result";
import { saveCsv } from "./save";
import * as slow from "./slow";
import * as spread from "./distribution";
import { bytes, count, duration, linearTicks, logTicks, modeName, tickOf, tickDuration } from "./format";

const HUES: Record<string, string> = { SR: "sr", RR: "rr", SW: "sw", RW: "rw" };
const LEAST: Record<Axis, number> = { number: 8, time: 1000 };
const ZOOM = 1.25;

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const [key = "", name = ""] = route.parts;
  const stop = new AbortController();
  onLeave(() => stop.abort());
  const run = await fetchJson("run", { key, run: name }, stop.signal);
  const view = new RunView(key, name, run, route);
  onLeave(() => view.remove());
  view.mount(main);
  await view.load();
  void fetchJson("result", { key }, stop.signal).then((result) => view.complete(result)).catch(() => undefined);
}

class RunView {
  axis: Axis;
  by: Colour;
  range: Range | null = null;
  picture: Picture | null = null;
  selected: Io | null = null;
  readonly rail = h("aside", { class: "runs", "aria-label": "Runs of this result" });
  /** Default colouring of dots. */
  private readonly defaultColour: Colour;
  private low: number;
  private high: number;
  private readonly plot: Plot;
  private readonly readout = h("p", { class: "readout", "aria-live": "polite" });
  private readonly legend = h("ul", { class: "legend" });
  private readonly status = h("div");
  private readonly side: spread.Spread;
  private readonly slowest: slow.Slowest;
  private readonly addressPanel: addresses.Addresses;
  private readonly inside: Inside | null;
  private readonly gantt: Gantt | null;
  private readonly causes: Causes | null;
  /** Warnings about this run, below its key figures. */
  private readonly warnings = h("div");
  private readonly card = h("section", { class: "card", hidden: true, "aria-label": "One I/O" });
  private stepping = false; // through the list of the slowest I/Os, which stays until the user moves the view
  private readonly pending = new Latest();
  private readonly selecting = new Latest();
  private colourOf: (i: number) => string = () => color("ink");
  private readonly settled: () => void;

  constructor(private readonly key: string, private readonly name: string, private readonly run: RunNumbers, route: Route) {
    const { query } = route;
    this.axis = query.axis === "time" ? "time" : "number";
    this.defaultColour = run.simulated && run.causes.length ? "cause" : "pattern";
    this.by = COLOURS.find((each) => each === query.colour) ?? this.defaultColour;
    if (Number(query.to) > Number(query.from)) this.range = { low: Number(query.from), high: Number(query.to) };
    const statistics = run.statistics;
    this.low = (statistics?.min_ns || 1000) / 1.5;
    this.high = (statistics?.max_ns || 1e6) * 1.5;
    this.side = new spread.Spread(run);
    this.slowest = new slow.Slowest(key, name, (io) => void this.visit(io, true));
    this.addressPanel = new addresses.Addresses(key, name, (io) => void this.select(io));
    this.inside = run.has_inside ? new Inside(key, name) : null;
    this.gantt = run.has_inside ? new Gantt(key, name, (io) => void this.select(io), (range) => this.showTime(range)) : null;
    this.causes = run.causes.length ? new Causes(key, name) : null;
    const view = this;
    this.plot = new Plot({
      title: `${run.device}: ${run.id}`, name: run.id, height: 420,
      x: {
        get range() { return view.visible(); },
        get label() { return view.axis === "number" ? "number of the I/O" : "submitted, since the first"; },
        ticks: (low, high, about) => linearTicks(low, high, about).filter((each) => view.axis === "time" || Number.isInteger(each)),
        tick: (low, high) => tickOf(view.axis, low, high),
      },
      y: { get range() { return { low: view.low, high: view.high }; }, log: true, label: "response time", ticks: logTicks, tick: () => tickDuration },
      paint: (pen, plane) => {
        const { picture } = this;
        if (!picture) return;
        const repetition = run.repetitions[0];
        const at = this.selected;
        paint(pen, plane, picture, this.axis, {
          startup: run.io_ignore, period: repetition?.period_ios ?? 0, hue: this.hue(),
          selected: at ? { x: this.position(at), y: at.response_time_ns! } : null,
        }, run.edges_ns, this.colourOf);
      },
      chosen: (range) => this.setRange(range),
      at: (x, y, plane) => this.hover(x, y, plane),
      clicked: (x, y, plane) => void this.click(x, y, plane),
    });
    this.settled = debounce(250, () => {
      const { low, high } = this.visible();
      updateQuery({ from: this.range ? Math.round(low) : null, to: this.range ? Math.round(high) : null });
      if (this.picture && !this.stepping) this.slowest.follow(this.picture);
      if (this.picture?.complete) this.causes?.follow(this.picture);
      if (this.picture) this.addressPanel.follow(this.picture);
      this.gantt?.follow(this.visible(), this.axis);
      this.inside?.follow(this.visible(), this.axis);
    });
    if (query.io) void this.select(Number(query.io));
  }

  /** Adds what is known about the whole result: other runs, warnings, origin. */
  complete(result: ResultView): void {
    const single = result.runs.length === 1;
    fill(this.rail, single ? [h("h2", {}, "Origin"), provenance(result)] : [h("h2", {}, "Runs of this result"), rail(this.key, result.runs, this.name)]);
    fill(this.warnings, warningNotice(this.key, result.warnings.filter((each) => single || each.runs.includes(this.name)), "this run"));
  }

  private hue(): string {
    return color(HUES[this.run.pattern] ?? "rr");
  }

  /** Position of an I/O on the axis. */
  private position(io: Io): number {
    return this.axis === "number" ? io.number : io.submit_ns! - io.begin_ns;
  }

  /** End of the axis. */
  private fullRange(): Range {
    const most = this.axis === "number" ? this.run.io_count : this.picture?.last_ns ?? this.run.elapsed_ns;
    return { low: 0, high: Math.max(most, 1) };
  }

  private visible(): Range {
    return this.range ?? this.fullRange();
  }

  mount(main: HTMLElement): void {
    const { run, key } = this;
    const axis = (name: Axis, words: string) => h("label", {}, h("input", { type: "radio", name: "axis", value: name, checked: this.axis === name, onchange: () => {
      this.axis = name;
      this.range = null;
      this.stepping = false;
      updateQuery({ axis: name === "number" ? null : name, from: null, to: null });
      void this.load();
    } }), ` ${words}`);
    const by = h("select", { onchange: () => {
      this.by = by.value as Colour;
      updateQuery({ colour: this.by === this.defaultColour ? null : this.by });
      this.draw();
    } }, COLOURS.filter((each) => (each !== "cause" || run.causes.length) && (each !== "partition" || run.spec.partitions > 1)).map((each) => h("option", { value: each }, each)));
    by.value = this.by;
    const button = (words: string, title: string, call: () => void) => h("button", { type: "button", title, "aria-label": title, onclick: call }, words);
    this.plot.over.parentElement!.classList.add("every");
    const pad = h("div", { class: "pad", tabindex: 0, role: "application", "aria-label": `Response times of ${run.id}. Arrow keys move, plus and minus zoom, 0 shows the whole run, Enter selects the slowest visible I/O, N and P go from one slow I/O to the next.`, onkeydown: (event: KeyboardEvent) => this.press(event) }, this.plot.node);
    this.plot.over.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? ZOOM : 1 / ZOOM, this.plot.valueAt(event.clientX));
    }, { passive: false });
    onTouch(this.plot.over, { zoom: (factor, clientX) => this.zoom(factor, this.plot.valueAt(clientX)), pan: (share) => this.pan(share) });
    fill(main,
      h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("a", { href: link("result", [key]) }, run.result), " › ", h("span", { "aria-current": "page" }, run.id)),
      h("h1", {}, `${run.pattern} `, h("span", { class: "thin" }, [run.words, run.varies].filter(Boolean).join(", "))),
      h("p", { class: "quiet" }, run.title, " · ", run.device, run.simulated ? h("span", { class: "badge" }, "simulated") : null, run.previous || run.next ? " · " : null,
        run.previous ? h("a", { href: link("run", [key, run.previous]) }, "previous run") : null, run.previous && run.next ? " " : null, run.next ? h("a", { href: link("run", [key, run.next]) }, "next run") : null),
      this.about(),
      this.warnings,
      h("div", { class: "split" }, h("div", {},
        h("div", { class: "bar" },
          h("fieldset", {}, h("legend", { class: "unseen" }, "Over"), axis("number", "over number"), axis("time", "over time")),
          h("label", {}, "colour by ", by),
          h("span", { class: "buttons" }, button("◀", "Move left", () => this.pan(-0.5)), button("▶", "Move right", () => this.pan(0.5)), button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)), button("Whole run", "Whole run", () => this.setRange(null))),
          this.plot.saving([["CSV", () => this.saveCsv()]])),
        this.legend, pad, this.readout, this.status, this.card,
        this.causes?.node, this.gantt?.node, this.side.node, this.slowest.node, this.addressPanel.node, this.inside?.node),
      this.rail));
  }

  private about(): HTMLElement {
    const numbers = this.numbers();
    const modes = Object.entries(this.run.by_mode);
    if (!modes.length) return numbers;
    return h("div", {}, numbers, table(["", "I/Os", "size", "IOPS", "throughput", "mean", "p50", "p99", "max"],
      modes.map(([mode, of]): Child[] => [mode, count(of.statistics?.count ?? 0), bytes(of.bytes),
        of.ios_per_s === null ? "–" : count(of.ios_per_s), of.bytes_per_s === null ? "–" : `${bytes(of.bytes_per_s)}/s`,
        ...(["mean_ns", "p50_ns", "p99_ns", "max_ns"] as const).map((name) => duration(of.statistics?.[name]))]),
      "Reads, writes and other modes, without the start-up", 1));
  }

  private numbers(): HTMLElement {
    const { run } = this;
    const [repetition] = run.repetitions;
    const statistics = run.statistics;
    return facts([
      ["I/Os", count(run.io_count)], ["start-up I/Os", run.io_ignore ? count(run.io_ignore) : "none"],
      ["mean", statistics ? h("b", {}, duration(statistics.mean_ns), repetition?.half_width_ns ? ` ± ${duration(repetition.half_width_ns)}` : "") : "–"],
      ["p50", duration(statistics?.p50_ns)], ["p99", duration(statistics?.p99_ns)], ["max", duration(statistics?.max_ns)],
      ["period", (repetition?.period_ios ?? 0) > 1 ? `${repetition!.period_ios} I/Os` : ""], ["converged", repetition?.converged === null || repetition?.converged === undefined ? "" : repetition.converged ? "yes" : "no"],
      ["duration", duration(run.elapsed_ns)], ["write amplification", run.write_amplification ? run.write_amplification.toFixed(2) : ""],
      ...run.drive.map(({ label, text }): [string, string] => [label, text]),
    ]);
  }

  private setRange(range: Range | null, stepping = false): void {
    this.stepping = stepping;
    const whole = this.fullRange();
    if (range) {
      const span = Math.min(Math.max(range.high - range.low, LEAST[this.axis]), whole.high - whole.low);
      const low = Math.min(Math.max((range.low + range.high - span) / 2, whole.low), whole.high - span);
      range = span >= (whole.high - whole.low) * 0.9999 ? null : { low, high: low + span };
    }
    this.range = range;
    void this.load(); // request, and meanwhile
    this.plot.draw(); // draw the available data at once
  }

  /** Shows a range of time. */
  private showTime(range: Range): void {
    if (this.axis === "number") {
      this.axis = "time";
      updateQuery({ axis: "time" });
      for (const each of document.querySelectorAll<HTMLInputElement>('input[name="axis"]')) each.checked = each.value === "time";
    }
    this.setRange(range);
  }

  /** Zooms about the pointer, or the selected I/O if it is visible, else about the middle. */
  private zoom(factor: number, about?: number): void {
    const { low, high } = this.visible();
    const at = this.selected ? this.position(this.selected) : NaN;
    const middle = about ?? (at >= low && at <= high ? at : (low + high) / 2);
    this.setRange({ low: middle - (middle - low) * factor, high: middle + (high - middle) * factor });
  }

  private pan(share: number): void {
    const { low, high } = this.visible();
    const by = (high - low) * share;
    const whole = this.fullRange();
    const shift = Math.min(Math.max(by, whole.low - low), whole.high - high);
    this.setRange({ low: low + shift, high: high + shift });
  }

  private press(event: KeyboardEvent): void {
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      "0": () => this.setRange(null), Home: () => this.setRange(null), Enter: () => void this.selectSlowest(), n: () => this.slowest.step(1), p: () => this.slowest.step(-1),
    };
    const call = actions[event.key];
    if (!call || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    call();
  }

  /** Requests the visible range, and draws it. */
  async load(): Promise<void> {
    const signal = this.pending.begin();
    const { low, high } = this.visible();
    const columns = Math.max(Math.floor(this.plot.over.clientWidth * Math.min(devicePixelRatio, 2)), 100);
    try {
      const picture = await fetchPicture({ key: this.key, run: this.name, axis: this.axis, from: low, to: high, columns }, signal);
      this.picture = picture;
      this.draw();
      if (!picture.complete) setTimeout(() => signal.aborted || void this.load(), 120);
    } catch (error) {
      if ((error as Error).name !== "AbortError") throw error;
    }
  }

  private draw(): void {
    const { picture } = this;
    if (!picture) return;
    const { window: statistics } = picture;
    if (statistics.min_ns) this.low = Math.min(this.low, statistics.min_ns / 1.5);
    if (statistics.max_ns) this.high = Math.max(this.high, statistics.max_ns * 1.5);
    const { of, keys } = coloured(picture, this.by, this.hue(), bytes, this.run.spec);
    this.colourOf = of;
    fill(this.legend, picture.kind === "ios"
      ? [h("li", this.by === "pattern" ? { vars: { "--hue": this.hue() } } : { class: "plain" }, "a dot is an I/O"), ...keys.map((each) => h("li", { vars: { "--hue": each.color } }, each.words))]
      : h("li", { vars: { "--hue": this.hue() } }, `a column is ${columnWords(picture)}: darker where there are more (logarithmic), minimum and maximum exact${this.by === "pattern" ? "" : "; colours are those of single I/Os: zoom in"}`),
      picture.at.average_ns ? h("li", { class: "stroke" }, "running mean", this.run.io_ignore ? " without the start-up" : "") : null,
      picture.at.average_with_ns ? h("li", { class: "stroke dashed" }, "with it") : null,
      this.run.io_ignore ? h("li", { vars: { "--hue": "var(--startup-mark)" } }, "start-up") : null);
    this.plot.draw();
    const percentile = (words: string, ns: number | null | undefined) => (ns ? `${words} ${duration(ns)}` : "");
    fill(this.status, h("p", { class: "quiet", role: "status" }, [
      `${count(statistics.count)} I/Os in view`, statistics.count ? `min ${duration(statistics.min_ns)}` : "", statistics.count ? `mean ${duration(statistics.mean_ns)}` : "", percentile("p50", statistics.p50_ns), percentile("p99", statistics.p99_ns), percentile("p99.9", statistics.p99_9_ns), statistics.count ? `max ${duration(statistics.max_ns)}` : "",
      picture.complete ? "" : "reading the I/Os …"].filter(Boolean).join(" · ")));
    this.side.draw(picture);
    this.plot.node.dataset.drawn = String(Number(this.plot.node.dataset.drawn ?? 0) + 1);
    this.plot.node.dataset.complete = String(picture.complete);
    this.settled();
  }

  private nearest(x: number, y: number, plane: Plane): number | null {
    const { picture } = this;
    if (!picture) return null;
    const { from, to } = ends(picture, this.axis);
    if (picture.kind === "rows") {
      for (let i = 0; i < picture.rows; i++) if (x >= from[i]! && x < Math.max(to[i]!, from[i]! + 1)) return i;
      return null;
    }
    const times = picture.at.response_time_ns!;
    const [px, py] = [plane.x(x), plane.y(y)];
    let best: number | null = null;
    let least = 18;
    for (let i = 0; i < picture.rows; i++) {
      const far = Math.hypot(plane.x(from[i]!) - px, plane.y(times[i]!) - py);
      if (far < least) [least, best] = [far, i];
    }
    return best;
  }

  private hover(x: number | null, y: number, plane: Plane): void {
    const { picture } = this;
    const i = x === null || !picture ? null : this.nearest(x, y, plane);
    this.plot.over.style.cursor = i === null ? "crosshair" : "pointer";
    if (i === null || !picture) {
      fill(this.readout, `Wheel zooms, drag selects, click an I/O for its ${this.run.causes.length ? "causes" : "details"}.`);
      this.plot.tip("");
      return;
    }
    const { at } = picture;
    if (picture.kind === "rows") {
      const which = at.start ? `I/Os ${count(at.start[i]!)} to ${count(at.stop![i]! - 1)}` : `submitted from ${duration(at.first_ns![i]!)} on`;
      fill(this.readout, h("b", {}, which), `: min ${duration(at.min_ns![i]!)}, mean ${duration(at.mean_ns![i]!)}, max ${duration(at.max_ns![i]!)}`);
      this.plot.tip(this.readout.textContent ?? "");
      return;
    }
    const words = [
      `${duration(at.response_time_ns![i]!)}`, at.mode ? modeName(at.mode[i]!) : "", at.io_size_bytes ? bytes(at.io_size_bytes[i]!) : "", at.offset_bytes ? `at ${bytes(at.offset_bytes[i]!)}` : "",
      `submitted at ${duration(at.submit_ns![i]!)}`, at.cause ? `main cause ${picture.causes?.[at.cause[i]!] ?? ""}` : "", at.ignored?.[i] ? "start-up" : "",
    ];
    fill(this.readout, h("b", {}, `I/O ${count(at.number![i]!)}`), `: ${words.filter(Boolean).join(", ")}`);
    this.plot.tip(this.readout.textContent ?? "");
  }

  private async click(x: number, y: number, plane: Plane): Promise<void> {
    const { picture } = this;
    const i = this.nearest(x, y, plane);
    if (i === null || !picture) return;
    if (picture.kind === "ios") await this.select(picture.at.number![i]!);
    else if (picture.at.start) await this.selectSlowest(picture.at.start[i]!, picture.at.stop![i]!);
  }

  private async selectSlowest(from?: number, to?: number): Promise<void> {
    const { picture } = this;
    if (!picture) return;
    const signal = this.selecting.begin();
    const slowest = await fetchJson("slowest", { key: this.key, run: this.name, from: from ?? picture.start, to: to ?? picture.stop, few: 1 }, signal).catch(() => null);
    if (slowest?.ios[0] && !signal.aborted) await this.select(slowest.ios[0].number);
  }

  async select(number: number): Promise<void> {
    const exists = Number.isInteger(number) && number >= 0 && number < this.run.io_count;
    if (exists) this.slowest.choose(number); // before the data arrives, since keys may be faster
    const signal = this.selecting.begin();
    const io = exists ? await fetchJson("io", { key: this.key, run: this.name, number }, signal).catch(() => null) : null;
    if (signal.aborted) return; // by a later selection
    this.selected = io;
    updateQuery({ io: this.selected ? number : null });
    this.card.hidden = exists && !this.selected;
    if (!exists) fill(this.card, h("p", { role: "alert" }, `The run has no I/O of this number: its numbers are 0 to ${count(this.run.io_count - 1)}.`));
    if (this.selected) card.draw(this.card, this.selected, this.remedy(number), () => void this.visit(number), () => {
      this.selected = null;
      this.card.hidden = true;
      updateQuery({ io: null });
      this.drawSelected();
    });
    this.drawSelected();
  }

  /** Where the server runs simulations, what would have avoided an I/O of a simulated device. */
  private remedy(number: number): HTMLElement | null {
    const runs = (document.body.dataset.views ?? "").split(" ").includes("play");
    return runs && this.run.simulated && this.run.causes.length && this.run.spec ? new Remedy(this.key, this.name, number).node : null;
  }

  private drawSelected(): void {
    const at = this.selected;
    this.plot.draw();
    const from = at ? at.submit_ns! - at.begin_ns : 0;
    this.gantt?.mark(at ? { io: at.number, from, until: from + at.response_time_ns!, rows: at.flash?.rows ?? [] } : null);
  }

  /** Selects an I/O and shows it among its neighbours. */
  async visit(number: number, stepping = false): Promise<void> {
    await this.select(number);
    if (this.selected?.number !== number) return;
    this.plot.node.scrollIntoView({ block: "nearest" });
    this.plot.node.parentElement!.focus({ preventScroll: true }); // + and n act on the picture
    if (this.axis === "number") this.setRange({ low: number - 60, high: number + 60 }, stepping);
    else {
      const at = this.selected.submit_ns! - this.selected.begin_ns;
      const wide = Math.max(this.selected.response_time_ns! * 20, (this.run.elapsed_ns / this.run.io_count) * 60);
      this.setRange({ low: at - wide, high: at + wide }, stepping);
    }
  }

  private saveCsv(): void {
    const { picture } = this;
    if (!picture) return;
    const names = Object.keys(picture.at).filter((each) => each !== "spread" && picture.at[each]!.length === picture.rows);
    saveCsv(`${this.run.id}-${picture.start}-${picture.stop}`, names, Array.from({ length: picture.rows }, (_, i) => names.map((each) => picture.at[each]![i])));
  }

  remove(): void {
    this.pending.cancel();
    this.selecting.cancel();
    this.plot.remove();
    this.side.remove();
    this.addressPanel.remove();
    this.inside?.remove();
    this.gantt?.remove();
  }
}

function columnWords(picture: Picture): string {
  const { start, stop } = picture.at;
  if (!start || !stop || !picture.rows) return "some neighbouring I/Os";
  return `${count(stop[0]! - start[0]!)} I/Os`;
}

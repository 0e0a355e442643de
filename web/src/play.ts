// Play: change a simulated device in a form, run something on it at once, and compare the result with
// the one before. The form is stored in the URL; a link runs nothing.

import type { ExperimentPoint, Form, KeyRow, MicroBenchmarkView, PlayedRun, RunView } from "./api_types";
import { fetchJson, fetchPicture, Latest, postAction, type Picture } from "./api";
import { color, debounce, errorNotice, facts, fill, h, table, type Child } from "./dom";
import { link, onLeave, read, type Route } from "./route";
import { bytes, count, duration, linearTicks, logTicks, threeDigits, tickOf, withSpacing, tickDuration } from "./format";
import { paint } from "./paint";
import { Plot } from "./plot";
import { hue, HUES } from "./result";
import { tails } from "./distribution";

const KEY = "key.";
const OPTION = "p.";
const POLL_MS = 250;
const FIRST: Record<string, string> = { io_size: "4KiB", io_count: "4000", target_size: "" };
/** Tables that are open from the start: the most important ones. */
const OPEN_TABLES = ["ftl", "gc"];
const OPTION_WORDS: Record<string, string> = {
  io_size: "size of an I/O", io_count: "I/Os", io_ignore: "of these, start-up", target_size: "target size", io_shift: "shift", time: "consecutive, pause, burst", pause: "pause", burst: "I/Os a burst", parallel_degree: "processes", queue_depth: "queue depth of each", seed: "seed",
};

type Words = Record<string, string>;

interface Slider { key: string; title: string; steps: number[]; parse(text: string): number | undefined; words(value: number): string }

const plain = (text: string) => (Number.isFinite(Number(text)) ? Number(text) : undefined);
const SIZES: Record<string, number> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
function size(text: string): number | undefined {
  const [, number, unit] = /^([\d.,]+) ?([KMG]?i?B)?$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number.replaceAll(",", "")) * (SIZES[unit ?? "B"] ?? 1);
}
const SLIDERS: Slider[] = [
  { key: "spare_factor", title: "spare factor", steps: [0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5], parse: plain, words: (value) => `${threeDigits(value * 100)} % of the flash` },
  { key: "write_cache_bytes", title: "write cache", steps: [0, ...Array.from({ length: 14 }, (_, i) => 2 ** (15 + i))], parse: size, words: (value) => (value ? bytes(value) : "none") },
  { key: "dies_per_channel", title: "dies per channel", steps: [1, 2, 4, 8, 16], parse: plain, words: count },
];

interface Experiment { title: string; text: string; device: string; keys: Words; pattern: string; options: Words }

/** Guided experiments: a click runs the device as it is, and with a change. */
const EXPERIMENTS: Experiment[] = [
  { title: "More spare space", text: "Random writes with 15 % and 40 % of the flash as spare: fewer of them wait for a collection, which copies fewer pages.", device: "demo", keys: { spare_factor: "0.4" }, pattern: "RW", options: {} },
  { title: "A write cache", text: "Random writes without a cache, and with 4 MiB: the first ones take microseconds, until it is full.", device: "demo", keys: { write_cache_bytes: "4MiB" }, pattern: "RW", options: {} },
  { title: "Another victim policy", text: "Collect the block with the fewest valid pages instead of the oldest.", device: "demo", keys: { gc: "greedy" }, pattern: "RW", options: {} },
  { title: "Fewer dies", text: "Random writes of eight processes on eight dies, and on four: they wait for each other.", device: "demo", keys: { dies_per_channel: "1", blocks_per_die: "4820" }, pattern: "RW", options: { parallel_degree: "8" } },
  { title: "A zone on one die or on eight", text: "Sequential writes of 64 KiB to a zoned drive whose zones span one die, and eight.", device: "zns", keys: { dies_per_zone: "8", zone_bytes: "768MiB" }, pattern: "SW", options: { io_size: "64KiB", io_count: "2000" } },
];

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const view = new PlayView(main, route);
  onLeave(() => view.remove());
  await view.mount();
}

class PlayView {
  private form: Form | null = null;
  private readonly changes: Words = {};
  private readonly options: Words = { ...FIRST };
  private device: string;
  private benchmark: string;
  private pattern: string;
  private now: number | null;
  private before: number | null;
  private runs: PlayedRun[] = [];
  private removed = false;
  private readonly pending = new Latest();
  private timer = 0;
  private readonly tables = h("section", { class: "play keys", "aria-label": "Keys of the device" });
  private readonly message = h("div", { "aria-live": "polite" });
  private readonly options_ = h("div", { class: "options" });
  private readonly command = h("code");
  private readonly run = h("button", { type: "button", class: "main", onclick: () => void this.begin() }, "Run");
  private readonly stop = h("button", { type: "button", hidden: true, onclick: () => void postAction("play/stop").then(() => this.poll()) }, "Stop");
  private readonly progress = h("div", { role: "status" });
  private readonly sliders = h("div", { class: "sliders" });
  private readonly results = h("section", { class: "played", "aria-label": "Results of the runs" });
  private readonly cards = h("section", { class: "cards", "aria-label": "Try this" }, EXPERIMENTS.map((each) => h("button", { type: "button", class: "try", onclick: () => void this.attempt(each) }, h("b", {}, each.title), h("span", {}, each.text))));
  private attempting = false; // both runs of an experiment
  private readonly changed: () => void;
  private readonly select = h("select");
  private readonly what = h("select");

  constructor(private readonly main: HTMLElement, { parts, query }: Route) {
    this.device = parts[0] || "demo";
    for (const [name, value] of Object.entries(query)) {
      if (name.startsWith(KEY)) this.changes[name.slice(KEY.length)] = value;
      if (name.startsWith(OPTION)) this.options[name.slice(OPTION.length)] = value;
    }
    this.benchmark = query.run ?? "pattern";
    this.pattern = query.pattern ?? "RW";
    this.now = Number(query.now) || null;
    this.before = Number(query.before) || null;
    this.changed = debounce(250, () => void this.request());
  }

  async mount(): Promise<void> {
    await this.request(true);
    this.select.addEventListener("change", () => {
      this.device = this.select.value;
      for (const name of Object.keys(this.changes)) delete this.changes[name];
      void this.request(true);
    });
    fill(this.select, this.form!.devices.map((each) => h("option", { value: each.name }, each.name)));
    this.select.value = this.device;
    this.what.addEventListener("change", () => {
      this.benchmark = this.what.value;
      this.drawOptions();
      this.updateQuery();
    });
    fill(this.main,
      h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("span", { "aria-current": "page" }, "Play")),
      h("h1", {}, "Play ", h("span", { class: "thin" }, "with a simulated device")),
      h("p", { class: "quiet" }, "Change the device, run something on it, and see old and new in the same axes. Results are listed until the explorer ends."),
      this.cards,
      h("div", { class: "playing" },
        h("form", { class: "play", id: "play", "aria-label": "The device, and the benchmark", onsubmit: (event: Event) => { event.preventDefault(); void this.begin(); } },
          h("div", { class: "bar" }, h("label", {}, "Device ", this.select), h("label", {}, "Run ", this.what)),
          this.options_,
          h("div", { class: "bar" }, this.run, this.stop, h("button", { type: "button", onclick: () => this.reset() }, "As in the profile")),
          this.sliders, this.progress, this.message,
          h("p", { class: "quiet" }, "The same on a command line: ", this.command)),
        this.results, this.tables));
    this.drawOptions();
    await this.poll();
  }

  remove(): void {
    this.removed = true;
    clearTimeout(this.timer);
  }

  /** Requests the device of the current form. */
  private async request(anew = false): Promise<void> {
    this.updateQuery();
    const query = Object.fromEntries(Object.entries(this.changes).map(([name, value]) => [KEY + name, value]));
    const signal = this.pending.begin();
    const form = await fetchJson("play", { device: this.device, ...query }, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      return null;
    });
    if (!form || signal.aborted) return; // the newer request draws
    if (form.problem && this.form && !anew) { // keep the form until the error is corrected
      fill(this.message, problemOf(form.problem));
      this.mark();
      return;
    }
    const names = (of: Form | null) => JSON.stringify(of?.tables.map((table) => table.keys.map((key) => key.name)));
    const same = !anew && names(this.form) === names(form);
    this.form = form;
    if (!same) this.drawTables();
    if (!same || !this.sliders.contains(document.activeElement)) this.drawSliders(); // not one that is being moved
    this.drawChoices();
    fill(this.message, form.problem ? problemOf(form.problem) : facts(form.facts));
    this.mark();
    this.showCommand();
  }

  private updateQuery(): void {
    if (this.removed) return;
    const query: Record<string, string | number | null> = {};
    for (const [name, value] of Object.entries(this.changes)) query[KEY + name] = value;
    query.run = this.benchmark === "pattern" ? null : this.benchmark;
    if (this.benchmark === "pattern") {
      query.pattern = this.pattern;
      for (const [name, value] of Object.entries(this.options)) query[OPTION + name] = value;
    }
    query.now = this.now;
    query.before = this.before;
    if (read().view === "play") history.replaceState(null, "", link("play", [this.device], query));
    this.showCommand();
  }

  private showCommand(): void {
    const options = Object.entries(this.options).filter(([, value]) => value).map(([name, value]) => ` --${name.replaceAll("_", "-")} ${value}`).join("");
    const url = this.form?.url ?? `sim:${this.device}`;
    const quoted = /[?&]/.test(url) ? `'${url}'` : url;
    fill(this.command, this.benchmark === "pattern" ? `uflip pattern ${quoted} --pattern ${this.pattern}${options}` : `uflip run ${quoted} --scale quick --only ${this.benchmark}`);
  }

  /** The device, and what it can run: a zoned device has other patterns and micro-benchmarks. */
  private drawChoices(): void {
    const { benchmarks, patterns } = this.form!;
    fill(this.what, benchmarks.map((each) => h("option", { value: each.name }, each.title)));
    if (!benchmarks.some((each) => each.name === this.benchmark)) this.benchmark = "pattern";
    if (!patterns.some((each) => each.name === this.pattern)) this.pattern = patterns.at(-1)!.name;
    this.what.value = this.benchmark;
    this.select.value = this.device;
    this.drawOptions();
    this.updateQuery();
  }

  /** The keys that matter most as sliders; those that the device lacks are left out. */
  private drawSliders(): void {
    const rows = this.form!.tables.flatMap((each) => each.keys);
    fill(this.sliders, SLIDERS.flatMap((slider) => {
      const row = rows.find((each) => each.name === slider.key);
      const current = row && slider.parse(this.changes[slider.key] ?? row.value);
      if (!row || current === undefined || (slider.key === "spare_factor" && !current)) return [];
      const { steps } = slider;
      const nearest = steps.reduce((best, value, i) => (Math.abs(value - current) < Math.abs(steps[best]! - current) ? i : best), 0);
      const words = h("output", {}, slider.words(current));
      const input = h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": slider.title, form: "play", oninput: () => {
        const value = steps[Number(input.value)]!;
        this.changes[slider.key] = String(value);
        words.textContent = slider.words(value);
        input.setAttribute("aria-valuetext", slider.words(value));
        const field = this.tables.querySelector<HTMLInputElement>(`[data-key="${slider.key}"]`);
        if (field) field.value = String(value);
        this.changed();
      } });
      input.value = String(nearest);
      input.setAttribute("aria-valuetext", slider.words(current));
      return [h("label", {}, h("span", {}, slider.title), input, words)];
    }));
  }

  /** Runs an experiment: the device of the profile, and then with the change. */
  private async attempt({ device, keys, pattern, options }: Experiment): Promise<void> {
    [this.device, this.benchmark, this.pattern] = [device, "pattern", pattern];
    Object.assign(this.options, FIRST, options);
    this.attempting = true;
    this.allow(false);
    for (const change of [{}, keys]) {
      for (const name of Object.keys(this.changes)) delete this.changes[name];
      Object.assign(this.changes, change);
      await this.request(true);
      const number = await this.begin();
      while (number !== null && !this.stop.hidden && !this.removed) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (this.removed || !this.runs.some((each) => each.number === number)) break;
    }
    this.attempting = false;
    this.allow(true);
  }

  private allow(runs: boolean): void {
    for (const each of [this.run, ...this.cards.querySelectorAll("button")]) each.disabled = !runs;
  }

  private reset(): void {
    for (const name of Object.keys(this.changes)) delete this.changes[name];
    void this.request(true);
  }

  private drawOptions(): void {
    if (this.benchmark !== "pattern") {
      const chosen = this.form!.benchmarks.find((each) => each.name === this.benchmark);
      fill(this.options_, h("p", { class: "quiet" }, chosen?.question ?? ""));
      return;
    }
    const pattern = h("select", { onchange: () => {
      this.pattern = pattern.value;
      this.updateQuery();
    } }, this.form!.patterns.map((each) => h("option", { value: each.name }, `${each.name} ${each.words}`)));
    pattern.value = this.pattern;
    const field = (name: string) => {
      const input = h("input", { type: "text", value: this.options[name] ?? "", autocomplete: "off", spellcheck: "false", oninput: () => {
        this.options[name] = input.value.trim();
        this.updateQuery();
      } });
      return h("label", {}, h("span", {}, OPTION_WORDS[name] ?? name), input);
    };
    const [often, seldom] = [this.form!.options.slice(0, 4), this.form!.options.slice(4)];
    fill(this.options_, h("label", {}, h("span", {}, "pattern"), pattern), often.map(field),
      h("details", { open: seldom.some((name: string) => this.options[name]) }, h("summary", {}, "More of the pattern"), h("div", { class: "options" }, seldom.map(field))));
  }

  private drawTables(): void {
    const another = h("input", { type: "text", list: "others", placeholder: "a key", "aria-label": "Another key", autocomplete: "off" });
    const value = h("input", { type: "text", placeholder: "its value", "aria-label": "Value of the other key", autocomplete: "off" });
    fill(this.tables,
      this.form!.tables.map((table) => h("details", { open: OPEN_TABLES.includes(table.name) || table.keys.some((key) => this.changes[key.name] !== undefined) },
        h("summary", {}, h("h2", {}, table.name)), table.keys.map((key) => this.field(key)))),
      h("details", {}, h("summary", {}, h("h2", {}, "another key")), h("p", { class: "quiet" }, "Other keys of the reference, which this device does not set."),
        h("datalist", { id: "others" }, this.form!.others.map((name: string) => h("option", { value: name }))),
        h("div", { class: "bar" }, another, value, h("button", { type: "button", onclick: () => {
          if (another.value && value.value) this.changes[another.value.trim()] = value.value.trim();
          void this.request(true);
        } }, "Set"))));
  }

  private field(key: KeyRow): HTMLElement {
    const current = this.changes[key.name] ?? key.value;
    const set = (value: string) => {
      if (value === key.usual || (value === "" && key.usual !== null)) delete this.changes[key.name];
      else this.changes[key.name] = value;
      this.changed();
    };
    const about = `about-${key.name}`;
    const props = { form: "play", "data-key": key.name, "aria-describedby": about };
    const input: HTMLInputElement | HTMLSelectElement = key.choices
      ? h("select", { ...props, onchange: () => set(input.value) }, key.choices.map((each: string) => h("option", { value: each }, each)))
      : h("input", { ...props, type: "text", autocomplete: "off", spellcheck: "false", oninput: () => set(input.value.trim()) });
    input.value = current;
    return h("div", { class: "key" }, h("label", {}, h("span", {}, key.name), input),
      h("p", { class: "quiet", id: about }, key.choices ? key.meaning : `${key.meaning} (${key.allowed})`));
  }

  /** Marks keys that differ from the profile. */
  private mark(): void {
    for (const input of this.tables.querySelectorAll<HTMLElement>("[data-key]"))
      input.classList.toggle("changed", this.changes[input.dataset.key ?? ""] !== undefined);
  }

  /** Starts a run; returns its number, or null if it was refused. */
  private async begin(): Promise<number | null> {
    const options = Object.fromEntries(Object.entries(this.options).filter(([, value]) => value));
    let begun: PlayedRun;
    const selection = this.benchmark === "pattern" ? { pattern: this.pattern, options } : {};
    try {
      begun = await postAction("play/begin", { device: this.device, keys: this.changes, benchmark: this.benchmark, ...selection });
      [this.now, this.before] = [null, null];
      fill(this.message, facts(this.form!.facts));
    } catch (error) {
      fill(this.message, errorNotice(error));
      return null;
    }
    await this.poll();
    return begun.number;
  }

  /** Requests the list of runs, repeatedly while one is in progress. */
  private async poll(): Promise<void> {
    const response = await fetchJson("played");
    if (this.removed) return;
    const last = response.played.at(-1);
    const running = last?.state === "running";
    this.allow(!running && !this.attempting);
    this.stop.hidden = !running;
    clearTimeout(this.timer);
    if (running) {
      fill(this.progress, h("progress", { max: 1, value: last.share, "aria-label": "Progress" }), h("span", { class: "quiet" }, ` ${last.words} · ${threeDigits(last.took_s)} s`));
      this.timer = window.setTimeout(() => void this.poll(), POLL_MS);
      return;
    }
    fill(this.progress, last?.state === "failed" ? problemOf(last.error ?? {}) : null);
    this.runs = response.played.filter((each) => each.state === "done");
    await this.draw();
  }

  private async draw(): Promise<void> {
    const { runs } = this;
    if (!runs.length) {
      fill(this.results, h("p", { class: "quiet" }, "No run yet: press Run, with or without changes."));
      return;
    }
    const now = runs.find((each) => each.number === this.now) ?? runs.at(-1)!;
    const comparable = runs.filter((each) => each.number !== now.number && each.benchmark === now.benchmark);
    const before = this.before === 0 ? undefined : comparable.find((each) => each.number === this.before) ?? comparable.filter((each) => each.number < now.number).at(-1);
    const choose = (words: string, choices: PlayedRun[], at: PlayedRun | undefined, set: (n: number) => void) => {
      const select = h("select", { "aria-label": words, onchange: () => {
        set(Number(select.value));
        this.updateQuery();
        void this.draw();
      } }, words === "before" && !at ? h("option", { value: "0" }, "nothing") : null, choices.map((each) => h("option", { value: each.number }, titleOf(each))));
      select.value = String(at?.number ?? 0);
      return h("label", {}, `${words} `, select);
    };
    const figures = h("div", {}, h("p", { class: "quiet" }, "Loading …"));
    fill(this.results, h("div", { class: "bar" }, choose("now", [...runs].reverse(), now, (n) => { [this.now, this.before] = [n, null]; }), choose("before", [...comparable].reverse(), before, (n) => { this.before = n; })), figures);
    try {
      fill(figures, await runFigures(now, before));
    } catch (error) {
      fill(figures, errorNotice(error));
    }
    this.results.dataset.drawn = String(now.number);
  }
}

function problemOf({ what, where, got, allowed, action }: Record<string, string>): HTMLElement {
  return h("div", { class: "notice", role: "alert" }, h("p", {}, h("b", {}, what)), facts([["where", where], ["got", got], ["allowed", allowed], ["do", action]]));
}

function titleOf(one: PlayedRun): string {
  const changed = one.url.split("?")[1]?.replaceAll("&", " ") ?? "as in the profile";
  const what = one.benchmark === "pattern" ? one.label : one.benchmark;
  return `${one.number}: ${what} on ${one.url.split("?")[0]!.slice(4)}, ${changed}`;
}

const COLUMNS = 700;
const DASH = [6, 4];

/** Figures and numbers of a run, drawn over those of the run before, on the same scales. */
async function runFigures(now: PlayedRun, before: PlayedRun | undefined): Promise<Child> {
  const played = before ? [before, now] : [now];
  return now.benchmark === "pattern" ? runs(played) : benchmarks(played, now.benchmark);
}

/** Colours of the earlier and of the later one. */
function tones(n: number, later: string): string[] {
  return n > 1 ? [color("muted"), later] : [later];
}

async function runs(played: PlayedRun[]): Promise<Child> {
  const views = await Promise.all(played.map(async ({ key }) => fetchJson("run", { key, run: (await fetchJson("result", { key })).runs[0]!.id })));
  const pictures = await Promise.all(views.map((run, i) => fetchPicture({ key: played[i]!.key, run: run.id, axis: "number", from: 0, to: run.io_count, columns: COLUMNS })));
  const spreads = await Promise.all(views.map((run, i) => fetchJson("spread", { key: played[i]!.key, runs: run.id })));
  const looks = tones(played.length, hue(views.at(-1)!.pattern));
  const words = played.length > 1 ? ["before", "now"] : ["now"];
  return h("div", {},
    h("ul", { class: "legend" }, words.map((each, i) => h("li", { vars: { "--hue": looks[i]! } }, `${each}: `, h("code", {}, played[i]!.url)))),
    over(views, pictures, looks),
    tails("play", spreads.map((spread, i) => ({ words: words[i]!, hue: looks[i]!, dash: i < played.length - 1 ? DASH : [], spread }))),
    numbers(views, played));
}

/** Response times over the number of the I/O. */
function over(views: RunView[], pictures: Picture[], looks: string[]): HTMLElement {
  const least = Math.min(...pictures.map((each) => each.window.min_ns || 1000));
  const most = Math.max(...pictures.map((each) => each.window.max_ns || 1e6));
  const last = Math.max(...pictures.map((each) => each.io_count), 1);
  const plot = new Plot({
    title: "Response times, before and now", name: "play", height: 320,
    x: { range: { low: 0, high: last }, label: "number of the I/O", ticks: (low, high, about) => linearTicks(low, high, about).filter(Number.isInteger), tick: (low, high) => tickOf("number", low, high) },
    y: { range: { low: least / 1.5, high: most * 1.5 }, log: true, label: "response time", ticks: logTicks, tick: () => tickDuration },
    paint: (pen, plane) => pictures.forEach((picture, i) => paint(pen, plane, picture, "number", { startup: 0, period: 0, hue: looks[i]!, mean: looks[i]!, selected: null }, views[i]!.edges_ns, () => looks[i]!)),
  });
  plot.over.parentElement!.classList.add("every");
  onLeave(() => plot.remove());
  return h("div", {}, plot.node, h("p", { class: "quiet" }, "Dots or columns: I/Os; lines: the running mean."), plot.saving());
}

type Measured = Pick<MicroBenchmarkView, "title" | "patterns" | "values" | "axis" | "finding">;
type Row = [string, (run: RunView) => number | null | undefined, (value: number) => string];
const ROWS: Row[] = [
  ["mean", (run) => run.statistics?.mean_ns, duration], ["p50", (run) => run.statistics?.p50_ns, duration], ["p99", (run) => run.statistics?.p99_ns, duration],
  ["max", (run) => run.statistics?.max_ns, duration], ["IOPS", (run) => run.ios_per_s, threeDigits],
  ["write amplification", (run) => run.write_amplification, (value) => value.toFixed(2)],
];

function numbers(views: RunView[], played: PlayedRun[]): HTMLElement {
  const counters = [...new Set(views.flatMap((run) => Object.keys(run.counters)))].filter((name) => views.some((run) => run.counters[name]));
  const spent = [...new Set(views.flatMap((run) => run.spent_ns.map((each) => each.words)))];
  const modes = [...new Set(views.flatMap((run) => Object.keys(run.by_mode)))];
  const rows: Row[] = [...ROWS,
    ...modes.flatMap((mode): Row[] => [
      [`${mode}: IOPS`, (run) => run.by_mode[mode]?.ios_per_s, threeDigits],
      [`${mode}: mean`, (run) => run.by_mode[mode]?.statistics?.mean_ns, duration],
      [`${mode}: p99`, (run) => run.by_mode[mode]?.statistics?.p99_ns, duration]]),
    ...spent.map((name): Row => [`time per I/O: ${name}`, (run) => run.spent_ns.find((each) => each.words === name)?.ns ?? 0, duration]),
    ...counters.map((name): Row => [name, (run) => run.counters[name] ?? 0, count])];
  const cells = rows.map(([name, of, words]): Child[] => {
    const values = views.map(of);
    const [one, other] = values;
    const ratio = views.length > 1 && one && other ? `×${threeDigits(other / one)}` : "";
    return [name, ...values.map((value) => (value === null || value === undefined ? "–" : words(value))), ...(views.length > 1 ? [ratio] : [])];
  }).filter((row) => row.slice(1).some((cell) => cell !== "–" && cell !== "0" && cell !== ""));
  const head = views.length > 1 ? ["", "before", "now", "now over before"] : ["", "now"];
  return h("div", {}, h("h2", {}, "In numbers"), table(head, cells, "Response times and device counters", 1),
    h("p", {}, "Every I/O and its causes: ", views.map((run, i) => [h("a", { href: link("run", [played[i]!.key, run.id]) }, views.length > 1 && !i ? "before" : "now"), " "])));
}

async function benchmarks(played: PlayedRun[], name: string): Promise<Child> {
  const results = await Promise.all(played.map(({ key }) => fetchJson("result", { key })));
  const measured: Measured[] = results.map((each) => each.benchmarks.find((one) => one.name === name) ?? { title: name, patterns: [], values: [], axis: "", finding: "" });
  const points = measured.flatMap((each) => each.patterns.flatMap((one) => one.points));
  if (!points.length) return h("p", {}, "Nothing was measured.");
  const means = points.map((each) => each.statistics!.mean_ns);
  const range = { low: Math.min(...means) / 1.6, high: Math.max(...means) * 1.6 };
  const ticks = [...new Map(measured.flatMap((each) => each.values).map((each) => [each.at, each.label]))].sort((a, b) => a[0] - b[0]) as [number, string][];
  const [left, right] = [ticks[0]![0], ticks.at(-1)![0]];
  const margin = Math.max((right - left) * 0.05, 0.4);
  const last = measured.at(-1)!;
  const plot = new Plot({
    title: `${last.title}, before and now`, name: `play-${name}`, height: 360,
    x: { range: { low: left - margin, high: right + margin }, label: last.axis, ticks: (low, high, about) => withSpacing(ticks.map(([at]) => at), (high - low) / (about * 1.6)), tick: () => (value) => ticks.find(([at]) => at === value)?.[1] ?? "" },
    y: { range, log: true, label: "mean response time", ticks: logTicks, tick: () => tickDuration },
    paint: (pen, plane) => measured.forEach((each, i) => {
      const old = i < measured.length - 1;
      for (const { pattern, points } of each.patterns) {
        pen.line(points.map((one) => [plane.x(one.at), plane.y(one.statistics!.mean_ns)]), hue(pattern), old ? 1.3 : 2, old ? DASH : []);
        if (!old) for (const one of points) pen.dot(plane.x(one.at), plane.y(one.statistics!.mean_ns), 3, hue(pattern));
      }
    }),
  });
  onLeave(() => plot.remove());
  return h("div", {},
    h("ul", { class: "legend" }, last.patterns.map((each) => h("li", { vars: { "--hue": `var(--${HUES[each.pattern] ?? "ink"})` } }, `${each.pattern} ${each.words}`)),
      h("li", { class: "stroke" }, "now: ", h("code", {}, played.at(-1)!.url)), played.length > 1 ? h("li", { class: "stroke dashed" }, "before: ", h("code", {}, played[0]!.url)) : null),
    plot.node, plot.saving(),
    h("p", {}, last.finding),
    compared(measured, played),
    h("p", {}, "The whole results: ", played.map((each, i) => [h("a", { href: link("result", [each.key]) }, played.length > 1 && !i ? "before" : "now"), " "]),
      played.length > 1 ? h("a", { href: link("compare", [played.map((each) => each.key).join(",")]) }, "both, compared with intervals") : null));
}

function compared(measured: Measured[], played: PlayedRun[]): HTMLElement {
  const key = (pattern: string, point: ExperimentPoint) => `${pattern} ${point.label}`;
  const all = measured.map((each) => new Map<string, number>(each.patterns.flatMap((one) => one.points.map((point: ExperimentPoint) => [key(one.pattern, point), point.statistics!.mean_ns]))));
  const names = [...new Set(all.flatMap((each) => [...each.keys()]))];
  const rows = names.map((name): Child[] => {
    const [one, other] = all.map((each) => each.get(name));
    return [name, ...all.map((each) => duration(each.get(name))), ...(played.length > 1 ? [one && other ? `×${threeDigits(other / one)}` : "–"] : [])];
  });
  return h("details", {}, h("summary", {}, "Numbers"), table(played.length > 1 ? ["", "before", "now", "now over before"] : ["", "now"], rows, "Mean response times"));
}

// Changes that would have avoided a slow I/O: the same I/Os on the simulator, with a change of the device that
// acts on the causes of the I/O, beside the device as it was.

import type { Io, PlayedRun, Remedies, RunView, Spread } from "./api_types";
import { fetchJson, postAction } from "./api";
import { color, errorNotice, fill, h, table, type Child } from "./dom";
import { distinctColour } from "./paint";
import { tails } from "./distribution";
import { link, onLeave } from "./route";
import { duration, threeDigits } from "./format";

const AS_IT_WAS = "none";
const POLL_MS = 200;

interface Tried { title: string; played: PlayedRun; run: RunView; io: Io; spread: Spread }

/** A section with a button for each change; a click runs the I/Os with it. */
export class Remedy {
  readonly node = h("section", { class: "remedy", "aria-label": "What would have helped" });
  private readonly choices = h("span", { class: "buttons" });
  private readonly progress = h("div", { role: "status" });
  private readonly outcome = h("div");
  private readonly tried: Tried[] = [];
  private offered: Remedies | null = null;
  private removed = false;

  constructor(private readonly key: string, private readonly run: string, private readonly number: number) {
    onLeave(() => { this.removed = true; });
    fill(this.node, h("button", { type: "button", class: "main", onclick: () => void this.offer() }, "What would have helped?"));
  }

  private async offer(): Promise<void> {
    try {
      this.offered = await fetchJson("remedies", { key: this.key, run: this.run, number: this.number });
    } catch (error) {
      fill(this.node, errorNotice(error));
      return;
    }
    const { remedies, problem } = this.offered;
    fill(this.choices, remedies.map((each) => h("button", { type: "button", title: each.why, onclick: () => void this.attempt(each.name) }, each.title)));
    fill(this.node, h("h3", {}, "What would have helped?"),
      remedies.length ? [h("p", { class: "quiet" }, "Run the same I/Os on the simulator, on the device as it was and with one change. The capacity for the host stays the same."), this.choices]
        : h("p", {}, problem || "None of the known changes acts on the causes of this I/O."),
      this.progress, this.outcome);
  }

  private async attempt(name: string): Promise<void> {
    const buttons = this.choices.querySelectorAll("button");
    for (const each of buttons) each.disabled = true;
    try {
      if (!this.tried.length) await this.make(AS_IT_WAS, "as it was");
      const remedy = this.offered!.remedies.find((each) => each.name === name)!;
      if (!this.tried.some((each) => each.title === remedy.title)) await this.make(name, remedy.title);
      fill(this.progress);
      this.draw();
    } catch (error) {
      if (!this.removed) fill(this.progress, errorNotice(error));
    }
    for (const each of buttons) each.disabled = false;
  }

  /** Runs the I/Os, and waits for the end. */
  private async make(remedy: string, title: string): Promise<void> {
    const begun: PlayedRun = await postAction("play/remedy", { key: this.key, run: this.run, number: String(this.number), remedy });
    for (;;) {
      if (this.removed) throw new Error("the view was left");
      const { played } = await fetchJson("played");
      const now = played.find((each) => each.number === begun.number);
      if (now?.state === "done") {
        this.tried.push(await this.measured(title, now));
        return;
      }
      if (now?.state !== "running") throw new Error(now?.error?.what ?? "the run was stopped");
      fill(this.progress, h("progress", { max: 1, value: now.share, "aria-label": "Progress" }), h("span", { class: "quiet" }, ` ${title}: ${now.words}`));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async measured(title: string, played: PlayedRun): Promise<Tried> {
    const { key } = played;
    const { runs } = await fetchJson("result", { key });
    const run = await fetchJson("run", { key, run: runs[0]!.id });
    return { title, played, run, io: await fetchJson("io", { key, run: run.id, number: this.number }), spread: await fetchJson("spread", { key, runs: run.id }) };
  }

  private draw(): void {
    const [was] = this.tried;
    const before = was!.io.response_time_ns ?? 0;
    fill(this.outcome,
      table(["", "this I/O", "p50", "p99", "p99.9", "max", "write amplification", "causes of this I/O"], this.tried.map((each): Child[] => {
        const { run, io } = each;
        const now = io.response_time_ns ?? 0;
        const statistics = run.statistics;
        return [each.title, [h("a", { href: link("run", [each.played.key, run.id], { io: this.number }) }, duration(now)), each === was ? "" : ` (×${threeDigits(now / before)})`],
          ...[statistics?.p50_ns, statistics?.p99_ns, statistics?.p99_9_ns, statistics?.max_ns].map(duration), run.write_amplification ? run.write_amplification.toFixed(2) : "–",
          io.causes.slice(0, 2).map((cause) => `${cause.words} ${duration(cause.ns)}`).join(", ")];
      }), "The same I/Os on the device as it was, and with a change"),
      tails("remedy", this.tried.map((each, i) => ({ words: each.title, hue: i ? distinctColour(i) : color("muted"), dash: i ? [] : [6, 4], spread: each.spread }))),
      h("ul", { class: "legend" }, this.tried.map((each, i) => h("li", { class: i ? "stroke" : "stroke dashed", vars: { "--hue": i ? distinctColour(i) : "var(--muted)" } }, each.title, ": ", h("code", {}, each.played.url)))));
  }
}

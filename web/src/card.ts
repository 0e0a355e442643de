// One I/O: its properties, its response time, and on a simulated device the causes.

import type { Flash, Io, Share, Wait } from "./api_types";
import { fill, h, facts } from "./dom";
import { operationText } from "./gantt";
import { activity } from "./paint";
import { bytes, count, duration, modeName, percent } from "./format";

/** `remedy`: what would have avoided the I/O, where it can be tried. */
export function draw(node: HTMLElement, io: Io, remedy: HTMLElement | null, around: () => void, close: () => void): void {
  fill(node,
    h("div", { class: "bar" }, h("h2", {}, `I/O ${count(io.number)}: ${duration(io.response_time_ns)}`),
      h("span", { class: "buttons" }, h("button", { type: "button", onclick: around }, "Show its neighbours"), h("button", { type: "button", "aria-label": "Close the card", onclick: close }, "Close"))),
    io.chain ? h("p", { class: "chain" }, io.chain) : null,
    facts([
      ["what", io.mode === undefined ? "" : `${modeName(io.mode)}${io.io_size_bytes ? ` of ${bytes(io.io_size_bytes)}` : ""}`],
      ["offset", io.offset_bytes === undefined ? "" : `${count(io.offset_bytes)} B (${bytes(io.offset_bytes)})`],
      ["submitted", duration(io.submit_ns! - io.begin_ns)],
      ["idle before", io.idle_before_ns === undefined ? "" : duration(io.idle_before_ns)],
      ["host gap", io.host_gap_ns ? duration(io.host_gap_ns) : ""],
      ["host", io.host ? `meanwhile ${io.host}` : ""],
      ["stream", io.stream ? io.stream : ""], ["part of", io.ignored ? "the start-up" : ""],
    ]),
    io.causes.length ? causes(io) : h("p", { class: "quiet" }, io.host === undefined ? "A real device does not report causes." : `A real device does not report causes.${io.host ? "" : " The host was not disturbed meanwhile."}`),
    remedy,
    io.flash ? flash(io.flash) : null);
}

// Its flash operations, and its waits, if operations were recorded.
function flash(work: Flash): HTMLElement {
  const list = (operations: Share[]) => h("ul", {}, operations.slice(0, 8).map((each) => h("li", {}, operationText(each))), operations.length > 8 ? h("li", { class: "quiet" }, `and ${operations.length - 8} more`) : null);
  return h("div", { class: "flash" }, h("h3", {}, "Flash operations"), list(work.did),
    work.waits.length || work.waited_for.length ? h("h3", {}, "Waits") : null,
    work.waits.map((each) => [h("p", {}, wait(each)), list(each.waited_for)]), work.waited_for.length ? [h("p", {}, "Its operations waited for their dies, which were busy with:"), list(work.waited_for)] : null);
}

// A wait for the write cache or for a free page; the operations of its die during the wait follow.
function wait({ kind, ns, page, die }: Wait): string {
  const meanwhile = `Meanwhile die ${die} was busy with:`;
  if (kind === "write cache") return `The write cache was full for ${duration(ns)}, until page ${count(page)}, which was flushed to die ${die}, was programmed. ${meanwhile}`;
  return `No page was free for ${duration(ns)}, until die ${die} had one. ${meanwhile}`;
}

function causes(io: Io): HTMLElement {
  const total = io.response_time_ns || 1;
  return h("div", { class: "causes" }, h("h3", {}, "Causes"),
    h("ol", {}, io.causes.map((each) => h("li", {},
      h("span", { class: "what" }, each.words),
      h("span", { class: "track", "aria-hidden": "true" }, h("span", { vars: { "--share": `${(100 * each.ns) / total}%`, "--hue": activity(each.name) } })),
      h("span", { class: "n" }, duration(each.ns)), h("span", { class: "n quiet" }, percent(each.ns / total))))));
}

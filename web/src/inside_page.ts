// The inside of a device: the properties that `uflip infer` found, with their intervals, and the
// figure of each probe beside what it identified.

import type { PropertyView } from "./api_types";
import { fetchJson } from "./api";
import { fill, h, table, type Child } from "./dom";
import { extent, multiple } from "./result";
import { link, type Route } from "./route";
import { saveCsv } from "./save";
import { bytes } from "./format";

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const key = route.parts[0] ?? "";
  const result = await fetchJson("result", { key });
  const { inside } = result;
  const name = result.name;
  const head = [
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("a", { href: link("result", [key]) }, name), " › ", h("span", { "aria-current": "page" }, "What is inside")),
    h("h1", {}, "What is inside ", h("span", { class: "thin" }, result.device), result.simulated ? h("span", { class: "badge" }, "simulated") : null)];
  if (!inside?.properties.length) {
    fill(main, head, h("p", { class: "notice" }, inside ? ["Nothing was inferred from these runs yet. Run ", h("code", {}, inside.command), ", and open this page again."] : "The result has no run of a probe: uflip infer DEVICE makes them."));
    return;
  }
  const { properties, check } = inside;
  const identified = properties.filter((each) => each.identified).length;
  const probes = [...new Set(properties.map((each) => each.probe))];
  const shared = extent(result);
  const figures = probes.flatMap((probe) => result.benchmarks.filter((each) => each.name === probe && each.patterns.some((one) => one.points.length)).map((each): [string, HTMLElement] => [probe, multiple(key, result, each, shared)]));
  fill(main, head,
    h("p", { class: "abstract" }, `${identified} of ${properties.length} properties are identified from response times alone. ${check}`),
    inside.why_no_twin ? h("p", { class: "notice" }, `No twin: ${inside.why_no_twin}.`) : null,
    h("div", { class: "properties" }, table(["Property", "Value", "90 % interval", "Meaning", "Probe", "How, or why not"], properties.map((each): Child[] => [
      each.key, each.identified ? h("b", {}, each.value) : h("span", { class: "quiet" }, each.value), each.interval, each.meaning, h("a", { href: "#", onclick: (event: Event) => jump(event, each.probe) }, each.title), each.reason,
    ]), "Properties of the device", 6)),
    h("p", { class: "quiet" }, `The probes wrote ${bytes(inside.bytes_written)}.`, " ", h("button", { type: "button", onclick: () => saveCsv(`${name}-inside`, ["property", "value", "interval", "probe", "reason"], properties.map((each) => [each.key, each.identified ? each.value : null, each.interval, each.probe, each.reason])) }, "Save CSV")),
    h("h2", {}, "The evidence"),
    h("p", { class: "quiet" }, "Mean response time of each run of a probe, with its interval; the properties are those that the probe identified. Click a point to see its run."),
    h("div", { class: "multiples" }, figures.map(([probe, figure]) => h("div", { id: `probe-${probe}`, tabindex: -1 }, properties.filter((each) => each.probe === probe && each.identified).map(found), figure))));
}

/** A property that a probe identified. */
function found({ key, value, interval }: PropertyView): HTMLElement {
  return h("p", { class: "found" }, key, " = ", h("b", {}, value), interval && interval !== "exact" ? h("span", { class: "quiet" }, ` (${interval})`) : null);
}

/** Shows the figure of a probe; the address stays. */
function jump(event: Event, probe: string): void {
  event.preventDefault();
  const figure = document.getElementById(`probe-${probe}`);
  figure?.scrollIntoView({ block: "start" });
  figure?.focus({ preventScroll: true });
}

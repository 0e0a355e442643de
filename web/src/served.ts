// Devices being served: numbers of requests, response times, and the state of
// their flash. Polled once a second; rates are differences between two answers.

import type { ExportNow, Servers } from "./api_types";
import { fetchJson } from "./api";
import { errorNotice, facts, fill, h, table, type Child } from "./dom";
import { History } from "./history";
import { onLeave } from "./route";
import { bytes, count, duration, percent, threeDigits } from "./format";

const POLL_MS = 1000;
const MERGES = ["switch_merges", "partial_merges", "full_merges"];

// They stay while the page is open, also in other views.
const histories = new Map<string, History>();

export async function show(main: HTMLElement): Promise<void> {
  const charts = h("div", {});
  const list = h("div", {});
  const mounted = new Set<History>();
  fill(main,
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("span", { "aria-current": "page" }, "Served")),
    h("h1", {}, "Served ", h("span", { class: "thin" }, "at this moment"), h("span", { class: "badge" }, "simulated")),
    h("p", { class: "quiet" }, "Response times and I/Os are those of the last whole second, from the complete request to the sent reply; rates of collections and merges, and the charted write amplification, are those since the last update. The charts begin when the page is opened."),
    charts, list);
  let before: Servers | null = null;
  let timer = 0;
  let removed = false;
  onLeave(() => {
    removed = true;
    clearTimeout(timer);
    for (const each of mounted) each.remove();
  });
  const record = (server: ServerNow): void => {
    if ("error" in server) return;
    for (const each of server.exports) {
      const key = `${server.socket} ${each.name}`;
      const history = histories.get(key) ?? new History(each.name);
      histories.set(key, history);
      if (!mounted.has(history)) charts.append(history.mount());
      mounted.add(history);
      history.add(each, server.elapsed_ns / 1e9);
    }
  };
  const poll = async (): Promise<void> => {
    try {
      const now = await fetchJson("served");
      if (removed) return;
      for (const server of now.servers) record(server);
      fill(list, now.servers.map((server, i) => serverOf(server, before?.servers[i])));
      before = now;
    } catch (error) {
      if (!removed) fill(list, errorNotice(error));
    }
    if (!removed) timer = window.setTimeout(() => void poll(), POLL_MS);
  };
  await poll();
}

type ServerNow = Servers["servers"][number];
type Counters = Record<string, number>;

function serverOf(server: ServerNow, earlier?: ServerNow): HTMLElement {
  if ("error" in server) {
    const { what, where, got, action } = server.error;
    return h("section", { class: "notice" }, h("h2", {}, what), facts([["where", where], ["got", got], ["do", action]]));
  }
  const before = earlier && !("error" in earlier) ? earlier : undefined;
  const { now, in_all, turned_away } = server.clients;
  const of = (name: string) => before?.exports?.find((each) => each.name === name);
  const seconds = (server.elapsed_ns - (before?.elapsed_ns ?? NaN)) / 1e9;
  return h("section", { "aria-label": server.socket },
    h("h2", {}, server.socket),
    facts([["uptime", duration(server.elapsed_ns)], ["clients", `${count(now)} now, ${count(in_all)} in all`], ["refused", turned_away ? count(turned_away) : ""]]),
    table(["Export", "IOPS", "p50", "p99", "p99.9", "longest"], server.exports.map(recentRow), "The last whole second"),
    table(["Export", "Write amplification", "Free blocks", "Collections", "Collections/s", "Merges", "Merges/s"], server.exports.map((each) => flashOf(each, of(each.name), seconds)), "Its flash"),
    table(["Export", "Reads", "Writes", "Flushes", "Failed", "Read", "Written", "Zeroed", "device p50", "lag p50", "lag p99"], server.exports.map(totalsRow), "Since serving began"));
}

function recentRow({ name, recent }: ExportNow): Child[] {
  const times = [recent.p50_ns, recent.p99_ns, recent.p999_ns, recent.max_ns];
  return [name, count(recent.count / (recent.span_ns / 1e9)), ...times.map(duration)];
}

function flashOf({ name, flash, counters, write_amplification }: ExportNow, before: ExportNow | undefined, seconds: number): Child[] {
  if (!flash) return [name, "–", "–", "–", "–", "–", "–"];
  const merges = (of: Counters) => MERGES.reduce((sum, kind) => sum + (of[kind] ?? 0), 0);
  const rate = (of: (counters: Counters) => number) => (before?.counters && counters && seconds > 0 ? threeDigits((of(counters) - of(before.counters)) / seconds) : "–");
  const free = `${count(flash.free_blocks)} of ${count(flash.blocks)} (${percent(flash.free_blocks / flash.blocks)})`;
  const collected = (of: Counters) => of.blocks_collected ?? 0;
  return [name, write_amplification === null ? "–" : threeDigits(write_amplification), free, count(counters?.blocks_collected ?? 0), rate(collected), counters ? count(merges(counters)) : "–", rate(merges)];
}

function totalsRow(each: ExportNow): Child[] {
  const times = [each.simulated.p50_ns, each.lag.p50_ns, each.lag.p99_ns];
  return [each.name, ...[each.reads, each.writes, each.flushes, each.failed].map(count), bytes(each.bytes_read), bytes(each.bytes_written), bytes(each.bytes_zeroed), ...times.map(duration)];
}

// Requests to the server. URLs are relative: the token is in the page's URL.

import type { Answers } from "./api_types";

export interface Problem { what: string; where?: string; got?: string; allowed?: string; action?: string }

export class Failure extends Error {
  constructor(readonly problem: Problem) {
    super(problem.what);
  }
}

export type Query = Record<string, string | number>;
export type Plain = any; // eslint: documents of the server, read where they are used

async function get(name: string, query: Query, signal?: AbortSignal): Promise<Response> {
  const text = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]));
  return request(`api/${name}?${text}`, { signal: signal ?? null });
}

/** Requests an action. */
export async function postAction(name: string, document: Plain = {}): Promise<Plain> {
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(document) };
  return (await request(`api/${name}`, sent)).json();
}

async function request(address: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Failure({ what: "The explorer does not answer any more", action: "start `uflip explore` again, and open the address that it prints" });
  }
  if (response.ok) return response;
  let problem: Problem = { what: `The server answered ${response.status}` };
  try {
    problem = ((await response.json()) as { error: Problem }).error;
  } catch { /* not JSON: only the status is known */ }
  throw new Failure(problem);
}

export async function fetchJson<Name extends keyof Answers>(name: Name, query: Query = {}, signal?: AbortSignal): Promise<Answers[Name]> {
  return (await get(name, query, signal)).json();
}

/** The latest of a kind of requests: a newer one cancels those before it. */
export class Latest {
  private controller = new AbortController();

  begin(): AbortSignal {
    this.cancel();
    this.controller = new AbortController();
    return this.controller.signal;
  }

  cancel(): void {
    this.controller.abort();
  }
}

export interface Stats {
  count: number; min_ns?: number; max_ns?: number; mean_ns?: number; exact: boolean;
  p50_ns?: number | null; p99_ns?: number | null; p99_9_ns?: number | null;
}

/** A range of a run: single I/Os, or rows of neighbours. */
export interface Picture {
  complete: boolean; kind: "ios" | "rows"; io_count: number; last_ns: number; streams: number;
  start: number; stop: number; window: Stats; causes?: string[]; cause_columns?: string[];
  first_class?: number; classes?: number;
  rows: number;
  at: Record<string, Float64Array | Uint32Array | Uint8Array>;
}

export async function fetchPicture(query: Query, signal?: AbortSignal): Promise<Picture> {
  return fetchArrays("window", query, signal);
}

export async function fetchArrays(name: string, query: Query, signal?: AbortSignal): Promise<Picture> {
  return unpack(await (await get(name, query, signal)).arrayBuffer());
}

/** Reads the format of `uflip.web.window.Picture.pack`. */
export function unpack(content: ArrayBuffer): Picture {
  const length = Number(new DataView(content).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
  const at: Picture["at"] = {};
  let offset = 8 + length;
  for (const { name, type, length: n } of head.arrays as { name: string; type: string; length: number }[]) {
    const size = type === "f8" ? 8 : type === "u4" ? 4 : 1;
    at[name] = type === "f8" ? new Float64Array(content, offset, n) : type === "u4" ? new Uint32Array(content, offset, n) : new Uint8Array(content, offset, n);
    offset += Math.ceil((n * size) / 8) * 8;
  }
  const rows = (at.number ?? at.min_ns)?.length ?? 0;
  return { ...head, at, rows };
}

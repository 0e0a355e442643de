// Routing: the view and its parameters are in the fragment (#) of the URL, so that every view
// can be shared, reopened, and left with the browser's own buttons.

export interface Route { view: string; parts: string[]; query: Record<string, string> }

export function read(hash = location.hash): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view: view || "results", parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function link(view: string, parts: string[] = [], query: Record<string, string | number | null | undefined> = {}): string {
  const shown = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(shown.map(([key, value]) => [key, String(value)])).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

let shown = location.hash; // of the current view

/** Changes the parameters of this view in the URL, without leaving it; nothing if the URL is already that of the next one. */
export function updateQuery(changes: Record<string, string | number | null>): void {
  if (location.hash !== shown) return;
  const { view, parts, query } = read();
  history.replaceState(null, "", link(view, parts, { ...query, ...changes }));
  shown = location.hash;
}

// Clean-up of a view: pending requests, resize observers, timers.
let callbacks: (() => void)[] = [];

/** Registers a callback for leaving this view. */
export function onLeave(call: () => void): void {
  callbacks.push(call);
}

export function leave(): void {
  shown = location.hash;
  const calls = callbacks;
  callbacks = [];
  for (const each of calls) each();
}

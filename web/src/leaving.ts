// What a view leaves behind: requests on their way, plots that watch their size, clocks that tick.

let left: (() => void)[] = [];

/** Calls when this view is left. */
export function onLeave(call: () => void): void {
  left.push(call);
}

export function leave(): void {
  const calls = left;
  left = [];
  for (const each of calls) each();
}

// Clean-up of a view: pending requests, resize observers, timers.

let left: (() => void)[] = [];

/** Registers a callback for leaving this view. */
export function onLeave(call: () => void): void {
  left.push(call);
}

export function leave(): void {
  const calls = left;
  left = [];
  for (const each of calls) each();
}

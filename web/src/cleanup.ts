// Clean-up of a view: pending requests, resize observers, timers.

let callbacks: (() => void)[] = [];

/** Registers a callback for leaving this view. */
export function onLeave(call: () => void): void {
  callbacks.push(call);
}

export function leave(): void {
  const calls = callbacks;
  callbacks = [];
  for (const each of calls) each();
}

// The Pareto front: points for which no other is at least as good in all objectives and better in one.

/** Indices of rows; lower is better for every number, and rows with a missing number are excluded. */
export function front(rows: (number | null)[][]): number[] {
  const known = rows.map((row, place) => ({ row: row as number[], place })).filter(({ row }) => row.every((value) => value !== null));
  // In this order no point is beaten by a later one.
  known.sort((a, b) => {
    const i = a.row.findIndex((value, j) => value !== b.row[j]);
    return i < 0 ? a.place - b.place : a.row[i]! - b.row[i]!;
  });
  const found: typeof known = [];
  for (const one of known)
    if (!found.some((other) => other.row.every((value, i) => value <= one.row[i]!) && other.row.some((value, i) => value !== one.row[i]))) found.push(one);
  return found.map(({ place }) => place);
}

// The Pareto front: points for which no other is at least as good in all objectives and better in one.

/** Indices of rows; lower is better for every number, and rows with a missing number are excluded. */
export function front(rows: (number | null)[][]): number[] {
  const complete = rows.map((row, index) => ({ row: row as number[], index })).filter(({ row }) => row.every((value) => value !== null));
  // In this order no point is beaten by a later one.
  complete.sort((a, b) => {
    const i = a.row.findIndex((value, j) => value !== b.row[j]);
    return i < 0 ? a.index - b.index : a.row[i]! - b.row[i]!;
  });
  const best: typeof complete = [];
  for (const one of complete)
    if (!best.some((other) => other.row.every((value, i) => value <= one.row[i]!) && other.row.some((value, i) => value !== one.row[i]))) best.push(one);
  return best.map(({ index }) => index);
}

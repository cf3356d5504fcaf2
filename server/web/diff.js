// Two texts line by line: what both have, and what only one has. Myers' greedy
// algorithm (1986), which takes time by the number of differences.

// Differences beyond which the rest is shown as it stands.
const MOST = 1500;

// [{left, right}]: a line of each, or null where the other has one more.
export function pairLines(a, b) {
  const left = a.split("\n"), right = b.split("\n");
  const path = shortestEdit(left, right);
  if (path === null) {
    return Array.from(
        {length: Math.max(left.length, right.length)},
        (unused, index) => ({left: left[index] ?? null, right: right[index] ?? null}));
  }
  const rows = [];
  let removed = [], added = [];
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); ++i) {
      rows.push({left: removed[i] ?? null, right: added[i] ?? null});
    }
    removed = [];
    added = [];
  };
  for (const [kind, index] of path) {
    if (kind === "same") {
      flush();
      rows.push({left: left[index[0]], right: right[index[1]]});
    } else if (kind === "removed") {
      removed.push(left[index]);
    } else {
      added.push(right[index]);
    }
  }
  flush();
  return rows;
}

function shortestEdit(a, b) {
  const most = Math.min(a.length + b.length, MOST);
  const furthest = new Map([[1, 0]]);
  const history = [];
  for (let edits = 0; edits <= most; ++edits) {
    history.push(new Map(furthest));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits ||
          (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        ++x;
        ++y;
      }
      furthest.set(k, x);
      if (x >= a.length && y >= b.length) return trackBack(a, b, history);
    }
  }
  return null;
}

function trackBack(a, b, history) {
  const path = [];
  let x = a.length, y = b.length;
  for (let edits = history.length - 1; edits >= 0; --edits) {
    const furthest = history[edits];
    const k = x - y;
    const down =
        k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const fromX = furthest.get(before) ?? 0, fromY = fromX - before;
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      --x;
      --y;
      path.push(["same", [x, y]]);
    }
    if (edits === 0) break;
    if (down) {
      --y;
      path.push(["added", y]);
    } else {
      --x;
      path.push(["removed", x]);
    }
  }
  return path.reverse();
}

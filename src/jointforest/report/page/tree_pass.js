/** Messages up and down a hidden tree, for one piece of evidence. Pure functions on typed arrays. */

import { distributionsOf, tableOf } from "./unpack.js";

/**
 * Tables of one tree.
 * @typedef {{column: number[], parent: number[], states: number[], log_weight: number, transition: Float32Array[],
 *   emission: Float32Array[], blank: (Float32Array|null)[], children: number[][], node: Map<number, number>,
 *   missingNode: Map<number, number>}} Tree - missingNode: by column, the node whose states tell which cells are missing
 */

/** A tree with its tables; `_tree` of embed.py. @returns {Tree} */
export function readTree(tree, buffer) {
  const children = tree.parent.map(() => []);
  tree.parent.forEach((above, k) => above >= 0 && children[above].push(k));
  return {
    ...tree,
    transition: tree.transition.map((one) => distributionsOf(buffer, one)),
    emission: tree.emission.map((one) => distributionsOf(buffer, one)),
    blank: tree.blank.map((one) => one && tableOf(buffer, one)),
    children,
    node: new Map(tree.column.map((j, k) => [j, k])),
    missingNode: new Map(tree.column.map((j, k) => [j, tree.missing_at[k]])),
  };
}

/**
 * The pass from the leaves to the root, and back.
 * @param {Tree} tree
 * @param {(Float64Array|null)[]} own - p(evidence of the node's column | its state); null without evidence on it
 * @returns {{log: number, rest: Float64Array[]}} log p(evidence), and for each node p(state, evidence on the others),
 *   but for a factor
 */
export function pass(tree, own) {
  const { message, below, log } = up(tree, own);
  return { log, rest: log > -Infinity ? down(tree, own, message, below) : [] };
}

function up(tree, own) {
  const m = tree.parent.length;
  const message = Array(m).fill(null);
  const below = Array(m).fill(null);
  let log = 0;
  for (let k = m - 1; k >= 0; k -= 1) {
    for (const child of tree.children[k]) {
      below[k] = times(below[k], message[child]);
      log += below[k] ? scale(below[k]) : 0;
    }
    const inside = times(below[k], own[k]);
    if (!inside) continue;
    log += scale(inside);
    message[k] = towards(inside, tree.transition[k]);
    log += scale(message[k]);
  }
  return { message, below, log };
}

function down(tree, own, message, below) {
  const outside = [through(Float64Array.of(1), tree.transition[0], tree.states[0])];
  const rest = [];
  for (let k = 0; k < tree.parent.length; k += 1) {
    const children = tree.children[k];
    rest[k] = times(outside[k], below[k]);
    // what the node knows without the messages of children from the i-th on, then times those after it
    let before = times(outside[k], own[k]);
    const after = Array(children.length).fill(null);
    for (let i = children.length - 1; i > 0; i -= 1) {
      after[i - 1] = times(after[i], message[children[i]]);
      if (after[i - 1]) scale(after[i - 1]);
    }
    children.forEach((child, i) => {
      outside[child] = through(times(before, after[i]), tree.transition[child], tree.states[child]);
      scale(outside[child]);
      before = times(before, message[child]);
      scale(before);
    });
  }
  return rest;
}

/** The product of two messages, a new one; null stands for ones. */
export function times(a, b) {
  if (!a || !b) return (a ?? b)?.slice() ?? null;
  return a.map((x, i) => x * b[i]);
}

/** Divide a message by its greatest entry, in place, and return the logarithm of that. */
function scale(x) {
  const top = x.reduce((most, value) => Math.max(most, value), 0);
  if (top > 0) for (let i = 0; i < x.length; i += 1) x[i] /= top;
  return Math.log(top);
}

/** A message by the states of the parent: table @ x, the table (rows, x.length). */
export function towards(x, table) {
  const out = new Float64Array(table.length / x.length);
  for (let r = 0, at = 0; r < out.length; r += 1) {
    let sum = 0;
    for (let c = 0; c < x.length; c += 1, at += 1) sum += table[at] * x[c];
    out[r] = sum;
  }
  return out;
}

/** x @ table, the table (x.length, n). */
export function through(x, table, n) {
  const out = new Float64Array(n);
  for (let r = 0, at = 0; r < x.length; r += 1) {
    if (x[r] === 0) at += n;
    else for (let c = 0; c < n; c += 1, at += 1) out[c] += x[r] * table[at];
  }
  return out;
}

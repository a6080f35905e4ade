/** Hidden trees of one joint: how well evidence fits them, and what they say of each column. */
import { pass, readTree, through, times } from "./tree_pass.js";
import { arrayOf } from "./unpack.js";

export class HiddenPart {
  /**
   * @param {object} part - `_hidden_part` of embed.py
   * @param {ArrayBuffer} buffer
   */
  constructor(part, buffer) {
    this.logWeight = part.log_weight;
    this.codes = part.codes.map(({ n, cuts, cut, code, share }) => ({
      n,
      cuts,
      cut: arrayOf(buffer, cut),
      code: arrayOf(buffer, code),
      share: arrayOf(buffer, share),
    }));
    this.trees = part.trees.map((tree) => readTree(tree, buffer));
  }

  /**
   * How well evidence fits.
   * @param {Map<number, object>} said - by column, with the `share` of each cut and `isPresent`, or `missing`
   */
  observe(said) {
    const likelihood = new Map([...said].filter(([, one]) => one.share).map(([j, one]) => [j, this.#ofCodes(j, one.share)]));
    const passes = this.trees.map((tree) => {
      const own = ownMessages(tree, said, likelihood);
      const found = pass(tree, own);
      return { tree, own, rest: found.rest, log: tree.log_weight + found.log };
    });
    const top = Math.max(...passes.map(({ log }) => log));
    if (top === -Infinity) return { log: -Infinity };
    const total = passes.reduce((sum, { log }) => sum + Math.exp(log - top), 0);
    const weighed = passes.map((one) => ({ ...one, weight: Math.exp(one.log - top) / total })).filter(({ weight }) => weight > 0);
    let base = 0;
    for (const one of said.values()) base += one.log ?? 0;
    return {
      log: this.logWeight + top + Math.log(total) + base,
      background: 0,
      column: (j) => this.#column(j, weighed, said.get(j), likelihood.get(j)),
      missing: (j) => missing(j, weighed),
    };
  }

  /** What shares of cuts say of each code. */
  #ofCodes(j, share) {
    const { n, cut, code, share: part } = this.codes[j];
    const out = new Float64Array(n);
    for (let k = 0; k < cut.length; k += 1) out[code[k]] += share[cut[k]] * part[k];
    return out;
  }

  /** Mass of each cut, or level, of column j. */
  #column(j, passes, one, likelihood) {
    const { n, cuts, cut, code, share } = this.codes[j];
    const weight = new Float64Array(n);
    for (const { tree, own, rest, weight: w } of passes) {
      const k = tree.node.get(j);
      const states = own[k] && !likelihood ? rest[k].map((x, h) => x * own[k][h]) : rest[k];
      const found = through(states, tree.emission[k], n);
      if (likelihood) for (let c = 0; c < n; c += 1) found[c] *= likelihood[c];
      normalise(found);
      for (let c = 0; c < n; c += 1) weight[c] += w * found[c];
    }
    const out = new Float64Array(cuts);
    // the likelihood of a code is spread over its cuts as the evidence is
    for (let k = 0; k < cut.length; k += 1) {
      const held = likelihood ? (likelihood[code[k]] > 0 ? one.share[cut[k]] / likelihood[code[k]] : 0) : 1;
      out[cut[k]] += weight[code[k]] * share[k] * held;
    }
    normalise(out);
    return out;
  }
}

/** What conditions say of the states of each node. */
function ownMessages(tree, said, likelihood) {
  const own = tree.column.map(() => null);
  for (const [j, { missing: isMissing, isPresent }] of said) {
    const [k, m] = [tree.node.get(j), tree.missingNode.get(j)];
    if (likelihood.has(j)) own[k] = times(own[k], ofCodes(tree.emission[k], likelihood.get(j), tree.states[k]));
    if (isMissing === undefined && !isPresent) continue;
    const rate = tree.blank[m] ?? new Float64Array(tree.states[m]);
    own[m] = times(own[m], Float64Array.from(rate, (x) => (isMissing ? x : 1 - x)));
  }
  return own;
}

/** p(evidence | state) from what it says of each code. */
function ofCodes(emission, likelihood, states) {
  const n = likelihood.length;
  const out = new Float64Array(states);
  const some = [...likelihood.keys()].filter((c) => likelihood[c] > 0);
  for (let h = 0; h < states; h += 1) for (const c of some) out[h] += likelihood[c] * emission[h * n + c];
  return out;
}

/** P(the cell of column j is missing). */
function missing(j, passes) {
  return passes.reduce((sum, { tree, own, rest, weight }) => {
    const k = tree.missingNode.get(j);
    if (!tree.blank[k]) return sum;
    let [held, total] = [0, 0];
    rest[k].forEach((x, h) => {
      const p = own[k] ? x * own[k][h] : x;
      total += p;
      held += p * tree.blank[k][h];
    });
    return sum + (weight * held) / total;
  }, 0);
}

export function normalise(mass) {
  const total = mass.reduce((sum, x) => sum + x, 0);
  for (let c = 0; c < mass.length; c += 1) mass[c] /= total;
}

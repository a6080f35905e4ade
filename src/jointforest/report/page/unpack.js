/** Reads the arrays that `embed.py` wrote. */

const KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };

/**
 * The bytes of a compressed text in base 64.
 * @param {string} text
 * @returns {Promise<ArrayBuffer>}
 */
export function bytesOf(text) {
  const squeezed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([squeezed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** An array where a description says that it lies; the machines that browsers run on store the lowest byte first. */
export function arrayOf(buffer, { as, n, at }) {
  const Kind = KINDS[as];
  return new Kind(buffer.slice(at, at + n * Kind.BYTES_PER_ELEMENT));
}

/** A table of probabilities, row after row: the squares of whole numbers of a few bits, times the scale of the column. */
export function tableOf(buffer, { rows, columns, bits, top, at }) {
  const n = rows * columns;
  const scale = arrayOf(buffer, top);
  const high = bits > 8 ? new Uint8Array(buffer, at, n) : null;
  const low = new Uint8Array(buffer, high ? at + n : at, n);
  const most = 2 ** bits - 1;
  const out = new Float32Array(n);
  for (let r = 0, k = 0; r < rows; r += 1)
    for (let c = 0; c < columns; c += 1, k += 1) {
      const share = (low[k] + (high ? 256 * high[k] : 0)) / most;
      out[k] = scale[c] * share * share;
    }
  return out;
}

/** The same, of rows that are distributions: each sums to 1, as it did before it was rounded. */
export function distributionsOf(buffer, described) {
  const table = tableOf(buffer, described);
  const { rows, columns } = described;
  for (let r = 0; r < rows; r += 1) {
    const row = table.subarray(r * columns, (r + 1) * columns);
    let total = 0;
    for (const x of row) total += x;
    for (let c = 0; total > 0 && c < columns; c += 1) row[c] /= total;
  }
  return table;
}

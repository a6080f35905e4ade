/** How many rows of the table answers rest on, as `inference/support.py` has it. */

/** Probability of the neighbourhood that a value with a density stands for. */
export const NEIGHBOURHOOD = 0.05;
/** Answers that rest on fewer rows are extrapolated. */
export const FEW = 5;

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** How many of n rows evidence stands for, in words. */
export function inWords(rows, n) {
  if (rows < FEW) return `extrapolated: fewer than ${FEW} of ${whole.format(n)} rows are like this`;
  const digits = 10 ** Math.max(Math.floor(Math.log10(rows)) - 2, 0);
  return `about ${whole.format(Math.round(rows / digits) * digits)} of ${whole.format(n)} rows`;
}

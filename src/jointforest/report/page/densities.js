/** Mass and density of what leaves of a forest say of a number: truncated normal, uniform, and Student t with 4 degrees. */

export const NORMAL = 0;
export const UNIFORM = 1;

/** The complementary error function: a Chebyshev fit, to nearly all digits wherever it is not 0. */
function erfc(x) {
  const z = Math.abs(x);
  const t = 2 / (2 + z);
  const ty = 4 * t - 2;
  let d = 0;
  let dd = 0;
  for (let j = COEFFICIENTS.length - 1; j > 0; j -= 1) [d, dd] = [ty * d - dd + COEFFICIENTS[j], d];
  const tail = t * Math.exp(-z * z + 0.5 * (COEFFICIENTS[0] + ty * d) - dd);
  return x >= 0 ? tail : 2 - tail;
}

// W. H. Press and others, Numerical Recipes, third edition (2007), section 6.2.2
const COEFFICIENTS = [
  -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4,
  3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.30365583558e-6, 1.5626441722e-8,
  -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12,
  -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17,
];

const normalTail = (z) => 0.5 * erfc(z * Math.SQRT1_2);

/** P(Z > z) of Student's t with 4 degrees of freedom, z >= 0. */
function studentTail(z) {
  const u = 0.5 * z;
  if (!(u < 1e150)) return 0;
  const c2 = 1 / (1 + u * u);
  const s = u * Math.sqrt(c2);
  return (c2 * c2 * (2 + s)) / (4 * (1 + s) * (1 + s));
}

/** Mass of (za, zb] of a standard distribution, by its tails, so that nothing is lost far out. */
function between(tail, za, zb) {
  if (za >= 0) return tail(za) - tail(zb);
  if (zb <= 0) return tail(-zb) - tail(-za);
  return 1 - tail(-za) - tail(zb);
}

const FAR = 36; // deviations from which on a normal density is next to exponential, and its tail too small to divide by

/** P(u < X <= v) of a leaf's distribution on (lo, hi]. */
export function mass(family, a, b, lo, hi, u, v) {
  const from = Math.max(u, lo);
  const to = Math.min(v, hi);
  if (!(from < to)) return 0;
  if (from === lo && to === hi) return 1;
  if (family === UNIFORM) return Math.min(1, (to - from) / (hi - lo));
  const z = (x) => (x - a) / b;
  if (family === NORMAL && (z(lo) > FAR || z(hi) < -FAR)) {
    const isAbove = z(lo) > 0;
    const rate = Math.abs(z(isAbove ? lo : hi)) / b;
    const near = isAbove ? from - lo : hi - to;
    const length = to - from;
    return (Math.exp(-rate * near) * Math.expm1(-rate * length)) / Math.expm1(-rate * (hi - lo));
  }
  const tail = family === NORMAL ? normalTail : studentTail;
  return Math.min(1, Math.max(0, between(tail, z(from), z(to)) / between(tail, z(lo), z(hi))));
}

/** Density at x of a leaf's distribution on (lo, hi]. */
export function density(family, a, b, lo, hi, x) {
  if (!(lo < x && x <= hi)) return 0;
  if (family === UNIFORM) return 1 / (hi - lo);
  const z = (x - a) / b;
  const norm = between(family === NORMAL ? normalTail : studentTail, (lo - a) / b, (hi - a) / b);
  const standard = family === NORMAL ? Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI) : 0.375 * (1 + 0.25 * z * z) ** -2.5;
  return standard / b / norm;
}

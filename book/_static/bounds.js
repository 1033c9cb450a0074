// Three bounds of oralib for a page: the pure bound, the exact bound and the random-r bound.
//
// A plain script, without a framework, that also works from file://. The numbers are computed from
// the formulas of oralib/ground/binomial.py, oralib/bounds/exact.py and random_r.py; a test compares
// them with oralib on a thousand inputs. An audit has v, r, n, delta, beta and expected, the number of
// guesses that was expected, or null.
(() => {
  "use strict";

  // ---------------------------------------------------------------------------------------------
  // Binomial laws to full relative precision. A guess is right with probability q = p(ε), and
  // wrong with qc = 1 - q; both are exact.

  const HALF_LOG_TWO_PI = 0.5 * Math.log(2 * Math.PI);

  /** p(ε). */
  function chanceOfRight(epsilon) {
    return 1 / (1 + Math.exp(-epsilon));
  }

  /** 1 - p(ε). */
  function chanceOfWrong(epsilon) {
    const odds = Math.exp(-epsilon);
    return odds / (1 + odds);
  }

  /** log k! minus Stirling's formula, for k >= 1. */
  function stirlingError(k) {
    if (k < 16) {
      let factorial = 1;
      for (let factor = 2; factor <= k; factor++) factorial *= factor;
      return Math.log(factorial) - (k + 0.5) * Math.log(k) + k - HALF_LOG_TWO_PI;
    }
    const square = k * k;
    let series = 1 / 1680 - 1 / 1188 / square;
    series = 1 / 1260 - series / square;
    series = 1 / 360 - series / square;
    return (1 / 12 - series / square) / k;
  }

  /** x log(x / mean) + mean - x without cancellation (Loader, 2000). */
  function deviance(x, mean) {
    const gap = x - mean;
    const sum = x + mean;
    if (Math.abs(gap) >= 0.1 * sum) return x * Math.log(x / mean) + mean - x;
    const share = gap / sum;
    let total = gap * share;
    let power = 2 * x * share;
    for (let j = 1; ; j++) {
      power *= share * share;
      const next = total + power / (2 * j + 1);
      if (next === total) return total;
      total = next;
    }
  }

  /** log P[Bin(r, q) = k] by Loader's saddle-point expansion. */
  function logProbability(k, r, q, qc) {
    if (k < 0 || k > r) return -Infinity;
    if (r === 0) return 0;
    if (k === 0) return r * (q < 0.5 ? Math.log1p(-q) : Math.log(qc));
    if (k === r) return r * (qc < 0.5 ? Math.log1p(-qc) : Math.log(q));
    const errors = stirlingError(r) - stirlingError(k) - stirlingError(r - k);
    const atMean = errors + 0.5 * Math.log(r / (2 * Math.PI * k * (r - k)));
    return atMean - deviance(k, r * q) - deviance(r - k, r * qc);
  }

  /** P[Bin(r, q) >= k] / P[Bin(r, q) = k] for k above the mean. */
  function tailPerProbability(k, r, q, qc) {
    const variance = r * q * qc;
    return variance < 1e4 ? tailBySum(k, r, q / qc) : tailByFraction(k, r, q, qc);
  }

  /** The same by adding up its terms, all of them positive, of which few matter. */
  function tailBySum(k, r, odds) {
    let term = 1;
    let total = 1;
    for (let j = k; j < r; j++) {
      term *= (odds * (r - j)) / (j + 1);
      total += term;
      if (term < 1e-17 * total) break;
    }
    return total;
  }

  /** The same by the continued fraction of the incomplete beta function, with Lentz's method. */
  function tailByFraction(k, r, q, qc) {
    const a = k;
    const b = r - k + 1;
    let c = 1;
    let d = (a + 1) / (1 - b + (a + b) * qc);
    let value = d;
    for (let m = 1; m < r - k + 2; m++) {
      const even = (m * (b - m) * q) / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / (1 + even * d);
      c = 1 + even / c;
      value *= c * d;
      const odd = (-(a + m) * (a + b + m) * q) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / (1 + odd * d);
      c = 1 + odd / c;
      value *= c * d;
      if (Math.abs(c * d - 1) < 1e-16) break;
    }
    return value * qc;
  }

  /** P[Bin(r, q) >= k]. */
  function tail(k, r, q, qc) {
    if (k <= 0) return 1;
    if (k > r) return 0;
    if (k > r * q) {
      return Math.exp(logProbability(k, r, q, qc)) * tailPerProbability(k, r, q, qc);
    }
    const below = Math.exp(logProbability(k - 1, r, q, qc));
    return 1 - below * tailPerProbability(r - k + 1, r, qc, q);
  }

  // ---------------------------------------------------------------------------------------------
  // p-values and bounds, by the name of their rule: "pure", "exact" or "random r"

  /** The law of v or more right of r guesses at ε: its tail, and what the rules need of it. */
  function tailAt(epsilon, { v, r }) {
    const q = chanceOfRight(epsilon);
    const qc = chanceOfWrong(epsilon);
    const logProbabilityOfV = logProbability(v, r, q, qc);
    const probabilityOfV = Math.exp(logProbabilityOfV);
    const isAboveMean = v > r * q;
    const perProbability = isAboveMean
      ? tailPerProbability(v, r, q, qc)
      : tail(v, r, q, qc) / probabilityOfV;
    return {
      tail: isAboveMean ? probabilityOfV * perProbability : tail(v, r, q, qc),
      // The tail may be too small for a double, its logarithm never is.
      logTail: logProbabilityOfV + Math.log(perProbability),
      perProbability,
      logRight: q < 0.5 ? Math.log(q) : Math.log1p(-qc),
    };
  }

  /** The p-value of a privacy level ε >= 0. */
  function pValue(rule, audit, epsilon) {
    if (audit.v === 0) return 1;
    const law = tailAt(epsilon, audit);
    const leaks = audit.n * audit.delta;
    if (rule === "pure" || leaks === 0) return Math.min(law.tail, 1);
    const divisor = rule === "exact" ? audit.v / law.perProbability : openDivisor(audit, law);
    if (leaks >= divisor) return 1;
    const leaked = leaks / divisor;
    return Math.min(law.tail + leaked * (1 - law.tail), 1);
  }

  /** The divisor of n δ if r was not fixed: max(b, log f / log p(ε)), or 0 if B < b. */
  function openDivisor(audit, law) {
    const planned = plannedDivisor(audit);
    if (audit.v / law.perProbability < planned) return 0;
    return Math.max(planned, law.logTail / law.logRight);
  }

  /** The b that the rule "random r" is planned with, before the audit: as in random_r.py. */
  function plannedDivisor({ n, delta, beta, expected }) {
    const guesses = expected ?? Math.min(60, n);
    const half = Math.max(1, Math.floor(guesses / 2));
    const significant = leastSignificant(half, beta);
    const probability = Math.exp(logProbability(significant, half, 0.5, 0.5));
    const divisor = (significant * probability) / tail(significant, half, 0.5, 0.5);
    const safety = expected === null ? 0.6 : 0.8;
    const least = (n * delta) / (safety * beta);
    const most = (n * delta) / (0.1 * beta);
    return Math.min(Math.max(divisor, least), most);
  }

  /** The least number of right guesses of r that refutes ε = 0 at level β, or r. */
  function leastSignificant(r, beta) {
    let low = 0; // does not refute it
    let high = r;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (tail(middle, r, 0.5, 0.5) <= beta) high = middle;
      else low = middle;
    }
    return high;
  }

  /** The largest ε whose p-value is at most β, or 0. */
  function lowerBound(rule, audit) {
    // Lowered by a few units in the last place: a p-value that equals β but for rounding fails.
    const level = audit.beta * (1 - 1e-15);
    if (pValue(rule, audit, 0) > level) return 0;
    let low = 0;
    // The bound of r right of r guesses without δ, a closed form, exceeds that of any other count.
    let high = -Math.log(Math.expm1(-Math.log(level) / audit.r)) + 1e-9;
    while (high - low > 1e-15 * (1 + low)) {
      const middle = (low + high) / 2;
      if (pValue(rule, audit, middle) > level) high = middle;
      else low = middle;
    }
    return low;
  }

  globalThis.oralibBounds = { lowerBound, pValue };
})();

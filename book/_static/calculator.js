// The calculator page: counts of an audit in, the bound that is valid for it out.
//
// A plain script, without a framework, that also works from file://. It fills every element of the
// class "calculator"; what stands there before is for readers without JavaScript. The numbers are
// those of oralib, computed in the same way (oralib/ground/binomial.py and oralib/bounds); a test
// compares the two on a thousand inputs.
(() => {
  "use strict";

  // ---------------------------------------------------------------------------------------------
  // Binomial laws to full relative precision. As in oralib, a success probability is given by its
  // log-odds ε, so that q and qc = 1 - q are both exact.

  const HALF_LOG_TWO_PI = 0.5 * Math.log(2 * Math.PI);

  function odds(epsilon) {
    const small = Math.exp(-Math.abs(epsilon));
    const [q, qc] = [1 / (1 + small), small / (1 + small)];
    return epsilon >= 0 ? [q, qc] : [qc, q];
  }

  /** log k! minus Stirling's formula, for k >= 1. */
  function stirlingError(k) {
    if (k < 16) {
      let factorial = 1;
      for (let j = 2; j <= k; j++) factorial *= j;
      return Math.log(factorial) - (k + 0.5) * Math.log(k) + k - HALF_LOG_TWO_PI;
    }
    const k2 = k * k;
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / k2) / k2) / k2) / k2) / k;
  }

  /** x log(x / mean) + mean - x without cancellation (Loader, 2000). */
  function deviance(x, mean) {
    const gap = x - mean;
    if (Math.abs(gap) >= 0.1 * (x + mean)) return x * Math.log(x / mean) + mean - x;
    const d = gap / (x + mean);
    let total = gap * d;
    let power = 2 * x * d;
    for (let j = 1; ; j++) {
      power *= d * d;
      const better = total + power / (2 * j + 1);
      if (better === total) return total;
      total = better;
    }
  }

  /** log P[Bin(r, q) = k] by Loader's saddle-point expansion. */
  function logPmf(k, r, q, qc) {
    if (k < 0 || k > r) return -Infinity;
    if (r === 0) return 0;
    if (k === 0) return r * (q < 0.5 ? Math.log1p(-q) : Math.log(qc));
    if (k === r) return r * (qc < 0.5 ? Math.log1p(-qc) : Math.log(q));
    const errors = stirlingError(r) - stirlingError(k) - stirlingError(r - k);
    const atMean = errors + 0.5 * Math.log(r / (2 * Math.PI * k * (r - k)));
    return atMean - deviance(k, r * q) - deviance(r - k, r * qc);
  }

  const pmf = (k, r, q, qc) => Math.exp(logPmf(k, r, q, qc));

  /** P[Bin(r, q) >= k] / P[Bin(r, q) = k] for k above the mean. */
  function tailOverPmf(k, r, q, qc) {
    if (r * q * qc < 1e4) {
      // Few terms matter, and all are positive: add them up.
      const ratio = q / qc;
      let term = 1;
      let total = 1;
      for (let j = k; j < r; j++) {
        term *= (ratio * (r - j)) / (j + 1);
        total += term;
        if (term < 1e-17 * total) break;
      }
      return total;
    }
    // The continued fraction of the incomplete beta function, by Lentz's method, needs far fewer.
    const [a, b] = [k, r - k + 1];
    let c = 1;
    let d = (a + 1) / (1 - b + (a + b) * qc);
    let value = d;
    for (let m = 1; m < r - k + 2; m++) {
      let term = (m * (b - m) * q) / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / (1 + term * d);
      c = 1 + term / c;
      value *= c * d;
      term = (-(a + m) * (a + b + m) * q) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / (1 + term * d);
      c = 1 + term / c;
      value *= c * d;
      if (Math.abs(c * d - 1) < 1e-16) break;
    }
    return value * qc;
  }

  /** P[Bin(r, q) >= k]. */
  function tail(k, r, q, qc) {
    if (k <= 0) return 1;
    if (k > r) return 0;
    if (k > r * q) return pmf(k, r, q, qc) * tailOverPmf(k, r, q, qc);
    return 1 - pmf(k - 1, r, q, qc) * tailOverPmf(r - k + 1, r, qc, q);
  }

  /** [start, mean] of the window of counts [start, v) with the largest mean probability. */
  function bestWindow(v, r, q, qc) {
    const mode = Math.floor((r + 1) * q);
    if (v - 1 <= mode) return [v - 1, pmf(v - 1, r, q, qc)];
    const beyond = tail(v, r, q, qc);
    const grows = (start) =>
      pmf(start - 1, r, q, qc) > (tail(start, r, q, qc) - beyond) / (v - start);
    // The window from `high` can still gain by growing, the one from `low` cannot.
    let high = mode + 1;
    let step = Math.floor(Math.sqrt(r * q * qc)) + 1;
    let low = Math.max(mode + 1 - step, 0);
    while (low > 0 && grows(low)) {
      high = low;
      step *= 2;
      low = Math.max(low - step, 0);
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (grows(middle)) high = middle;
      else low = middle;
    }
    const whole = tail(low, r, q, qc);
    if (v - low > 4096 || beyond < 0.5 * whole) return [low, (whole - beyond) / (v - low)];
    // The difference of two close tails has lost digits: add up the terms of the short window.
    let term = pmf(v - 1, r, q, qc);
    let mass = term;
    for (let j = v - 1; j > low; j--) {
      term *= (j * qc) / ((r - j + 1) * q);
      mass += term;
    }
    return [low, mass / (v - low)];
  }

  /** [f, c]: oralib/bounds/crossing.py. Right guesses meet the line with probability f + c n δ. */
  function crossingConstants(line, epsilon) {
    const [q, qc] = odds(epsilon);
    const n = line.length - 1;
    const far = 2 * Math.sqrt(n * q * qc) + 50;
    // By v: f, 1 - f and c for the time t + 1; beyond the line the walk has met it.
    const f = new Float64Array(n + 3).fill(1);
    const [g, c] = [new Float64Array(n + 3), new Float64Array(n + 3)];
    let behind = Math.max(0, Math.floor(q * n - far));
    f.fill(0, behind, line[n]);
    g.fill(1, behind, line[n]);
    for (let t = n - 1; t >= 0; t--) {
      const low = Math.max(0, Math.floor(q * t - far));
      for (const values of [f, g, c]) values.fill(values[behind], low, behind);
      behind = low;
      const high = Math.min(t + 1, line[t]);
      for (let v = low; v < high; v++) {
        const fDown = f[v];
        const gDown = g[v];
        const cDown = c[v];
        const fUp = f[v + 1];
        const gUp = g[v + 1];
        const cUp = c[v + 1];
        const gain = fUp > 0.5 ? gDown - gUp : fUp - fDown;
        let most = Math.max(q * cUp + qc * cDown, qc * gain);
        if (cUp > 0) {
          const half = (gUp + qc * gain) / (gUp / cUp + 1);
          most = Math.max(most, half, cUp * (1 - (qc * gain) / Math.max(fUp, 1e-300)));
        }
        if (cDown > 0) {
          const half = ((fDown + q * gain) * qc) / ((fDown * qc) / cDown + q);
          most = Math.max(most, half, cDown * (1 - (q * gain) / Math.max(gDown, 1e-300)));
        }
        f[v] = q * fUp + qc * fDown;
        g[v] = q * gUp + qc * gDown;
        c[v] = most;
      }
      for (let v = line[t]; v < Math.min(line[t + 1], t + 1); v++) [f[v], g[v], c[v]] = [1, 0, 0];
    }
    return [f[0], c[0]];
  }

  /** f + c n δ for v or more right of r guesses in any order, 1 < v < r. */
  function anyOrderPValue({ v, r, budget }, epsilon) {
    const [q, qc] = odds(epsilon);
    const ahead = v + 8 * Math.sqrt(r * q * qc) + 50;
    const line = Array.from({ length: r + 1 }, (_, t) =>
      Math.min(v, Math.max(1, Math.ceil(ahead - q * (r - t)))),
    );
    const [f, c] = crossingConstants(line, epsilon);
    return f + c * budget;
  }

  // ---------------------------------------------------------------------------------------------
  // p-values and bounds, by rule. An audit has v, r, budget = n δ, and leastB, the b of the rule
  // "random r".

  /** [p-value before it is capped at 1, its derivative in ε]. */
  function pValueAndSlope(rule, audit, epsilon) {
    const { v, r, budget, leastB } = audit;
    if (v === 0) return [1, 0];
    const [q, qc] = odds(epsilon);
    const w = pmf(v, r, q, qc);
    let f, ratio;
    if (v > r * q) {
      ratio = tailOverPmf(v, r, q, qc);
      f = w * ratio;
    } else {
      f = tail(v, r, q, qc);
      ratio = f / w;
    }
    let slope = v * w; // times qc: d/dε P[Bin(r, q) >= k] = k pmf(k) (1 - q)
    if (budget === 0 || rule === "pure") return [f, slope * qc];
    if (rule === "steinke") {
      const [start, mean] = bestWindow(v, r, q, qc);
      slope += ((2 * budget) / (v - start)) * (start * pmf(start, r, q, qc) - slope);
      return [f + 2 * budget * mean, slope * qc];
    }
    if (rule === "any order" && 1 < v && v < r) {
      const value = anyOrderPValue(audit, epsilon);
      return [value, (anyOrderPValue(audit, epsilon + 1e-6) - value) / 1e-6];
    }
    let b = v / ratio;
    let bSlope = b * (v - r * q - qc * b);
    if (rule === "random r") {
      if (b < leastB) return [1, 0];
      const logQ = q < 0.5 ? Math.log(q) : Math.log1p(-qc);
      // f may be too small for a double, its logarithm never is.
      const logF = f > 1e-300 ? Math.log(f) : logPmf(v, r, q, qc) + Math.log(ratio);
      bSlope = (qc * b) / logQ - (logF * qc) / logQ ** 2;
      b = logF / logQ;
      if (!(b > leastB)) [b, bSlope] = [leastB, 0];
    }
    if (!(budget < b)) return [1, 0];
    const x = budget / b;
    return [f + x * (1 - f), slope * qc * (1 - x) - ((x * bSlope) / b) * (1 - f)];
  }

  /** The largest ε >= 0 whose p-value is at most β, or 0: Newton's method inside a bracket. */
  function lowerBound(rule, audit, level) {
    const { v, r } = audit;
    // Lowered by a few units in the last place: a p-value that equals β but for rounding fails.
    const beta = level * (1 - 1e-15);
    if (v === 0 || !(pValueAndSlope(rule, audit, 0)[0] <= beta)) return 0;
    let low = 0;
    // The bound of r right of r guesses without δ, a closed form, exceeds that of any other count.
    let high = -Math.log(Math.expm1(-Math.log(beta) / r)) + 1e-9;
    let x =
      Math.log((v + 0.5) / (r - v + 0.5)) -
      1.6 * Math.sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5));
    for (let round = 1; high - low > 1e-15 * (1 + low); round++) {
      if (!(low < x && x < high) || round > 64) {
        x = 0.5 * (low + high);
        if (!(low < x && x < high)) break;
      }
      const [value, slope] = pValueAndSlope(rule, audit, x);
      if (value > beta) high = x;
      else low = x;
      // A p-value or slope of 0, by underflow, tells nothing: bisect.
      const step =
        value > 0 && slope > 0 ? (value * Math.log(beta / value)) / slope : Infinity;
      if (Math.abs(step) <= 1e-15 * (1 + Math.abs(x))) break;
      x += step;
    }
    // The last point may lie a rounding error above the root: step back until it does not.
    x = Math.min(Math.max(x, low), high);
    let back = 1e-16 * (1 + x);
    while (x > low && pValueAndSlope(rule, audit, x)[0] > beta) {
      x -= back;
      back *= 2;
    }
    return Math.max(x, low);
  }

  /** log of the e-process of the anytime bound: see oralib/bounds/anytime.py. */
  function logEValue(v, r, epsilon) {
    const [q, qc] = odds(epsilon);
    const wrong = r + 1 - v;
    if (v <= (r + 1) * q) return Math.log(tailOverPmf(wrong, r + 1, qc, q) / wrong);
    const below = Math.log1p(-tail(v + 1, r + 1, q, qc));
    return below - Math.log(wrong) - logPmf(v, r + 1, q, qc);
  }

  /** The largest ε with M >= 1/β and p(ε) <= v / (r + 1), or 0. */
  function anytimeBound({ v, r }, beta) {
    if (2 * v <= r + 1) return 0;
    let low = 0;
    let high = Math.log(v / (r + 1 - v));
    if (logEValue(v, r, low) < -Math.log(beta)) return 0;
    if (logEValue(v, r, high) >= -Math.log(beta)) return high;
    for (;;) {
      const middle = 0.5 * (low + high);
      if (!(low < middle && middle < high) || high - low < 1e-14 * (1 + low)) return low;
      if (logEValue(v, r, middle) >= -Math.log(beta)) low = middle;
      else high = middle;
    }
  }

  /** 1 / M, and 1 where the e-process M does not count. */
  function anytimePValue({ v, r }, epsilon) {
    if (2 * v <= r + 1 || epsilon > Math.log(v / (r + 1 - v))) return 1;
    return Math.min(Math.exp(-logEValue(v, r, epsilon)), 1);
  }

  /** The counts and the level of the certified rule before its certificate, and its shifts. */
  function shifted({ v, r, budget, beta }) {
    const ratio = budget / beta;
    const last = Math.max(1, Math.ceil(ratio ** 2 / 5 + 10 * ratio));
    const first = Math.max(0, Math.ceil(ratio / 2 - 0.25));
    const shift = (t) => Math.ceil((first * Math.max(last - t, 0)) / last);
    const level = beta - Math.min(budget / 4, beta / 20);
    return { counts: { v: Math.max(v - shift(r), 0), r }, level, shift };
  }

  /** The largest multiple of 0.001 with a certificate: free_to_stop_bounds of oralib. */
  function certifiedBound(audit) {
    const { n, beta, budget } = audit;
    const { counts, level, shift } = shifted(audit);
    let thousandths = Math.floor(anytimeBound(counts, level) * 1000);
    for (; thousandths > 0; thousandths--) {
      const epsilon = thousandths / 1000;
      const reaches = (v, r) =>
        2 * v > r + 1 &&
        epsilon - 1e-9 <= Math.log(v / (r + 1 - v)) &&
        logEValue(v, r, epsilon - 1e-9) >= -Math.log(level);
      const line = [1];
      for (let r = 1; r <= n; r++) line.push(line[r - 1] + (reaches(line[r - 1], r) ? 0 : 1));
      const [f, c] = crossingConstants(line.map((v, t) => v + shift(t)), epsilon);
      if (f + c * budget <= beta) break;
    }
    return thousandths / 1000;
  }

  /** log k!, by which balanced coins are counted. */
  const logFactorial = (k) =>
    k < 1 ? 0 : stirlingError(k) + (k + 0.5) * Math.log(k) - k + HALF_LOG_TWO_PI;

  /** What of the balanced p-value does not depend on ε: _flips of oralib/bounds/balanced.py. */
  function balancedFlips({ v: right, r, n, r_in }) {
    const half = n / 2;
    const sizes = [r_in, r - r_in];
    const v = Math.min(right, Math.min(sizes[0], half) + Math.min(sizes[1], half));
    const least = Math.max(0, v - Math.min(sizes[1], half));
    const most = Math.min(sizes[0], half, v);
    const possible = [least, v - most];
    const cost = new Float64Array(most - least + 1); // for each number of right "included"
    const choose = (k) => 2 * logFactorial(half) - logFactorial(k) - logFactorial(n - k);
    const logs = Float64Array.from({ length: r + 2 }, (_, k) => Math.log(k));
    const flipped = [0, 0];
    let included = half;
    const flips = { main: [0], leak: [] };
    for (;;) {
      const side = flipped[0] * sizes[1] > flipped[1] * sizes[0] ? 1 : 0;
      if (flipped[side] >= possible[side]) return flips;
      let [leak, main] = [-Infinity, -Infinity];
      for (let i = 0; i < cost.length; i++) {
        const x = (side ? v - least - i : least + i) - flipped[side];
        leak = Math.max(leak, cost[i] - logs[x]);
        cost[i] += logs[sizes[side] - x + 1] - logs[x];
        main = Math.max(main, cost[i]);
      }
      flips.leak.push(Math.log(side ? n - included : included) + leak + choose(included));
      flipped[side]++;
      included += side ? 1 : -1;
      flips.main.push(main + choose(included));
    }
  }

  function balancedPValue({ v, delta, flips }, epsilon) {
    if (v === 0) return 1;
    let [least, leaks] = [1, 0];
    flips.main.forEach((main, t) => {
      if (t > 0) leaks += Math.exp(Math.min((t - 1) * epsilon + flips.leak[t - 1], 600));
      least = Math.min(least, Math.exp(Math.min(t * epsilon + main, 600)) + delta * leaks);
    });
    return least;
  }

  function balancedBound(audit, beta) {
    const passes = (epsilon) => balancedPValue(audit, epsilon) <= beta * (1 - 1e-12);
    let [low, high] = [0, 1];
    if (!passes(low)) return 0;
    while (passes(high)) [low, high] = [high, 2 * high];
    while (high - low > 1e-13 * (1 + high)) {
      const middle = (low + high) / 2;
      [low, high] = passes(middle) ? [middle, high] : [low, middle];
    }
    return low;
  }

  /** The bound of a rule; for the anytime bound δ must be 0, or the rule the certified one. */
  function boundOf(rule, audit, beta) {
    if (rule === "anytime certified") return certifiedBound(audit);
    if (rule === "balanced") return balancedBound(audit, beta);
    return rule === "anytime" ? anytimeBound(audit, beta) : lowerBound(rule, audit, beta);
  }

  /** The p-value of a rule at a privacy level ε. */
  function pValue(rule, audit, epsilon) {
    if (rule === "anytime certified") {
      // Made for one β: of its curve only the place where it meets β counts.
      const { counts, level } = shifted(audit);
      return Math.min((anytimePValue(counts, epsilon) * audit.beta) / level, 1);
    }
    if (rule === "balanced") return balancedPValue(audit, epsilon);
    if (rule === "anytime") return anytimePValue(audit, epsilon);
    return Math.min(pValueAndSlope(rule, audit, epsilon)[0], 1);
  }

  /** The b that the rule "random r" is planned with: planned_b of oralib. */
  function plannedB({ n, delta, beta, expected }) {
    const r = Math.max(1, Math.floor((expected ?? Math.min(60, n)) / 2));
    let [low, high] = [0, r]; // `low` does not reject ε = 0
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (tail(middle, r, 0.5, 0.5) <= beta) high = middle;
      else low = middle;
    }
    const b = (high * pmf(high, r, 0.5, 0.5)) / tail(high, r, 0.5, 0.5);
    const least = (n * delta) / ((expected === null ? 0.6 : 0.8) * beta);
    return Math.min(Math.max(b, least), (n * delta) / (0.1 * beta));
  }

  // ---------------------------------------------------------------------------------------------
  // Which bound is valid: oralib/bounds/valid.py

  const RULES = ["pure", "steinke", "exact", "random r", "anytime"];

  /** [the rule that is proved for such an audit, or null, and then why there is none]. */
  function validRule({ delta, number, feedback, coins }) {
    if (coins === "balanced") {
      if (feedback === "none" && number === "fixed") return ["balanced", null];
      return [
        null,
        "with balanced coins a bound is known only for a number of guesses fixed in advance " +
          "and no feedback",
      ];
    }
    if (feedback === "all others") {
      return [null, "no bound is valid for a guesser who knows all other elements"];
    }
    if ((feedback === "full" || feedback === "list") && number !== "fixed") {
      return [delta > 0 ? "anytime certified" : "anytime", null];
    }
    if (delta === 0) return ["pure", null];
    if (number !== "fixed") return ["random r", null];
    return [feedback === "full" ? "any order" : "exact", null];
  }

  /** What a bound is for this audit: [whether it is valid, in words]. */
  function standing(rule, audit) {
    const { delta, beta, number, feedback, coins } = audit;
    const fixed = number === "fixed";
    const told = feedback === "full" || feedback === "list";
    if (rule === validRule(audit)[0]) return [true, "valid: use this one"];
    if (coins !== "independent") return [false, "not valid: no fair coin for each element"];
    if (feedback === "all others") return [false, "not valid: all other elements are known"];
    const pure = rule === "pure" || rule === "anytime" || delta === 0;
    if (pure && rule !== "anytime" && told && !fixed) {
      return [false, "not valid: the guesser knew how it was doing, and r was not fixed"];
    }
    if (!pure && (feedback === "full" || (told && !fixed))) {
      return [false, "not proved for such feedback"];
    }
    if (!pure && rule !== "random r" && !fixed) return [false, "not proved: r was not fixed"];
    if (!pure && rule === "steinke" && beta > 0.5) return [false, "not proved for β above ½"];
    if (pure && delta > 0) return [false, "for claims with δ\u00a0=\u00a00 only"];
    if (delta === 0 && rule !== "anytime") return [true, "for δ\u00a0=\u00a00 the same as ε′(v, r)"];
    return [true, "also valid"];
  }

  /** All numbers of an audit with checked inputs; expected and r_in may be null. */
  function compute(inputs) {
    const { v, r, n, delta, beta } = inputs;
    const audit = { ...inputs, budget: n * delta, leastB: plannedB(inputs) };
    const [rule, reason] = validRule(audit);
    if (rule === "balanced") audit.flips = balancedFlips(audit);
    const shown = rule === null || RULES.includes(rule) ? RULES : [...RULES, rule];
    const bounds = Object.fromEntries(shown.map((name) => [name, boundOf(name, audit, beta)]));
    return {
      ...audit,
      bounds,
      rule,
      reason,
      bound: rule === null ? null : bounds[rule],
      // Infinite if all guesses are right. As logit(v / r) of oralib, but without its rounding.
      estimate: r > 0 ? Math.log(v / (r - v)) : null,
    };
  }

  // ---------------------------------------------------------------------------------------------
  // Inputs as text, and what is wrong with them

  const MOST_GUESSES = 1e9; // beyond, digits get lost
  const MOST = { "any order": 3000, "anytime certified": 40000, balanced: 20000 }; // within a second
  const MOST_ELEMENTS = 2 ** 53;
  const SMALLEST_LEVEL = 1e-300; // below, p-values have few digits, or none
  const TOO_SMALL = "This is too small to compute with.";

  const NUMBERS = [
    { name: "v", label: "right guesses", symbol: "v" },
    { name: "r", label: "guesses", symbol: "r" },
    { name: "n", label: "elements", symbol: "n" },
    { name: "delta", label: "of the claim", symbol: "δ" },
    { name: "beta", label: "failure probability", symbol: "β" },
  ];
  /** Numbers that only one rule asks for. */
  const EXTRAS = [
    { name: "expected", label: "guesses expected, if known before", rule: "random r" },
    { name: "r_in", label: "guesses that say “included”", rule: "balanced" },
  ];
  const ruleOf = (raw) => validRule({ ...raw, delta: parse(raw.delta) })[0];
  const CHOICES = [
    {
      name: "number",
      legend: "The number of guesses r was",
      options: { fixed: "fixed in advance", output: "not fixed in advance" },
    },
    {
      name: "feedback",
      legend: "While guessing, the guesser was told",
      options: {
        none: "nothing",
        "one-way": "one-way: coins of skipped elements",
        list: "list: coins of earlier elements on a fixed list",
        full: "full: coins of all elements it is done with",
        "all others": "all other coins",
      },
    },
    {
      name: "coins",
      legend: "The elements were included",
      options: { independent: "by a fair coin each", balanced: "exactly half of them" },
    },
  ];
  const EXAMPLE = {
    ...{ v: "75", r: "100", n: "1000", delta: "1e-5", beta: "0.05" },
    ...{ number: "fixed", feedback: "none", coins: "independent" },
  };
  const EXAMPLES = {
    "a fixed number of guesses": EXAMPLE,
    "a threshold on the privacy loss": {
      ...{ ...EXAMPLE, v: "160", r: "210", n: "10000", number: "output" },
    },
    "exactly half of the elements": {
      ...{ ...EXAMPLE, v: "160", r: "210", coins: "balanced", r_in: "105" },
    },
    "a guesser that was told its successes and could stop": {
      ...{ ...EXAMPLE, v: "731", r: "1000", delta: "0", number: "output", feedback: "full" },
    },
  };

  const shorten = (text) => (text.length > 30 ? `${text.slice(0, 30)}…` : text);

  /** A number, or a sentence that says why the text is none. Also 10^-5 and 64,000 are numbers. */
  function parse(text) {
    const typed = text.trim().replace(/[−–]/g, "-").replace(/(\d)_(?=\d)/g, "$1");
    const clean = /^[1-9]\d{0,2}(,\d{3})+$/.test(typed) ? typed.replaceAll(",", "") : typed;
    if (clean === "") return "Please fill this in.";
    const power = /^(?:(\d+\.?\d*|\.\d+)\s*[*·×x]\s*)?10\s*(?:\^|\*\*)\s*([+-]?\d+)$/.exec(clean);
    const written = power ? `${power[1] ?? 1}e${power[2]}` : clean;
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written)) {
      if (/^[\d.,]+$/.test(clean)) return "Please write 64,000 or 0.05.";
      if (/^[\d.]+\s*%$/.test(clean)) return "Please write 0.05 for 5%.";
      return `“${shorten(clean)}” is not a number.`;
    }
    const value = Number(written);
    const vanished = value === 0 && /[1-9]/.test(written.split(/e/i)[0]);
    return vanished ? TOO_SMALL : value;
  }

  function parseCount(name, text, most) {
    if (/^\s*\d{1,3}(\.\d{3})+\s*$/.test(text)) return "Please write 64,000 or 64000.";
    const value = parse(text);
    if (typeof value === "string") return value;
    if (value < 0) return `${name} must be at least 0.`;
    if (value > most) return `${name} may be at most ${grouped(most)} here.`;
    return Number.isInteger(value) ? value : `${name} must be a whole number.`;
  }

  /** { inputs, messages }: numbers and choices, and a message for each that is not right. */
  function check(raw) {
    const found = {
      v: parseCount("v", raw.v, MOST_GUESSES),
      r: parseCount("r", raw.r, MOST_GUESSES),
      n: parseCount("n", raw.n, MOST_ELEMENTS),
      delta: parse(raw.delta),
      beta: parse(raw.beta),
    };
    const isNumber = (...names) => names.every((name) => typeof found[name] === "number");
    if (isNumber("delta") && !(found.delta >= 0 && found.delta <= 1)) {
      found.delta = "δ must be from 0 to 1.";
    }
    if (isNumber("beta") && !(found.beta > 0 && found.beta < 1)) {
      found.beta = "β must be above 0 and below 1.";
    } else if (isNumber("beta") && found.beta < SMALLEST_LEVEL) {
      found.beta = TOO_SMALL;
    }
    if (isNumber("v", "r") && found.v > found.r) {
      found.v = `v must be at most r = ${grouped(found.r)}.`;
    }
    if (isNumber("r", "n") && found.r > found.n) {
      found.r = `r must be at most n = ${grouped(found.n)}.`;
    }
    const rule = ruleOf(raw);
    const limited = rule === "anytime certified" ? "n" : "r";
    if (found[limited] > MOST[rule]) {
      const most = `${limited} may be at most ${grouped(MOST[rule])} in the browser`;
      found[limited] = `For the ${NAMES[rule]}, ${most}. Python takes more.`;
    }
    if (raw.coins === "balanced" && isNumber("n") && found.n % 2) {
      found.n = "n must be even if exactly half were included.";
    }
    found.r_in = rule === "balanced" ? parseCount("This", raw.r_in, found.r) : null;
    const expects = rule === "random r" && raw.expected.trim() !== "";
    found.expected = expects ? parseCount("This", raw.expected, found.n) : null;
    if (found.expected === 0) found.expected = "This must be at least 1.";
    const messages = {};
    for (const [name, value] of Object.entries(found)) {
      if (typeof value === "string") messages[name] = value;
    }
    for (const { name, options } of CHOICES) {
      found[name] = raw[name];
      if (!Object.hasOwn(options, raw[name])) messages[name] = "Please choose one.";
    }
    return { inputs: found, messages };
  }

  // ---------------------------------------------------------------------------------------------
  // Numbers and results in words

  const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

  /** All digits of a number, as people type it: 0.05, 1e-5. */
  function exactly(value) {
    return value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
  }

  /** Few digits of a number, for orientation. */
  function roughly(value) {
    return exactly(Number(value.toPrecision(3)));
  }

  /** Three digits after the point, or three that count, that are not above the bound. */
  function down(bound) {
    if (bound === 0) return "0";
    if (bound < 1e-4) {
      const exponent = Math.floor(Math.log10(bound));
      const mantissa = Math.floor((bound / 10 ** exponent) * 100) / 100;
      return `${mantissa.toFixed(2)}e${exponent}`;
    }
    const digits = bound >= 0.1 ? 3 : 2 - Math.floor(Math.log10(bound));
    return (Math.floor((bound * 10 ** digits).toPrecision(15)) / 10 ** digits).toFixed(digits);
  }

  function confidence(beta) {
    if (beta < 1e-6) return `confidence 1 − ${exactly(beta)}`; // not rounded to 100%
    return `${Number((100 - 100 * beta).toPrecision(10))}% confidence`;
  }

  /** How a claim reads at this δ. */
  const claim = (delta, epsilon = "ε") =>
    delta === 0 ? `${epsilon}-DP` : `(${epsilon}, ${exactly(delta)})-DP`;

  /** [headline, sentence] that say what the audit has shown, and no more. */
  function words(audit) {
    const { bound, beta, delta, reason } = audit;
    if (bound === null) {
      return ["No bound for this audit", `${reason[0].toUpperCase()}${reason.slice(1)}.`];
    }
    if (bound === 0) {
      const why = whyNothing(audit);
      return ["Nothing is shown", `No ε is refuted at δ = ${exactly(delta)}, ${why}.`];
    }
    return [
      `ε is at least\u00a0${down(bound)} at\u00a0δ\u00a0=\u00a0${exactly(delta)}`,
      `With ${confidence(beta)}, this mechanism is not ${claim(delta)} ` +
        `for any ε below ${down(bound)}.`,
    ];
  }

  function whyNothing({ v, r, budget, beta, bounds, rule }) {
    if (r === 0) return "since there are no guesses";
    if (2 * v <= r) return "since no more than half the guesses are right";
    if (bounds.pure === 0) {
      return `since blind guesses do as well with a probability above ${exactly(beta)}`;
    }
    if (rule.startsWith("anytime") && bounds.anytime === 0) {
      return "since more right guesses are needed if the guesser may stop when it likes";
    }
    if (rule === "balanced") {
      return "since more right guesses are needed if exactly half of the elements are included";
    }
    return (
      `since a mechanism may reveal n δ = ${roughly(budget)} elements outright, too many for so ` +
      `few guesses and β = ${exactly(beta)}`
    );
  }

  function suggests({ v, r, estimate }) {
    if (r === 0) return "No guess was taken, so there is no accuracy and no estimate.";
    const percent = Math.floor((1e4 * v) / r) / 100; // 100 only if all are right
    const infinite = estimate > 0 ? "∞" : "−∞";
    const epsilon = Number.isFinite(estimate) ? estimate.toFixed(3).replace("-", "−") : infinite;
    return (
      `${grouped(v)} of ${grouped(r)} guesses are right, or ${percent}%: by the accuracy alone ` +
      `ε = ${epsilon}. This is an estimate, not a bound.`
    );
  }

  /** Lines that compute the same bound with the library. */
  function pythonLines({ v, r, n, delta, beta, number, feedback, coins, expected, r_in }) {
    const setup = [
      `${v}, ${r}, n=${n}`,
      ...(number === "fixed" ? ["r_fixed=True"] : []),
      ...(feedback === "none" ? [] : [`feedback="${feedback}"`]),
      ...(coins === "independent" ? [] : [`coins="${coins}", r_in=${r_in ?? 0}`]),
    ];
    return [
      "import oralib",
      "",
      `counts = oralib.Counts(${setup.join(", ")})`,
      `oralib.valid_lower_bound(counts, beta=${exactly(beta)}, delta=${exactly(delta)}` +
        `${expected === null ? "" : `, expected=${expected}`})`,
    ].join("\n");
  }

  const NAMES = {
    pure: "bound ε′(v, r)",
    steinke: "Steinke et al.’s bound",
    exact: "exact bound",
    "random r": "random-r bound",
    anytime: "anytime bound",
    "any order": "any-order bound",
    "anytime certified": "certified anytime bound",
    balanced: "balanced bound",
  };

  const ONE_LEVEL = "The bold curve is for this β only: nowhere else is it a p-value.";

  function assumes(rule, expected) {
    const told = "any feedback except all other coins";
    return {
      pure: "δ = 0, and r fixed in advance or feedback nothing or one-way",
      steinke: "r fixed in advance; feedback nothing, one-way or list; β at most ½",
      exact: "r fixed in advance; feedback nothing, one-way or list",
      "random r": `feedback nothing or one-way; planned for ${grouped(expected ?? 60)} guesses`,
      anytime: `δ = 0; ${told}; any reason to stop`,
      "any order": `r fixed in advance; ${told}`,
      "anytime certified": `${told}; any reason to stop`,
      balanced: "exactly half included; no feedback; r and the number of “included” fixed in advance",
    }[rule];
  }

  // ---------------------------------------------------------------------------------------------
  // The page

  const SVG = ["svg", "path", "line", "rect", "circle", "text", "clipPath", "defs"];

  /** An element with attributes and children; text is never read as HTML. */
  function make(tag, attributes = {}, ...children) {
    const node = SVG.includes(tag)
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function numberField({ name, label, symbol = "" }) {
    const id = `calculator-${name}`;
    return make(
      "div",
      { class: "field" },
      make("label", { for: id }, make("i", {}, symbol), symbol && " ", label),
      make("input", {
        ...{ id, name, type: "text", inputmode: /^(delta|beta)$/.test(name) ? "text" : "numeric" },
        ...{ autocomplete: "off", autocapitalize: "off", spellcheck: "false" },
        "aria-describedby": `${id}-message`,
      }),
      make("p", { id: `${id}-message`, class: "message" }),
    );
  }

  function choiceField({ name, legend, options }) {
    const id = `calculator-${name}`;
    const pills = Object.entries(options).flatMap(([value, label], place) => [
      make("input", {
        ...{ type: "radio", name, value, id: `${id}-${place}` },
        "aria-describedby": `${id}-message`,
      }),
      make("label", { for: `${id}-${place}` }, label),
    ]);
    return make(
      "fieldset",
      {},
      make("legend", {}, legend),
      make("div", { class: "pills" }, ...pills),
      make("p", { id: `${id}-message`, class: "message" }),
    );
  }

  // --------------------------------------------------------------------------------- the chart

  /** At most about `most` round numbers from 0 to `top`. */
  function roundSteps(top, most) {
    const rough = top / most;
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = base * [1, 2, 5, 10].find((factor) => factor * base >= rough * (1 - 1e-9));
    const count = Math.floor(top / step + 1e-9);
    return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
  }

  /** The p-values of all rules over ε, with β, and the bound where the valid one reaches it. */
  function chart(audit, width) {
    const { bound, bounds, beta, rule, estimate } = audit;
    const height = Math.round(Math.min(320, Math.max(230, 0.55 * width)));
    const [left, right, top, bottom] = [52, width - 14, 24, height - 42];
    const guess = Number.isFinite(estimate) ? estimate : 0;
    const most = Math.max(1.25 * Math.max(...Object.values(bounds)), 1.1 * guess) || 1;
    const lowest = Math.floor(Math.log10(beta / 20)); // a power of ten
    const toX = (epsilon) => left + ((right - left) * epsilon) / most;
    const toY = (p) => {
      const power = Math.max(p > 0 ? Math.log10(p) : -Infinity, lowest - 1);
      return top + ((bottom - top) * power) / lowest;
    };
    const area = { x: left, y: top, width: right - left, height: bottom - top };
    const clip = make("clipPath", { id: "calculator-clip" }, make("rect", area));
    const parts = [make("defs", {}, clip), make("rect", { class: "frame", ...area })];

    for (const epsilon of roundSteps(most, Math.max(3, width / 90))) {
      const x = toX(epsilon);
      parts.push(make("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
      parts.push(make("text", { class: "x tick", x, y: bottom + 16 }, exactly(epsilon)));
    }
    const every = Math.ceil(-lowest / 6);
    for (let power = 0; power >= lowest; power -= every) {
      const y = top + ((bottom - top) * power) / lowest;
      parts.push(make("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      const label = power >= -3 ? String(Number(`1e${power}`)) : `1e${power}`;
      parts.push(make("text", { class: "y tick", x: left - 6, y: y + 4 }, label));
    }
    const middle = (left + right) / 2;
    parts.push(make("text", { class: "x", x: middle, y: height - 6 }, "hypothetical privacy level ε"));
    parts.push(make("text", { x: 6, y: 13 }, "p-value"));

    if (bound > 0) {
      parts.push(make("rect", { class: "refuted", ...area, width: toX(bound) - left }));
    }
    const curves = Object.keys(bounds).filter((name) => name !== rule).concat(rule ?? []);
    for (const name of curves) {
      parts.push(
        make("path", {
          class: `curve ${name}${name === rule ? " picked" : ""}`,
          "clip-path": "url(#calculator-clip)",
          d: curve(name, audit, most, toX, toY),
        }),
      );
    }
    const y = toY(beta);
    parts.push(make("line", { class: "level", x1: left, x2: right, y1: y, y2: y }));
    const level = `β = ${exactly(beta)}`;
    parts.push(make("text", { class: "level end", x: right - 4, y: y + 15 }, level));
    if (bound > 0) {
      const x = toX(bound);
      parts.push(make("line", { class: "bound", x1: x, x2: x, y1: y, y2: bottom }));
      parts.push(make("circle", { class: "bound", cx: x, cy: y, r: 4.5 }));
      parts.push(make("text", { class: "bound end", x: x - 6, y: bottom - 7 }, down(bound)));
      if (x - left > 70) {
        parts.push(make("text", { class: "region", x: left + 8, y: top + 17 }, "refuted"));
      }
    }
    const said =
      bound > 0
        ? `The p-value rises with ε and reaches ${level} at ε = ${down(bound)}, the bound.`
        : `The p-value of every ε is above ${level}: no ε is refuted.`;
    const attributes = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said };
    return make("svg", attributes, ...parts);
  }

  /** A path through the p-values of a rule, with more points where it is steep. */
  function curve(rule, audit, most, toX, toY) {
    const at = (epsilon) => [epsilon, toY(pValue(rule, audit, epsilon))];
    const points = [at(0)];
    const refine = (from, to, depth) => {
      if (depth > 0 && Math.abs(to[1] - from[1]) > 6) {
        const middle = at((from[0] + to[0]) / 2);
        refine(from, middle, depth - 1);
        refine(middle, to, depth - 1);
      } else {
        points.push(to);
      }
    };
    const [pieces, deepest] = rule === "any order" ? [12, 0] : [48, 5]; // the former takes long
    for (let i = 0; i < pieces; i++) {
      refine(points[points.length - 1], at((most * (i + 1)) / pieces), deepest);
    }
    return `M${points.map(([x, y]) => `${toX(x).toFixed(1)},${y.toFixed(1)}`).join("L")}`;
  }

  // --------------------------------------------------------------------------------- the table

  function row(rule, audit) {
    const [valid, status] = standing(rule, audit);
    const picked = rule === audit.rule;
    const swatch = make(
      "svg",
      { class: "swatch", viewBox: "0 0 28 8", "aria-hidden": "true" },
      make("path", { class: `curve ${rule}${picked ? " picked" : ""}`, d: "M0,4L28,4" }),
    );
    return make(
      "tr",
      { class: picked ? "picked" : valid ? "valid" : "other" },
      make("th", { scope: "row" }, make("span", {}, swatch, NAMES[rule])),
      make("td", { class: "number" }, down(audit.bounds[rule])),
      make("td", {}, status),
      make("td", {}, assumes(rule, audit.expected)),
    );
  }

  function comparison(audit) {
    const heads = ["bound", "ε (nats)", "for this audit", "what it assumes"];
    const cells = heads.map((head, i) =>
      make("th", { scope: "col", class: i === 1 ? "number" : "word" }, head),
    );
    return make(
      "table",
      { class: "house" },
      make("thead", {}, make("tr", {}, ...cells)),
      make("tbody", {}, ...Object.keys(audit.bounds).map((rule) => row(rule, audit))),
    );
  }

  // ------------------------------------------------------------------------------- the address

  const FIELDS = [...NUMBERS, ...CHOICES, ...EXTRAS].map(({ name }) => name);
  const OPTIONAL = EXTRAS.map(({ name }) => name);
  const inAddress = (value) => value.replaceAll(" ", "-");

  function queryOf(raw) {
    const said = FIELDS.filter((name) => raw[name] || !OPTIONAL.includes(name));
    return `?${new URLSearchParams(said.map((name) => [name, inAddress(raw[name])]))}`;
  }

  /** { raw, notes }: what an address says, and what in it could not be read. Nothing is assumed. */
  function readQuery(search) {
    const given = new URLSearchParams(search);
    given.delete("highlight"); // of a search in the book
    if ([...given.keys()].length === 0) return { raw: { ...EXAMPLE }, notes: [] };
    const raw = {};
    const notes = [];
    const missing = [];
    for (const name of FIELDS) {
      const values = given.getAll(name);
      raw[name] = values.length === 1 ? values[0] : "";
      if (values.length === 0 && !OPTIONAL.includes(name)) missing.push(name);
      if (values.length > 1) notes.push(`The link gives ${name} more than once.`);
    }
    for (const { name, options } of CHOICES) {
      const said = inAddress(raw[name]);
      const value = Object.keys(options).find((option) => inAddress(option) === said);
      if (value === undefined && raw[name] !== "") {
        notes.push(`The link says ${name}=${shorten(raw[name])}, which is none of the choices.`);
      }
      raw[name] = value ?? "";
    }
    if (missing.length > 0) notes.push(`The link does not say ${missing.join(", ")}.`);
    const unknown = [...new Set(given.keys())].filter((name) => !FIELDS.includes(name));
    if (unknown.length > 0) {
      notes.push(`The link has parts that mean nothing here: ${unknown.map(shorten).join(", ")}.`);
    }
    return { raw, notes };
  }

  // ---------------------------------------------------------------------------------- together

  function start(host) {
    const form = make(
      "form",
      { novalidate: "", tabindex: "-1", "aria-label": "The counts of an audit" },
      make("div", { class: "fields" }, ...NUMBERS.map(numberField)),
      ...CHOICES.map(choiceField),
      make("div", { class: "fields extras" }, ...EXTRAS.map(numberField)),
    );
    const examples = Object.entries(EXAMPLES).flatMap(([words, raw]) => [
      make("a", { href: queryOf(raw) }, words),
      "; ",
    ]);
    const offered = make("p", { class: "examples" }, "Examples: ", ...examples.slice(0, -1), ".");
    const notes = make("div", { class: "notes", role: "alert" });
    const headline = make("p", { class: "headline" });
    const sentence = make("p", { class: "sentence" });
    const result = make("div", { class: "result", role: "status" }, headline, sentence);
    const estimate = make("p", { class: "estimate" });
    const picture = make("div", { class: "picture" });
    const caption = make("figcaption");
    const figure = make("figure", {}, picture, caption);
    const table = make("div", { class: "comparison" });
    const code = make("code");
    const same = make("p");
    const lines = make("div", { class: "lines" }, same, make("pre", { tabindex: "0" }, code));
    const copy = make("button", { type: "button" }, "Copy link");
    const copied = make("span", { class: "copied", role: "status" });
    const details = make("div", { class: "details" }, estimate, figure, table, lines);
    const share = make("p", { class: "share" }, copy, copied);
    host.replaceChildren(offered, form, notes, result, share, details);

    let shown = null; // the audit whose numbers are on the page
    let width = 0; // of its chart
    let later; // the address follows once typing pauses, as browsers limit how often it may change

    const current = () => {
      const given = new FormData(form);
      return Object.fromEntries(FIELDS.map((name) => [name, given.get(name) ?? ""]));
    };

    function fill(raw) {
      for (const { name } of [...NUMBERS, ...EXTRAS]) form.elements[name].value = raw[name] ?? "";
      for (const { name } of CHOICES) {
        for (const radio of form.elements[name]) radio.checked = radio.value === raw[name];
      }
    }

    function complain(messages) {
      for (const name of FIELDS) {
        const message = messages[name] ?? "";
        const place = form.querySelector(`#calculator-${name}-message`);
        if (place.textContent !== message) place.textContent = message;
        for (const input of form.querySelectorAll(`[name=${name}]`)) {
          if (message) input.setAttribute("aria-invalid", "true");
          else input.removeAttribute("aria-invalid");
        }
      }
    }

    function draw() {
      if (shown === null || shown.rule === null) return;
      width ||= picture.clientWidth; // asked for once: to lay out the page at each key takes time
      picture.replaceChildren(chart(shown, Math.max(260, width || 640)));
    }

    function update() {
      for (const { name, rule } of EXTRAS) {
        const input = form.elements[name];
        input.disabled = input.parentElement.hidden = rule !== ruleOf(current());
      }
      const { inputs, messages } = check(current());
      complain(messages);
      copied.textContent = "";
      const wrong = FIELDS.filter((name) => messages[name]);
      shown = wrong.length > 0 ? null : compute(inputs);
      details.hidden = shown === null;
      const refused = shown !== null && shown.rule === null;
      host.dataset.state = shown === null ? "incomplete" : refused ? "refused" : "shown";
      if (shown === null) {
        headline.textContent = "No result yet";
        sentence.textContent =
          wrong.length === 1
            ? "One field needs another value."
            : `${wrong.length} fields need other values.`;
        return;
      }
      [headline.textContent, sentence.textContent] = words(shown);
      estimate.textContent = suggests(shown);
      figure.hidden = refused;
      caption.textContent = refused
        ? ""
        : `The p-value of these counts for each ε: bold for the ${NAMES[shown.rule]}, which is ` +
          "the one proved for this audit, thin for the others in the table. Each ε whose p-value " +
          "is at most β is refuted; the bound is where the p-value reaches β." +
          (shown.rule === "anytime certified" ? ` ${ONE_LEVEL}` : "");
      draw();
      table.replaceChildren(comparison(shown));
      same.textContent = refused ? "Python refuses with the same words:" : "The same in Python:";
      code.textContent = pythonLines(shown);
    }

    function keep() {
      try {
        history.replaceState(null, "", queryOf(current()));
      } catch {
        // Some browsers refuse, for files or after many changes; "Copy link" works all the same.
      }
    }

    function restore() {
      const read = readQuery(location.search);
      fill(read.raw);
      notes.replaceChildren(...read.notes.map((note) => make("p", {}, note)));
      update();
    }

    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      notes.replaceChildren();
      update();
      clearTimeout(later);
      later = setTimeout(keep, 300);
    });

    copy.addEventListener("click", async () => {
      const link = new URL(queryOf(current()), location.href).href;
      try {
        await navigator.clipboard.writeText(link);
        copied.textContent = "The link is copied.";
      } catch {
        const named = { type: "text", readonly: "", "aria-label": "The link" };
        const field = make("input", { ...named, value: link });
        copied.replaceChildren("Copy it from here: ", field);
        field.select();
      }
    });

    // Examples are links that fill the form.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="?v="]');
      if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      try {
        history.pushState(null, "", link.getAttribute("href"));
      } catch {
        location.href = link.href;
        return;
      }
      restore();
      form.focus({ preventScroll: true }); // not a field, for which a phone would open its keys
      form.scrollIntoView({ block: "start" });
    });
    window.addEventListener("popstate", restore);

    new ResizeObserver(([{ contentRect }]) => {
      const now = Math.floor(contentRect.width);
      if (now === 0 || now === width) return; // hidden, or drawn already
      width = now;
      draw();
    }).observe(picture);
    restore();
  }

  /** A button that prints the cheat sheet alone: calculator.css leaves out all else. */
  function offerPrint(sheet) {
    const button = make("button", { type: "button", class: "print" }, "Print this sheet");
    const only = (on) => document.documentElement.classList.toggle("cheat-sheet-only", on);
    button.addEventListener("click", () => {
      only(true);
      window.print();
    });
    window.addEventListener("afterprint", () => only(false));
    sheet.prepend(button);
  }

  globalThis.oralibCalculator = { compute, pValue, names: NAMES }; // for the tests

  const begin = () => {
    document.querySelectorAll(".calculator").forEach(start);
    document.querySelectorAll(".cheat-sheet").forEach(offerPrint);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();

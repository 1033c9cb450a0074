// The calculator page: counts of an audit in, the bound that is valid for it out.
//
// A plain script, without a framework, that also works from file://, after bounds.js. It fills
// every element of the class "calculator"; what stands there before is for readers without
// JavaScript. Three bounds are computed here; for an audit with another one the page has the lines
// of Python that compute it.
(() => {
  "use strict";

  const { lowerBound, pValue } = globalThis.oralibBounds;

  // ---------------------------------------------------------------------------------------------
  // Which bound is valid: oralib/bounds/valid.py

  const NAMES = {
    pure: "pure bound",
    exact: "exact bound",
    "random r": "random-r bound",
    anytime: "anytime bound",
    "any order": "any-order bound",
    "anytime certified": "certified anytime bound",
    balanced: "balanced bound",
  };
  const COMPUTED_HERE = ["pure", "exact", "random r"];

  /** The rule that is proved for such an audit, or null if there is none. */
  function validRule({ delta, number, feedback, coins }) {
    const isFixed = number === "fixed";
    if (coins === "balanced") return isFixed && feedback === "none" ? "balanced" : null;
    if (feedback === "all others") return null;
    const isTold = feedback === "full" || feedback === "list";
    if (isTold && !isFixed) return delta > 0 ? "anytime certified" : "anytime";
    if (delta === 0) return "pure";
    if (!isFixed) return "random r";
    return feedback === "full" ? "any order" : "exact";
  }

  /** Why no rule is proved for an audit. */
  function whyNoRule({ coins }) {
    if (coins === "balanced") {
      return (
        "with balanced coins a bound is known only for a number of guesses fixed in advance " +
        "and no feedback"
      );
    }
    return "no bound is valid for a guesser who knows all other elements";
  }

  /** What checked inputs lead to: their rule, or null, and its bound, if it is computed here. */
  function compute(audit) {
    const rule = validRule(audit);
    const isComputed = COMPUTED_HERE.includes(rule);
    return {
      ...audit,
      rule,
      name: rule === null ? null : NAMES[rule],
      reason: rule === null ? whyNoRule(audit) : null,
      bound: isComputed ? lowerBound(rule, audit) : null,
      // Infinite if all guesses are right. As logit(v / r) of oralib, but without its rounding.
      estimate: audit.r > 0 ? Math.log(audit.v / (audit.r - audit.v)) : null,
    };
  }

  // ---------------------------------------------------------------------------------------------
  // Inputs as text, and what is wrong with them

  const MOST_GUESSES = 1e9; // beyond, digits get lost
  const MOST_ELEMENTS = 2 ** 53; // beyond, whole numbers do
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
  const FIELDS = [...NUMBERS, ...CHOICES, ...EXTRAS].map(({ name }) => name);
  const OPTIONAL = EXTRAS.map(({ name }) => name);

  const EXAMPLE = {
    v: "75",
    r: "100",
    n: "1000",
    delta: "1e-5",
    beta: "0.05",
    number: "fixed",
    feedback: "none",
    coins: "independent",
  };
  const EXAMPLES = {
    "a fixed number of guesses": EXAMPLE,
    "a threshold on the privacy loss": {
      ...EXAMPLE,
      v: "160",
      r: "210",
      n: "10000",
      number: "output",
    },
    "exactly half of the elements": {
      ...EXAMPLE,
      v: "160",
      r: "210",
      coins: "balanced",
      r_in: "105",
    },
    "a guesser that was told its successes and could stop": {
      ...EXAMPLE,
      v: "731",
      r: "1000",
      delta: "0",
      number: "output",
      feedback: "full",
    },
  };

  function shorten(text) {
    return text.length > 30 ? `${text.slice(0, 30)}…` : text;
  }

  /** A number, or a sentence that says why the text is none. Also 10^-5 and 64,000 are numbers. */
  function parse(text) {
    const typed = text.trim().replace(/[−–]/g, "-").replace(/(\d)_(?=\d)/g, "$1");
    const hasCommas = /^[1-9]\d{0,2}(,\d{3})+$/.test(typed);
    const clean = hasCommas ? typed.replaceAll(",", "") : typed;
    if (clean === "") return "Please fill this in.";
    const power = /^(?:(\d+\.?\d*|\.\d+)\s*[*·×x]\s*)?10\s*(?:\^|\*\*)\s*([+-]?\d+)$/.exec(clean);
    const written = power ? `${power[1] ?? 1}e${power[2]}` : clean;
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written)) {
      if (/^[\d.,]+$/.test(clean)) return "Please write 64,000 or 0.05.";
      if (/^[\d.]+\s*%$/.test(clean)) return "Please write 0.05 for 5%.";
      return `“${shorten(clean)}” is not a number.`;
    }
    const value = Number(written);
    const hasDigits = /[1-9]/.test(written.split(/e/i)[0]);
    return value === 0 && hasDigits ? TOO_SMALL : value;
  }

  function parseCount(name, text, most) {
    if (/^\s*\d{1,3}(\.\d{3})+\s*$/.test(text)) return "Please write 64,000 or 64000.";
    const value = parse(text);
    if (typeof value === "string") return value;
    if (value < 0) return `${name} must be at least 0.`;
    if (value > most) return `${name} may be at most ${grouped(most)} here.`;
    return Number.isInteger(value) ? value : `${name} must be a whole number.`;
  }

  function parseDelta(text) {
    const value = parse(text);
    if (typeof value === "string") return value;
    return value >= 0 && value <= 1 ? value : "δ must be from 0 to 1.";
  }

  function parseBeta(text) {
    const value = parse(text);
    if (typeof value === "string") return value;
    if (!(value > 0 && value < 1)) return "β must be above 0 and below 1.";
    return value < SMALLEST_LEVEL ? TOO_SMALL : value;
  }

  /** The rule that the texts and choices of a form ask for. */
  function ruleOf(raw) {
    return validRule({ ...raw, delta: parse(raw.delta) });
  }

  /** The number of guesses that was expected; null if the rule does not ask, or nobody says. */
  function parseExpected(raw, rule, n) {
    if (rule !== "random r" || raw.expected.trim() === "") return null;
    const value = parseCount("This", raw.expected, n);
    return value === 0 ? "This must be at least 1." : value;
  }

  /** Whether both are numbers, no messages, and the first is larger. */
  function exceeds(value, limit) {
    return typeof value === "number" && typeof limit === "number" && value > limit;
  }

  /** { inputs, messages }: numbers and choices, and a message for each that is not right. */
  function check(raw) {
    const inputs = {
      v: parseCount("v", raw.v, MOST_GUESSES),
      r: parseCount("r", raw.r, MOST_GUESSES),
      n: parseCount("n", raw.n, MOST_ELEMENTS),
      delta: parseDelta(raw.delta),
      beta: parseBeta(raw.beta),
    };
    if (exceeds(inputs.v, inputs.r)) inputs.v = `v must be at most r = ${grouped(inputs.r)}.`;
    if (exceeds(inputs.r, inputs.n)) inputs.r = `r must be at most n = ${grouped(inputs.n)}.`;
    if (raw.coins === "balanced" && inputs.n % 2 === 1) {
      inputs.n = "n must be even if exactly half were included.";
    }
    const rule = ruleOf(raw);
    inputs.r_in = rule === "balanced" ? parseCount("This", raw.r_in, inputs.r) : null;
    inputs.expected = parseExpected(raw, rule, inputs.n);
    const messages = {};
    for (const [name, value] of Object.entries(inputs)) {
      if (typeof value === "string") messages[name] = value;
    }
    for (const { name, options } of CHOICES) {
      inputs[name] = raw[name];
      if (!Object.hasOwn(options, raw[name])) messages[name] = "Please choose one.";
    }
    return { inputs, messages };
  }

  // ---------------------------------------------------------------------------------------------
  // Numbers and results in words

  function grouped(value) {
    return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  }

  /** All digits of a number, as people type it: 0.05, 1e-5. */
  function exactly(value) {
    return value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
  }

  /** Few digits of a number, for orientation. */
  function roughly(value) {
    return exactly(Number(value.toPrecision(3)));
  }

  /** Three digits after the point, or three that count, that are not above the bound. */
  function roundedDown(bound) {
    if (bound === 0) return "0";
    const exponent = Math.floor(Math.log10(bound));
    if (bound < 1e-4) {
      const mantissa = Math.floor((bound / 10 ** exponent) * 100) / 100;
      return `${mantissa.toFixed(2)}e${exponent}`;
    }
    const digits = bound >= 0.1 ? 3 : 2 - exponent;
    const whole = Math.floor((bound * 10 ** digits).toPrecision(15));
    return (whole / 10 ** digits).toFixed(digits);
  }

  function confidence(beta) {
    if (beta < 1e-6) return `confidence 1 − ${exactly(beta)}`; // not rounded to 100%
    return `${Number((100 - 100 * beta).toPrecision(10))}% confidence`;
  }

  /** How a claim reads at this δ. */
  function claim(delta) {
    return delta === 0 ? "ε-DP" : `(ε, ${exactly(delta)})-DP`;
  }

  /** What the audit has shown, and no more, in a few words. */
  function headlineOf({ rule, name, bound, delta }) {
    if (rule === null) return "No bound for this audit";
    if (bound === null) return `For this audit: the ${name}`;
    if (bound === 0) return "Nothing is shown";
    return `ε is at least\u00a0${roundedDown(bound)} at\u00a0δ\u00a0=\u00a0${exactly(delta)}`;
  }

  /** The same in a sentence. */
  function sentenceOf(audit) {
    const { rule, bound, reason, beta, delta } = audit;
    if (rule === null) return `${reason[0].toUpperCase()}${reason.slice(1)}.`;
    if (bound === null) return "Python computes it, by the lines below.";
    if (bound === 0) return `No ε is refuted at δ = ${exactly(delta)}, ${whyNothing(audit)}.`;
    return (
      `With ${confidence(beta)}, this mechanism is not ${claim(delta)} ` +
      `for any ε below ${roundedDown(bound)}.`
    );
  }

  function whyNothing(audit) {
    const { v, r, n, delta, beta } = audit;
    if (r === 0) return "since there are no guesses";
    if (2 * v <= r) return "since no more than half the guesses are right";
    if (pValue("pure", audit, 0) > beta) {
      return `since blind guesses do as well with a probability above ${exactly(beta)}`;
    }
    return (
      `since a mechanism may reveal n δ = ${roughly(n * delta)} elements outright, too many for ` +
      `so few guesses and β = ${exactly(beta)}`
    );
  }

  /** What the accuracy alone suggests. */
  function estimateOf({ v, r, estimate }) {
    if (r === 0) return "No guess was taken, so there is no accuracy and no estimate.";
    const percent = Math.floor((1e4 * v) / r) / 100; // 100 only if all are right
    const infinite = estimate > 0 ? "∞" : "−∞";
    const epsilon = Number.isFinite(estimate) ? estimate.toFixed(3).replace("-", "−") : infinite;
    return (
      `${grouped(v)} of ${grouped(r)} guesses are right, or ${percent}%: by the accuracy alone ` +
      `ε = ${epsilon}. This is an estimate, not a bound.`
    );
  }

  function captionOf({ name }) {
    return (
      `The p-value of these counts for each ε, by the ${name}. Each ε whose p-value is at ` +
      "most β is refuted; the bound is where the p-value reaches β."
    );
  }

  /** Lines that compute the bound with the library. */
  function pythonLines(audit) {
    const setUp = [audit.v, audit.r, `n=${audit.n}`];
    if (audit.number === "fixed") setUp.push("r_fixed=True");
    if (audit.feedback !== "none") setUp.push(`feedback="${audit.feedback}"`);
    if (audit.coins !== "independent") setUp.push(`coins="${audit.coins}"`, `r_in=${audit.r_in ?? 0}`);
    const claimed = [`beta=${exactly(audit.beta)}`, `delta=${exactly(audit.delta)}`];
    if (audit.expected !== null) claimed.push(`expected=${audit.expected}`);
    return [
      "import oralib",
      "",
      `counts = oralib.Counts(${setUp.join(", ")})`,
      `oralib.valid_lower_bound(counts, ${claimed.join(", ")})`,
    ].join("\n");
  }

  /** What stands above the lines of Python. */
  function pythonHead({ rule, bound }) {
    if (rule === null) return "Python refuses with the same words:";
    return bound === null ? "The bound, in Python:" : "The same in Python:";
  }

  // ---------------------------------------------------------------------------------------------
  // Elements of the page

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
    const isCount = name !== "delta" && name !== "beta";
    const input = make("input", {
      id,
      name,
      type: "text",
      inputmode: isCount ? "numeric" : "text",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      "aria-describedby": `${id}-message`,
    });
    return make(
      "div",
      { class: "field" },
      make("label", { for: id }, make("i", {}, symbol), symbol && " ", label),
      input,
      make("p", { id: `${id}-message`, class: "message" }),
    );
  }

  function choiceField({ name, legend, options }) {
    const id = `calculator-${name}`;
    const pills = make("div", { class: "pills" });
    Object.entries(options).forEach(([value, label], place) => {
      const radio = make("input", {
        type: "radio",
        name,
        value,
        id: `${id}-${place}`,
        "aria-describedby": `${id}-message`,
      });
      pills.append(radio, make("label", { for: radio.id }, label));
    });
    const message = make("p", { id: `${id}-message`, class: "message" });
    return make("fieldset", {}, make("legend", {}, legend), pills, message);
  }

  /** A button that copies a text, and a place that says whether it could. */
  function copyButton(label, done, textOf) {
    const button = make("button", { type: "button" }, label);
    const copied = make("span", { class: "copied", role: "status" });
    button.addEventListener("click", async () => {
      const text = textOf();
      try {
        await navigator.clipboard.writeText(text);
        copied.textContent = done;
      } catch {
        const field = make("input", { type: "text", readonly: "", "aria-label": label });
        field.value = text;
        copied.replaceChildren("Copy it from here: ", field);
        field.select();
      }
    });
    return { button, copied };
  }

  // --------------------------------------------------------------------------------- the chart

  /** Round numbers from 0 to `top`, about `most` of them or fewer. */
  function roundSteps(top, most) {
    const rough = top / most;
    const base = 10 ** Math.floor(Math.log10(rough));
    const factor = [1, 2, 5, 10].find((candidate) => candidate * base >= rough * (1 - 1e-9));
    const step = factor * base;
    const count = Math.floor(top / step + 1e-9);
    return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
  }

  /** Where a chart is, and where ε and p-values are in it. */
  function scaleOf({ bound, beta, estimate }, width) {
    const height = Math.round(Math.min(320, Math.max(230, 0.55 * width)));
    const left = 52;
    const right = width - 14;
    const top = 24;
    const bottom = height - 42;
    const reach = Number.isFinite(estimate) ? 1.1 * estimate : 0;
    const largest = Math.max(1.25 * bound, reach) || 1; // ε at the right end
    const lowest = Math.floor(Math.log10(beta / 20)); // the power of ten at the bottom
    const toX = (epsilon) => left + ((right - left) * epsilon) / largest;
    const heightOf = (power) => top + ((bottom - top) * power) / lowest;
    const toY = (p) => heightOf(Math.max(p > 0 ? Math.log10(p) : -Infinity, lowest - 1));
    return { width, height, left, right, top, bottom, largest, lowest, toX, toY, heightOf };
  }

  /** The p-values over ε, with β, and the bound where they reach it. */
  function chart(audit, width) {
    const scale = scaleOf(audit, width);
    const level = `β = ${exactly(audit.beta)}`;
    const reached = roundedDown(audit.bound);
    const description =
      audit.bound > 0
        ? `The p-value rises with ε and reaches ${level} at ε = ${reached}, the bound.`
        : `The p-value of every ε is above ${level}: no ε is refuted.`;
    return make(
      "svg",
      {
        viewBox: `0 0 ${width} ${scale.height}`,
        role: "img",
        "aria-label": description,
      },
      ...frameOf(scale),
      ...curveWithLevel(audit, scale, level),
    );
  }

  /** Frame, grid and ticks of a chart. */
  function frameOf(scale) {
    const { width, height, left, right, top, bottom } = scale;
    const area = { x: left, y: top, width: right - left, height: bottom - top };
    const clip = make("clipPath", { id: "calculator-clip" }, make("rect", area));
    const parts = [make("defs", {}, clip), make("rect", { class: "frame", ...area })];
    for (const epsilon of roundSteps(scale.largest, Math.max(3, width / 90))) {
      const x = scale.toX(epsilon);
      parts.push(make("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
      parts.push(make("text", { class: "x tick", x, y: bottom + 16 }, exactly(epsilon)));
    }
    const every = Math.ceil(-scale.lowest / 6);
    for (let power = 0; power >= scale.lowest; power -= every) {
      const y = scale.heightOf(power);
      const label = power >= -3 ? String(Number(`1e${power}`)) : `1e${power}`;
      parts.push(make("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      parts.push(make("text", { class: "y tick", x: left - 6, y: y + 4 }, label));
    }
    const middle = (left + right) / 2;
    const xLabel = "hypothetical privacy level ε";
    parts.push(make("text", { class: "x", x: middle, y: height - 6 }, xLabel));
    parts.push(make("text", { x: 6, y: 13 }, "p-value"));
    return parts;
  }

  /** The curve of p-values, β as a line, and the ε that are refuted. */
  function curveWithLevel(audit, scale, level) {
    const { left, right, top, bottom } = scale;
    const isRefuting = audit.bound > 0;
    const x = scale.toX(audit.bound);
    const y = scale.toY(audit.beta);
    const refuted = { x: left, y: top, width: x - left, height: bottom - top };
    const parts = [];
    if (isRefuting) parts.push(make("rect", { class: "refuted", ...refuted }));
    parts.push(
      make("path", {
        class: "curve",
        "clip-path": "url(#calculator-clip)",
        d: curve(audit, scale),
      }),
    );
    parts.push(make("line", { class: "level", x1: left, x2: right, y1: y, y2: y }));
    parts.push(make("text", { class: "level end", x: right - 4, y: y + 15 }, level));
    if (isRefuting) {
      const number = roundedDown(audit.bound);
      parts.push(make("line", { class: "bound", x1: x, x2: x, y1: y, y2: bottom }));
      parts.push(make("circle", { class: "bound", cx: x, cy: y, r: 4.5 }));
      parts.push(make("text", { class: "bound end", x: x - 6, y: bottom - 7 }, number));
      const hasRoom = x - left > 70;
      if (hasRoom) parts.push(make("text", { x: left + 8, y: top + 17 }, "refuted"));
    }
    return parts;
  }

  const CURVE_PIECES = 48; // before steep ones are cut
  const MOST_CUTS = 5; // of a piece, each into two
  const STEEP = 6; // pixels between the ends of a piece that is cut

  /** A path through the p-values, with more points where it is steep. */
  function curve(audit, scale) {
    const pointAt = (epsilon) => ({
      epsilon,
      y: scale.toY(pValue(audit.rule, audit, epsilon)),
    });
    const points = [pointAt(0)];
    function addPiece(start, end, cuts) {
      if (cuts === 0 || Math.abs(end.y - start.y) <= STEEP) {
        points.push(end);
        return;
      }
      const middle = pointAt((start.epsilon + end.epsilon) / 2);
      addPiece(start, middle, cuts - 1);
      addPiece(middle, end, cuts - 1);
    }
    for (let piece = 1; piece <= CURVE_PIECES; piece++) {
      const end = pointAt((scale.largest * piece) / CURVE_PIECES);
      addPiece(points.at(-1), end, MOST_CUTS);
    }
    const places = points.map(({ epsilon, y }) => `${scale.toX(epsilon).toFixed(1)},${y.toFixed(1)}`);
    return `M${places.join("L")}`;
  }

  // ------------------------------------------------------------------------------- the address

  function inAddress(value) {
    return value.replaceAll(" ", "-");
  }

  function queryOf(raw) {
    const names = FIELDS.filter((name) => raw[name] || !OPTIONAL.includes(name));
    return `?${new URLSearchParams(names.map((name) => [name, inAddress(raw[name])]))}`;
  }

  /** { raw, notes }: what an address says, and what in it could not be read. Nothing is assumed. */
  function readQuery(search) {
    const query = new URLSearchParams(search);
    query.delete("highlight"); // of a search in the book
    if ([...query.keys()].length === 0) return { raw: { ...EXAMPLE }, notes: [] };
    const raw = {};
    const notes = [];
    for (const name of FIELDS) {
      const values = query.getAll(name);
      raw[name] = values.length === 1 ? values[0] : "";
      if (values.length > 1) notes.push(`The link gives ${name} more than once.`);
    }
    for (const { name, options } of CHOICES) {
      const written = raw[name];
      const values = Object.keys(options);
      raw[name] = values.find((value) => inAddress(value) === inAddress(written)) ?? "";
      if (raw[name] === "" && written !== "") {
        notes.push(`The link says ${name}=${shorten(written)}, which is none of the choices.`);
      }
    }
    const missing = FIELDS.filter((name) => !query.has(name) && !OPTIONAL.includes(name));
    if (missing.length > 0) notes.push(`The link does not say ${missing.join(", ")}.`);
    const unknown = [...new Set(query.keys())].filter((name) => !FIELDS.includes(name));
    if (unknown.length > 0) {
      notes.push(`The link has parts that mean nothing here: ${unknown.map(shorten).join(", ")}.`);
    }
    return { raw, notes };
  }

  // ---------------------------------------------------------------------------------- together

  function exampleLinks() {
    const links = make("p", { class: "examples" }, "Examples: ");
    Object.entries(EXAMPLES).forEach(([label, raw], place) => {
      links.append(place > 0 ? "; " : "", make("a", { href: queryOf(raw) }, label));
    });
    links.append(".");
    return links;
  }

  function inputForm() {
    return make(
      "form",
      { novalidate: "", tabindex: "-1", "aria-label": "The counts of an audit" },
      make("div", { class: "fields" }, ...NUMBERS.map(numberField)),
      ...CHOICES.map(choiceField),
      make("div", { class: "fields extras" }, ...EXTRAS.map(numberField)),
    );
  }

  function start(host) {
    const form = inputForm();
    const notes = make("div", { class: "notes", role: "alert" });
    const headline = make("p", { class: "headline" });
    const sentence = make("p", { class: "sentence" });
    const result = make("div", { class: "result", role: "status" }, headline, sentence);
    const estimate = make("p", { class: "estimate" });
    const picture = make("div", { class: "picture" });
    const caption = make("figcaption");
    const figure = make("figure", {}, picture, caption);
    const linesHead = make("p");
    const code = make("code");
    const codeCopy = copyButton("Copy lines", "The lines are copied.", () => code.textContent);
    const lines = make(
      "div",
      { class: "lines" },
      linesHead,
      make("pre", { tabindex: "0" }, code),
      make("p", { class: "share" }, codeCopy.button, codeCopy.copied),
    );
    const linkCopy = copyButton("Copy link", "The link is copied.", () => {
      return new URL(queryOf(current()), location.href).href;
    });
    const share = make("p", { class: "share" }, linkCopy.button, linkCopy.copied);
    const details = make("div", { class: "details" }, estimate, figure, lines);
    host.replaceChildren(exampleLinks(), form, notes, result, share, details);

    let shown = null; // the audit whose results are on the page
    let width = 0; // of its chart
    let later; // the address follows once typing pauses, as browsers limit how often it may change

    function current() {
      const data = new FormData(form);
      return Object.fromEntries(FIELDS.map((name) => [name, data.get(name) ?? ""]));
    }

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

    /** Only the valid rule's own question is on the page. */
    function askExtras() {
      const rule = ruleOf(current());
      for (const extra of EXTRAS) {
        const input = form.elements[extra.name];
        const isAsked = extra.rule === rule;
        input.disabled = !isAsked;
        input.parentElement.hidden = !isAsked;
      }
    }

    function draw() {
      if (shown === null || shown.bound === null) return;
      width ||= picture.clientWidth; // asked for once: to lay out the page at each key takes time
      picture.replaceChildren(chart(shown, Math.max(260, width || 640)));
    }

    function showIncomplete(number) {
      shown = null;
      host.dataset.state = "incomplete";
      details.hidden = true;
      headline.textContent = "No result yet";
      sentence.textContent =
        number === 1 ? "One field needs another value." : `${number} fields need other values.`;
    }

    function show(audit) {
      const isComputed = audit.bound !== null;
      shown = audit;
      host.dataset.state = audit.rule === null ? "refused" : "shown";
      details.hidden = false;
      headline.textContent = headlineOf(audit);
      sentence.textContent = sentenceOf(audit);
      estimate.textContent = estimateOf(audit);
      figure.hidden = !isComputed;
      caption.textContent = isComputed ? captionOf(audit) : "";
      draw();
      linesHead.textContent = pythonHead(audit);
      code.textContent = pythonLines(audit);
    }

    function update() {
      askExtras();
      linkCopy.copied.textContent = "";
      codeCopy.copied.textContent = "";
      const { inputs, messages } = check(current());
      complain(messages);
      const invalid = FIELDS.filter((name) => messages[name]);
      if (invalid.length > 0) showIncomplete(invalid.length);
      else show(compute(inputs));
    }

    function keepInAddress() {
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
      later = setTimeout(keepInAddress, 300);
    });

    // Examples are links that fill the form.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="?v="]');
      const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
      if (!link || event.button !== 0 || opensElsewhere) return;
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
      const isHidden = now === 0;
      if (isHidden || now === width) return;
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

  globalThis.oralibCalculator = { compute }; // for the tests

  function begin() {
    document.querySelectorAll(".calculator").forEach(start);
    document.querySelectorAll(".cheat-sheet").forEach(offerPrint);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();

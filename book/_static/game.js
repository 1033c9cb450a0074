// The game of a one-run audit, step by step: coins, a run, guesses, counts, a bound.
(() => {
  const N = 32; // elements
  const SET = 4; // elements of a sum
  const BETA = 0.05;
  const LEVEL = 2; // ε of randomized response
  const SHARE = 0.25; // how often All or Nothing publishes everything
  const STEPS = ["ready", "coins", "run", "guesses", "counts", "bound"];
  const PACE = 1800; // milliseconds between steps
  const TOP = 2.5; // the end of the scale: all guesses right give less

  // ---------------------------------------------------------------------------------- the bound

  /** P[Bin(r, q) >= v], term by term. */
  const tail = (v, r, q) => {
    let log = r * Math.log(1 - q);
    let sum = 0;
    for (let i = 0; i <= r; i++) {
      if (i >= v) sum += Math.exp(log);
      log += Math.log((r - i) / (i + 1)) + Math.log(q / (1 - q));
    }
    return sum;
  };

  /** A bound, or a mean of bounds, with two digits: never rounded up. */
  const down = (number) => (Math.floor(number * 100 + 1e-9) / 100).toFixed(2);

  /** ε'(v, r): the largest ε with P[Bin(r, p(ε)) >= v] <= β, or 0; valid for ε-DP. */
  const bound = (v, r, beta = BETA) => {
    if (v === 0 || tail(v, r, 0.5) > beta) return 0;
    let [low, high] = [0, 40];
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (tail(v, r, 1 / (1 + Math.exp(-middle))) <= beta) low = middle;
      else high = middle;
    }
    return low;
  };

  // --------------------------------------------------------------------------------- randomness

  /** Uniform numbers in [0, 1) from a seed: a counter, each mixed twice by a 32-bit hash. */
  const numbers = (seed) => {
    const mix = (x) => {
      x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
      x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
      return (x ^ (x >>> 16)) >>> 0;
    };
    let counter = 0;
    const key = mix((seed + 1) * 0x9e3779b1);
    return () => mix(mix(key + ++counter * 0x9e3779b1) ^ key) / 2 ** 32;
  };
  const toss = (random) => (random() < 0.5 ? 1 : -1);

  // --------------------------------------------------------------------------------- mechanisms
  // An output has, for each element, what was published about it (1, -1 or null), and maybe sums.

  const MECHANISMS = {
    response: {
      title: "Randomized response",
      gap: "No gap: each guess is as good as its ε allows",
      epsilon: LEVEL,
      rule: `reports each coin, but flips it with probability ${(1 / (1 + Math.exp(LEVEL))).toFixed(2)}: its ε is ${LEVEL}`,
      run(coins, random) {
        const keep = 1 / (1 + Math.exp(-LEVEL));
        return { seen: coins.map((coin) => (random() < keep ? coin : -coin)) };
      },
      guess: ({ seen }) => seen,
      told: () => "It publishes a report on each element. Some of the reports are flipped.",
      guessed: () => "The guesser believes every report.",
      lesson: "Every run exposes every element a little. More elements bring the bound ever closer to ε.",
    },
    shame: {
      title: "Name and Shame",
      gap: "Gap 1: few elements are exposed",
      epsilon: Infinity,
      rule: "picks one element at random and publishes its coin: its ε is infinite",
      run(coins, random) {
        const named = Math.floor(random() * N);
        return { seen: coins.map((coin, i) => (i === named ? coin : null)) };
      },
      guess: ({ seen }, random) => seen.map((coin) => coin ?? toss(random)),
      told: ({ seen }) => `It names element ${seen.findIndex((coin) => coin) + 1} and says nothing about the others.`,
      guessed: () => `One guess is certain. The other ${N - 1} are coin tosses.`,
      lesson: "For one element this is a catastrophe. But one certain guess proves next to nothing among 31 coin tosses.",
    },
    nothing: {
      title: "All or Nothing",
      gap: "Gap 2: bad outputs are rare",
      epsilon: Infinity,
      rule: `publishes all coins with probability ${SHARE}, and otherwise nothing: its ε is infinite`,
      run(coins, random) {
        const all = random() < SHARE;
        return { seen: coins.map((coin) => (all ? coin : null)) };
      },
      guess: ({ seen }, random) => seen.map((coin) => coin ?? toss(random)),
      told: ({ seen }) => (seen[0] ? "This time it publishes everything." : "This time it publishes nothing."),
      guessed: ({ seen }) =>
        seen[0] ? "The guesser knows every coin." : "The guesser knows nothing and tosses a coin for each element.",
      lesson: "One run shows one output, most often the harmless one. Try another run, or a hundred.",
    },
    sums: {
      title: "Sums of four",
      gap: "Interference: elements hide each other",
      epsilon: Infinity,
      rule: "publishes how many of each four elements are in: its ε is infinite",
      run(coins) {
        const sums = [];
        for (let i = 0; i < N; i += SET) {
          sums.push(coins.slice(i, i + SET).filter((coin) => coin === 1).length);
        }
        return { sums, seen: coins.map(() => null) };
      },
      guess: ({ sums }) =>
        Array.from({ length: N }, (_, i) => {
          const sum = sums[Math.floor(i / SET)];
          return sum === SET ? 1 : sum === 0 ? -1 : 0;
        }),
      told: () => "It publishes the sums. No noise is added.",
      guessed: ({ sums }) => {
        const sure = sums.filter((sum) => sum === 0 || sum === SET).length;
        if (!sure) return "No sum is 0 or 4, so nothing is certain. The guesser abstains on all elements.";
        const known = sure === 1 ? "One sum is 0 or 4 and reveals" : `${sure} sums are 0 or 4, and each reveals`;
        return `${known} its four elements; the guesser abstains on all others.`;
      },
      lesson: "If you knew three of the four elements, the sum would tell you the fourth. The guesser knows none of them, so they hide each other unless all four agree.",
    },
  };

  /** One whole game, from its seed. */
  const play = (name, seed) => {
    const mechanism = MECHANISMS[name];
    const random = numbers(seed);
    const coins = Array.from({ length: N }, () => toss(random));
    const output = mechanism.run(coins, random);
    const guesses = mechanism.guess(output, random);
    const r = guesses.filter((guess) => guess).length;
    const v = guesses.filter((guess, i) => guess === coins[i]).length;
    return { coins, output, guesses, v, r, bound: bound(v, r) };
  };

  window.oneRunGame = { bound, play, mechanisms: Object.keys(MECHANISMS), elements: N };

  // ----------------------------------------------------------------------------------- the page

  const place = document.querySelector(".gap-game");
  if (!place) return;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const draw = (name, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  let name = "response";
  let seed = 1;
  let step = 0;
  let game = play(name, seed);
  let timer = null;
  let size = null;
  const past = Object.fromEntries(Object.keys(MECHANISMS).map((key) => [key, new Map()]));

  const choice = make("fieldset", { class: "game-choice" }, make("legend", {}, "Mechanism"));
  for (const [key, { title }] of Object.entries(MECHANISMS)) {
    const radio = make("input", { type: "radio", name: "game-mechanism", value: key });
    radio.checked = key === name;
    radio.addEventListener("change", () => finished({ name: key }));
    choice.append(make("label", {}, radio, make("span", {}, title)));
  }
  const button = (words, action) => {
    const node = make("button", { type: "button", class: "explorer-button" }, words);
    node.addEventListener("click", action);
    return node;
  };
  const next = button("Next step", () => {
    pause();
    go(step + 1);
  });
  const playing = button("Play", () => (timer === null ? start() : pause()));
  const again = button("Again", () => begin({}));
  const another = button("Another run", () => {
    const running = timer !== null;
    const atEnd = step === STEPS.length - 1;
    if (atEnd) return finished({ seed: seed + 1 }); // luck alone has changed
    begin({ seed: seed + 1 });
    if (running) start();
  });
  const hundred = button("100 more runs", () => {
    pause();
    const known = past[name];
    let fresh = 0;
    // The first hundred seeds are for runs step by step.
    for (let other = 101; fresh < 100; other++) {
      if (!known.has(other)) {
        known.set(other, play(name, other).bound);
        fresh += 1;
      }
    }
    stage.lastChild.replaceWith(scale());
    show();
    told.textContent = `A hundred more runs. ${tally()}`;
  });
  const field = make("input", { type: "number", id: "game-seed", min: 0, max: 999999, step: 1 });
  field.addEventListener("change", () => {
    const given = Math.round(field.valueAsNumber); // NaN if there is nothing that can be read
    begin({ seed: Number.isFinite(given) ? Math.min(999999, Math.max(0, given)) : seed });
  });
  const seeds = make("span", { class: "game-seed" }, make("label", { for: "game-seed" }, "Seed"), field);

  const gap = make("p", { class: "game-gap" });
  const told = make("p", { class: "game-told", role: "status", "aria-live": "polite" });
  const stage = draw("svg", { class: "game-stage", role: "img" });
  const lesson = make("p", { class: "game-lesson" });
  const runs = make("p", { class: "game-tally" });
  place.replaceChildren(
    choice,
    gap,
    make("div", { class: "explorer-buttons" }, next, playing, again, another, hundred, seeds),
    told,
    stage,
    lesson,
    runs,
  );
  place.classList.add("live");

  // -------------------------------------------------------------------------------- the picture

  const GUTTER = 58;
  const TALL = 112; // a row of elements
  const SCALE = 118; // the scale of bounds

  const signs = { 1: "in", "-1": "out", 0: "none" };

  /** Everything that a game will show, in the order of its steps; the style sheet hides the rest. */
  const paint = () => {
    const width = Math.max(260, stage.getBoundingClientRect().width);
    const columns = width < 520 ? 8 : 16;
    const cell = Math.min(44, (width - GUTTER - 4) / columns);
    const rows = N / columns;
    const height = rows * TALL + SCALE;
    stage.setAttribute("viewBox", `0 0 ${width} ${height}`);
    stage.setAttribute("height", height);
    stage.replaceChildren();
    const x = (i) => GUTTER + ((i % columns) + 0.5) * cell;
    const y = (i) => Math.floor(i / columns) * TALL;
    const { coins, output, guesses } = game;
    for (let row = 0; row < rows; row++) {
      for (const [words, at] of [["coin", 22], ["output", 50], ["guess", 78]]) {
        stage.append(draw("text", { class: "game-label", x: 0, y: row * TALL + at + 4 }, words));
      }
    }
    const sized = Math.min(1, cell / 40);
    for (let i = 0; i < N; i++) {
      const right = guesses[i] === coins[i];
      const outcome = guesses[i] === 0 ? "open" : right ? "right" : "wrong";
      const element = draw("g", {
        class: `game-element ${outcome}`,
        transform: `translate(${x(i)} ${y(i)})`,
        style: `--delay: ${i * 22}ms`,
      });
      element.append(
        draw("rect", { class: "game-cell", x: -cell / 2 + 1.5, y: 4, width: cell - 3, height: 102, rx: 6 }),
        draw("circle", { class: `game-coin ${signs[coins[i]]}`, cy: 22, r: 10 * sized }),
      );
      const seen = output.seen[i];
      if (seen) {
        const half = 8 * sized;
        element.append(
          draw("rect", { class: `game-output ${signs[seen]}`, x: -half, y: 50 - half, width: 2 * half, height: 2 * half, rx: 2 }),
        );
      } else if (!output.sums) {
        element.append(draw("circle", { class: "game-output dot", cy: 50, r: 1.8 }));
      }
      const d = 10 * sized;
      element.append(
        guesses[i] === 0
          ? draw("path", { class: "game-guess none", d: `M${-5} 78h10` })
          : draw("path", { class: `game-guess ${signs[guesses[i]]}`, d: `M0 ${78 - d}L${d} 78L0 ${78 + d}L${-d} 78Z` }),
      );
      if (outcome !== "open") {
        const mark = right ? "M-5 97l3.5 4l6.5 -8" : "M-4.5 93l9 8m0 -8l-9 8";
        element.append(draw("path", { class: "game-mark", d: mark }));
      }
      stage.append(element);
    }
    (output.sums ?? []).forEach((sum, set) => {
      const [from, to] = [x(set * SET) - cell / 2 + 5, x(set * SET + SET - 1) + cell / 2 - 5];
      const top = y(set * SET);
      const sure = sum === 0 || sum === SET ? " sure" : "";
      stage.append(
        draw(
          "g",
          { class: `game-sum${sure}`, style: `--delay: ${set * 60}ms` },
          draw("path", { d: `M${from} ${top + 38}v4h${to - from}v-4` }),
          draw("rect", { x: (from + to) / 2 - 11, y: top + 44, width: 22, height: 20, rx: 5 }),
          draw("text", { x: (from + to) / 2, y: top + 59, "text-anchor": "middle" }, String(sum)),
        ),
      );
    });
    size = { width, top: rows * TALL };
    stage.append(scale());
  };

  /** Bounds of this run and of earlier ones on a line, and the truth. */
  const scale = () => {
    const { width, top } = size;
    const [left, right, base] = [14, width - 14, top + 84];
    const at = (value) => left + ((right - left) * value) / TOP;
    const group = draw("g", { class: "game-scale" });
    group.append(draw("path", { class: "game-axis", d: `M${left} ${base}H${right}` }));
    for (let tick = 0; tick <= TOP; tick += 0.5) {
      group.append(
        draw("path", { class: "game-axis", d: `M${at(tick)} ${base}v5` }),
        draw("text", { class: "game-label", x: at(tick), y: base + 20, "text-anchor": "middle" }, String(tick)),
      );
    }
    const often = new Map(); // 32 guesses have few different bounds
    for (const value of past[name].values()) often.set(value, (often.get(value) ?? 0) + 1);
    const rise = Math.min(6, 46 / Math.max(1, ...often.values()));
    for (const [value, count] of often) {
      for (let i = 0; i < count; i++) {
        group.append(draw("circle", { class: "game-past", cx: at(value), cy: base - 5 - i * rise, r: 2.8 }));
      }
    }
    const { epsilon } = MECHANISMS[name];
    if (Number.isFinite(epsilon)) {
      group.append(
        draw("path", { class: "game-truth", d: `M${at(epsilon)} ${base + 5}V${top + 12}` }),
        draw("text", { class: "game-label strong", x: at(epsilon) - 6, y: top + 20, "text-anchor": "end" }, `ε = ${epsilon}`),
      );
    } else {
      group.append(
        draw("text", { class: "game-label strong", x: right, y: top + 20, "text-anchor": "end" }, "ε = ∞ →"),
      );
    }
    group.append(
      draw("text", { class: "game-label", x: left, y: top + 20 }, "lower bound on ε (nats)"),
      draw(
        "g",
        { class: "game-bound" },
        draw("path", { d: `M${at(game.bound)} ${base + 1}l-7 13h14z` }),
        draw("path", { class: "game-line", d: `M${left} ${base}H${at(game.bound)}` }),
      ),
    );
    return group;
  };

  // ---------------------------------------------------------------------------------- the story

  const tally = () => {
    const bounds = [...past[name].values()];
    if (!bounds.length) return "";
    const mean = bounds.reduce((a, b) => a + b, 0) / bounds.length;
    const squares = bounds.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const error = Math.sqrt(squares / (bounds.length - 1) / bounds.length);
    const chance = bounds.length > 9 ? ` ± ${error.toFixed(2)}` : ""; // of fewer it means little
    const { epsilon } = MECHANISMS[name];
    const above = bounds.filter((value) => value > epsilon).length;
    const many = bounds.length === 1 ? "One run" : `${bounds.length} runs`;
    return (
      `${many} of this mechanism so far: mean bound ${down(mean)}${chance}, largest ${down(Math.max(...bounds))}` +
      (Number.isFinite(epsilon) ? `; ${above || "none"} above ε, where 5% are allowed.` : "; the truth is ∞.") +
      (chance ? " (± is one standard error.)" : "")
    );
  };

  const story = () => {
    const { title, rule, told: output, guessed } = MECHANISMS[name];
    const { output: published, coins, v, r } = game;
    const ins = coins.filter((coin) => coin === 1).length;
    return {
      ready: `${N} elements, one run. ${title} ${rule}.`,
      coins: `A fair coin for each element: ${ins} are in (filled), ${N - ins} are out (hollow).`,
      run: `${title} runs once. ${output(published)}`,
      guesses: `The guesser sees the output, not the coins. ${guessed(published)}`,
      counts: r ? `The coins are uncovered: v = ${v} of r = ${r} guesses are right.` : "No guess was taken: v = 0 of r = 0.",
      bound:
        `v = ${v} of r = ${r} gives the lower bound ${down(game.bound)} on ε, with 95% confidence. ` +
        `The truth is ${Number.isFinite(MECHANISMS[name].epsilon) ? MECHANISMS[name].epsilon : "∞"}.`,
    }[STEPS[step]];
  };

  /** The picture has everything from the start; its classes say how much of it is seen. */
  const show = () => {
    stage.setAttribute("class", `game-stage ${STEPS.slice(0, step + 1).map((word) => `at-${word}`).join(" ")}`);
    stage.dataset.step = STEPS[step];
    const words = step ? `Step ${step} of ${STEPS.length - 1}. ${story()}` : story();
    told.textContent = words;
    stage.setAttribute("aria-label", words);
    gap.textContent = MECHANISMS[name].gap;
    lesson.textContent = step === STEPS.length - 1 ? MECHANISMS[name].lesson : "";
    runs.textContent = tally();
    field.value = seed;
    next.setAttribute("aria-disabled", step === STEPS.length - 1); // it keeps the focus
    playing.textContent = timer === null ? "Play" : "Pause";
    for (const radio of choice.querySelectorAll("input")) radio.checked = radio.value === name;
  };

  const go = (to) => {
    step = Math.min(STEPS.length - 1, to);
    if (step === STEPS.length - 1 && !past[name].has(seed)) {
      past[name].set(seed, game.bound);
      stage.lastChild.replaceWith(scale());
      stage.getBoundingClientRect(); // so that the new bound fades in
    }
    show();
  };

  const pause = () => {
    clearInterval(timer);
    timer = null;
    playing.textContent = "Play";
  };

  /** From here to the end, or another run; at once for those who do not want things to move. */
  const start = () => {
    if (step === STEPS.length - 1) begin({ seed: seed + 1 });
    if (still.matches) return go(STEPS.length - 1);
    timer = setInterval(() => {
      go(step + 1);
      if (step === STEPS.length - 1) pause();
    }, PACE);
    go(step + 1);
  };

  const begin = (change) => {
    pause();
    ({ name, seed } = { name, seed, ...change });
    game = play(name, seed);
    stage.setAttribute("class", "game-stage");
    paint();
    go(0);
  };

  /** A run with all its steps shown. */
  const finished = (change) => {
    begin(change);
    go(STEPS.length - 1);
  };

  finished({}); // whoever comes sees a whole audit, and may play another
  let drawn = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== drawn) {
      drawn = place.clientWidth;
      paint();
    }
  }).observe(place);
})();

// The explorer: sliders over the numbers of explorer-data.js, drawn by Plotly. Nothing is fetched.
(() => {
  const data = window.explorerData;
  const place = document.querySelector(".explorer");
  if (!place || !data || !window.Plotly) return; // what stands in the page says where to look

  // ------------------------------------------------------------------ what is asked, and answers

  const start = { method: "staying", epsilon: 2, x: 8, k: 100 };
  const chosen = { ...start };
  const SLIDERS = {
    epsilon: { label: "Certified privacy level ε", say: (value) => `ε = ${value}` },
    x: { label: "Canaries per coordinate", say: (value) => `${value} per coordinate` },
    k: { label: "Number of guesses", say: (value) => `${value} guesses` },
  };
  const WORDS = {
    staying: "canaries that stay",
    hopping: "canaries that hop",
    "one-way": "canaries that stay, with one-way feedback",
  };
  const COORDINATES = 1000;

  const point = (what) => {
    const [bound, error, accuracy] =
      data.points[`${what.method} ${what.epsilon} ${what.x} ${what.k}`];
    return { bound, error, accuracy, estimate: Math.log(accuracy / (1 - accuracy)) };
  };
  const grouped = (number) => number.toLocaleString("en-GB");
  const finite = (number, digits) => (Number.isFinite(number) ? number.toFixed(digits) : "∞");

  // ------------------------------------------------------------------------------- the controls

  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  const ways = make("fieldset", { class: "explorer-ways" }, make("legend", {}, "Canaries …"));
  for (const [method, words] of Object.entries(data.methods)) {
    const radio = make("input", { type: "radio", name: "explorer-method", value: method });
    radio.checked = method === chosen.method;
    const swatch = make("span", { class: "explorer-swatch", "aria-hidden": "true" });
    swatch.style.setProperty("--swatch", data.colours[method]);
    ways.append(make("label", {}, radio, swatch, make("span", {}, words)));
    radio.addEventListener("change", () => choose({ method }));
  }

  const sliders = make("div", { class: "explorer-sliders" });
  const inputs = {};
  for (const [name, { label, say }] of Object.entries(SLIDERS)) {
    const id = `explorer-${name}`;
    const values = data[name];
    const input = make("input", { type: "range", id, min: 0, max: values.length - 1, step: 1 });
    const value = make("output", { for: id, "aria-hidden": "true" }); // the slider says it itself
    const ends = make(
      "span",
      { class: "explorer-ends", "aria-hidden": "true" },
      make("span", {}, String(values[0])),
      make("span", {}, String(values.at(-1))),
    );
    sliders.append(
      make(
        "div",
        { class: "explorer-slider" },
        make("span", { class: "explorer-head" }, make("label", { for: id }, label), value),
        input,
        ends,
      ),
    );
    inputs[name] = {
      show() {
        input.value = values.indexOf(chosen[name]);
        input.setAttribute("aria-valuetext", say(chosen[name]));
        input.style.setProperty("--share", input.value / (values.length - 1));
        value.textContent = chosen[name];
      },
    };
    input.addEventListener("input", () => choose({ [name]: values[input.value] }));
  }

  const reset = make("button", { type: "button", class: "explorer-button" }, "The paper’s setting");
  reset.addEventListener("click", () => choose(start));
  const best = make("button", { type: "button", class: "explorer-button" }, "Largest mean bound at this ε");
  best.addEventListener("click", () => {
    const all = Object.keys(data.methods).flatMap((method) =>
      data.x.flatMap((x) => data.k.map((k) => ({ method, epsilon: chosen.epsilon, x, k }))),
    );
    choose(all.reduce((a, b) => (point(b).bound > point(a).bound ? b : a)));
  });

  // -------------------------------------------------------------------------------- the answers

  const tile = (title, note) => {
    const number = make("span", { class: "explorer-number" });
    const below = make("span", { class: "explorer-note" }, note);
    const box = make(
      "div",
      { class: "explorer-tile" },
      make("span", { class: "explorer-title" }, title),
      number,
      below,
    );
    return { box, number, below };
  };
  const bound = tile("mean exact bound", "");
  const meter = make("span", { class: "explorer-meter", "aria-hidden": "true" }, make("span"));
  bound.box.append(meter);
  const estimate = tile("estimate", "what the mean accuracy suggests; not a bound");
  const accuracy = tile("accuracy", "");
  const said = make("p", { class: "explorer-said", role: "status", "aria-live": "polite" });

  // ----------------------------------------------------------------------------------- pictures

  const picture = (id) => make("div", { id, class: "explorer-picture", role: "img" });
  const byElements = picture("explorer-by-elements");
  const byGuesses = picture("explorer-by-guesses");
  const caption = make("p", { class: "explorer-caption" });

  place.replaceChildren(
    make(
      "div",
      { class: "explorer-controls" },
      ways,
      sliders,
      make("div", { class: "explorer-buttons" }, reset, best),
    ),
    make("div", { class: "explorer-tiles" }, bound.box, estimate.box, accuracy.box),
    said,
    make("div", { class: "explorer-pictures" }, byElements, byGuesses),
    caption,
  );
  place.classList.add("live");

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clear = (hex, alpha) => {
    const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
  };

  /** The curves of all methods along one slider, the chosen one on top with its estimate. */
  const traces = (axis) => {
    const values = data[axis];
    const order = Object.keys(data.methods).filter((method) => method !== chosen.method);
    const drawn = [];
    for (const method of [...order, chosen.method]) {
      const main = method === chosen.method;
      const row = values.map((value) => point({ ...chosen, method, [axis]: value }));
      const ink = data.colours[method];
      if (main) {
        drawn.push({
          x: values,
          y: row.map((p) => (Number.isFinite(p.estimate) ? p.estimate : null)),
          mode: "lines",
          line: { color: ink, width: 1.6, dash: "dot" },
          hovertemplate: "estimate %{y:.2f}<extra></extra>",
        });
        drawn.push({
          x: [...values, ...[...values].reverse()],
          y: [
            ...row.map((p) => p.bound + 2 * p.error),
            ...row.map((p) => p.bound - 2 * p.error).reverse(),
          ],
          fill: "toself",
          fillcolor: clear(ink, 0.22),
          mode: "none",
          hoverinfo: "skip",
        });
      }
      drawn.push({
        x: values,
        y: row.map((p) => p.bound),
        customdata: row.map((p) => p.error),
        mode: "lines+markers",
        line: { color: ink, width: main ? 3 : 1.6 },
        marker: { color: ink, size: main ? 7 : 4 },
        hovertemplate: `${WORDS[method]}<br>%{y:.2f} ± %{customdata:.2f}<extra></extra>`,
      });
    }
    const here = point(chosen);
    const text = colour("--pst-color-text-base");
    drawn.push({
      x: [chosen[axis]],
      y: [here.bound],
      mode: "markers",
      marker: { size: 17, color: "rgba(0,0,0,0)", line: { width: 2.5, color: text } },
      hoverinfo: "skip",
    });
    const { quoted } = data;
    const shown = quoted.means.filter(([x]) => axis === "x" || x === chosen.x);
    if (chosen.epsilon === quoted.epsilon && (axis === "k" || chosen.k === quoted.k) && shown.length) {
      drawn.push({
        x: shown.map(([x]) => (axis === "x" ? x : quoted.k)),
        y: shown.map(([, mean]) => mean),
        error_y: { type: "data", array: shown.map(([, , error]) => error), color: text, thickness: 1.2, width: 3 },
        customdata: shown.map(([, , error]) => error),
        mode: "markers",
        marker: { symbol: "star", size: 12, color: data.colours.quoted, line: { width: 1, color: text } },
        hovertemplate: "the paper: %{y:.2f} ± %{customdata:.2f}<extra></extra>",
      });
    }
    return drawn;
  };

  const layout = (axis, title) => {
    const text = colour("--pst-color-text-base");
    const grid = colour("--pst-color-border");
    const values = data[axis];
    const axes = { color: text, gridcolor: grid, linecolor: grid, zeroline: false, fixedrange: true };
    return {
      height: 320,
      margin: { l: 46, r: 12, t: 12, b: 46 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "inherit", size: 13, color: text },
      showlegend: false,
      dragmode: false,
      hovermode: "closest",
      xaxis: {
        ...axes,
        type: "log",
        showgrid: false,
        ticks: "outside",
        tickcolor: grid,
        title: { text: title, standoff: 8, font: { size: 13 } },
        tickvals: values.filter((value) => ![3, 6, 24, 300].includes(value)),
        ticktext: values.filter((value) => ![3, 6, 24, 300].includes(value)).map(String),
        range: [Math.log10(values[0] / 1.15), Math.log10(values.at(-1) * 1.15)],
      },
      yaxis: {
        ...axes,
        title: { text: "nats", standoff: 6, font: { size: 13 } },
        range: [0, chosen.epsilon * 1.1],
        nticks: 6,
      },
      shapes: [
        {
          type: "line", xref: "paper", x0: 0, x1: 1, y0: chosen.epsilon, y1: chosen.epsilon,
          line: { color: text, width: 1.3, dash: "dash" },
        },
      ],
      annotations: [
        {
          xref: "paper", x: 0.01, y: chosen.epsilon, yanchor: "top", xanchor: "left",
          showarrow: false, text: `certified ε = ${chosen.epsilon}`, font: { size: 12, color: text },
        },
      ],
    };
  };

  const options = { displayModeBar: false, responsive: true, showTips: false };
  const draw = () => {
    for (const [node, axis, title] of [
      [byElements, "x", `canaries per coordinate (${chosen.k} guesses)`],
      [byGuesses, "k", `guesses (${chosen.x} per coordinate)`],
    ]) {
      window.Plotly.react(node, traces(axis), layout(axis, title), options);
    }
  };

  // ------------------------------------------------------------------------ all of it, together

  const show = () => {
    const here = point(chosen);
    for (const input of Object.values(inputs)) input.show();
    for (const radio of ways.querySelectorAll("input")) radio.checked = radio.value === chosen.method;
    const trials = grouped(data.trials[chosen.method]);
    const digits = here.error < 0.005 ? 3 : 2; // as many as mean something
    const mean = `${here.bound.toFixed(digits)} ± ${here.error.toFixed(digits)}`;
    bound.number.textContent = mean;
    bound.below.textContent = `of ε = ${chosen.epsilon}; mean of ${trials} audits ± standard error`;
    meter.style.setProperty("--share", Math.min(1, here.bound / chosen.epsilon));
    meter.style.setProperty("--swatch", data.colours[chosen.method]);
    estimate.number.textContent = finite(here.estimate, 2);
    accuracy.number.textContent = `${(100 * here.accuracy).toFixed(1)}%`;
    accuracy.below.textContent = `of ${chosen.k} guesses are right, on average`;
    const elements = grouped(chosen.x * COORDINATES);
    said.textContent =
      `Mean bound ${mean} of ε = ${chosen.epsilon}, estimate ${finite(here.estimate, 2)}, ` +
      `accuracy ${(100 * here.accuracy).toFixed(1)}%: ${chosen.k} guesses at ${elements} canaries ` +
      `on ${grouped(COORDINATES)} coordinates, ${WORDS[chosen.method]}.`;
    caption.textContent =
      "Thick: the canaries you chose, with a band of two standard errors. Thin: the others. " +
      "Dotted: the estimate. Ring: where you are. Click on a point to go there." +
      (chosen.epsilon === data.quoted.epsilon && chosen.k === data.quoted.k
        ? " Stars: the two means that the paper quotes, by its own bound."
        : ` The paper’s own means appear as stars at ε = ${data.quoted.epsilon} and ${data.quoted.k} guesses.`);
    for (const [node, axis, words] of [
      [byElements, "x", "canaries per coordinate"],
      [byGuesses, "k", "the number of guesses"],
    ]) {
      const row = data[axis].map((value) => point({ ...chosen, [axis]: value }).bound);
      const top = data[axis][row.indexOf(Math.max(...row))];
      node.setAttribute(
        "aria-label",
        `Mean bound against ${words}, ${WORDS[chosen.method]}: from ${row[0].toFixed(2)} at ` +
          `${data[axis][0]} to ${row.at(-1).toFixed(2)} at ${data[axis].at(-1)}, ` +
          `largest at ${top}, ${Math.max(...row).toFixed(2)}.`,
      );
    }
    draw();
  };

  const choose = (change) => {
    Object.assign(chosen, change);
    show();
  };

  show();
  for (const [node, axis] of [[byElements, "x"], [byGuesses, "k"]]) {
    node.on("plotly_click", ({ points: [hit] }) => {
      if (data[axis].includes(hit.x)) choose({ [axis]: hit.x });
    });
  }
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();

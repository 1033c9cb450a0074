// One slider of the explorer, for a chapter: canaries per coordinate, drawn without Plotly.
(() => {
  const data = window.explorerData;
  const place = document.querySelector(".canary-slider");
  if (!place || !data) return; // what stands in the page says where to look

  const SETTING = { method: "staying", epsilon: 2, k: 100 };
  const COORDINATES = 1000;
  const values = data.x;
  const points = values.map((x) => {
    const [bound, error, accuracy] =
      data.points[`${SETTING.method} ${SETTING.epsilon} ${x} ${SETTING.k}`];
    return { x, bound, error, accuracy };
  });
  const grouped = (number) => number.toLocaleString("en-GB");

  const maker = (create) => (name, attributes = {}, ...children) => {
    const node = create(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const make = maker((name) => document.createElement(name));
  const draw = maker((name) => document.createElementNS("http://www.w3.org/2000/svg", name));

  let at = 0;
  const visited = new Set();

  const id = "canaries-per-coordinate";
  const input = make("input", { type: "range", id, min: 0, max: values.length - 1, step: 1, value: 0 });
  const shown = make("output", { for: id, "aria-hidden": "true" }); // the slider says it itself
  const all = make("button", { type: "button", class: "explorer-button" }, "Show the whole curve");
  const said = make("p", { class: "explorer-said", role: "status", "aria-live": "polite" });
  const picture = draw("svg", { class: "slider-picture", role: "img" });
  const label = make("label", { for: id }, "Canaries per coordinate");
  place.replaceChildren(
    make("span", { class: "explorer-head" }, label, shown),
    make("div", { class: "explorer-slider" }, input),
    said,
    picture,
    make("div", { class: "explorer-buttons" }, all),
  );
  place.classList.add("live");

  /** The points that were visited; the whole curve once all of them were. */
  const paint = () => {
    const width = Math.max(260, picture.getBoundingClientRect().width);
    const [height, left, right, top, bottom] = [270, 40, 14, 14, 46];
    const last = Math.log(values.at(-1));
    const x = (value) => left + 10 + ((width - left - right - 20) * Math.log(value)) / last;
    const y = (value) => height - bottom - ((height - top - bottom) * value) / (1.1 * SETTING.epsilon);
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("height", height);
    picture.replaceChildren();
    for (let tick = 0; tick <= SETTING.epsilon; tick += 0.5) {
      const words = draw("text", { class: "game-label", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, String(tick));
      picture.append(draw("path", { class: "slider-grid", d: `M${left} ${y(tick)}H${width - right}` }), words);
    }
    for (const value of values) {
      const words = draw("text", { class: "game-label", x: x(value), y: height - bottom + 19, "text-anchor": "middle" }, String(value));
      picture.append(draw("path", { class: "game-axis", d: `M${x(value)} ${height - bottom}v5` }), words);
    }
    picture.append(
      draw("path", { class: "game-axis", d: `M${left} ${height - bottom}H${width - right}` }),
      draw("path", { class: "game-truth", d: `M${left} ${y(SETTING.epsilon)}H${width - right}` }),
      draw("text", { class: "game-label strong", x: left + 6, y: y(SETTING.epsilon) + 17 }, `certified ε = ${SETTING.epsilon}`),
      draw("text", { class: "game-label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "canaries per coordinate"),
      draw("text", { class: "game-label", x: left + 6, y: y(1) - 7 }, "mean bound (nats)"),
    );
    if (visited.size === values.length) {
      const path = points.map((point, i) => `${i ? "L" : "M"}${x(point.x)} ${y(point.bound)}`).join("");
      picture.append(draw("path", { class: "slider-curve", d: path }));
    }
    for (const i of visited) {
      picture.append(draw("circle", { class: "slider-point", cx: x(values[i]), cy: y(points[i].bound), r: 4 }));
    }
    picture.append(draw("circle", { class: "slider-here", cx: x(values[at]), cy: y(points[at].bound), r: 9 }));
  };

  const show = () => {
    visited.add(at);
    const { x, bound, error, accuracy } = points[at];
    const mean = `${bound.toFixed(3)} ± ${error.toFixed(3)}`;
    input.value = at;
    input.setAttribute("aria-valuetext", `${x} per coordinate`);
    shown.textContent = x;
    said.textContent =
      `${grouped(x * COORDINATES)} canaries on ${grouped(COORDINATES)} coordinates: ` +
      `${(100 * accuracy).toFixed(1)}% of ${SETTING.k} guesses are right, and the mean bound is ` +
      `${mean} (${grouped(data.trials[SETTING.method])} audits ± standard error).`;
    const seen = [...visited].sort((a, b) => a - b).map((i) => `${points[i].bound.toFixed(2)} at ${values[i]}`);
    picture.setAttribute("aria-label", `Mean bound against canaries per coordinate: ${seen.join(", ")}.`);
    all.hidden = visited.size === values.length;
    paint();
  };

  input.addEventListener("input", () => {
    at = Number(input.value);
    show();
  });
  all.addEventListener("click", () => {
    values.forEach((_, i) => visited.add(i));
    input.focus(); // the button goes
    show();
  });
  show();
  let drawn = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== drawn) {
      drawn = place.clientWidth;
      paint();
    }
  }).observe(place);
})();

/* What `make pdf` does with the one page of all pages before Chromium prints it. */
"use strict";

/* Formulas and tables that are too wide are made smaller, since nothing scrolls on paper. */
function fit() {
  for (const formula of document.querySelectorAll("mjx-container")) {
    const width = formula.firstElementChild.getBoundingClientRect().width;
    const box = formula.hasAttribute("display") ? formula.parentElement : document.body;
    const place = box.getBoundingClientRect().width;
    if (width > place) formula.style.fontSize = `${(98 * place) / width}%`;
  }
  for (const table of document.querySelectorAll("main table")) {
    const box = table.parentElement.closest("td, th, .admonition, li, dd, main");
    const style = getComputedStyle(box);
    const edge = parseFloat(style.paddingRight) + parseFloat(style.borderRightWidth);
    const place = box.getBoundingClientRect().right - table.getBoundingClientRect().left - edge;
    if (table.scrollWidth > place + 1) table.style.zoom = Math.max(0.4, place / table.scrollWidth);
  }
}

/* What would still be cut off: the beginning of its HTML. */
function tooWide() {
  const edge = document.body.getBoundingClientRect().right + 1;
  const hides = (x) => getComputedStyle(x).overflowX !== "visible" && x.scrollWidth > x.clientWidth + 1;
  return [...document.querySelectorAll("body *")]
    .filter((x) => !x.closest("mjx-math *, mjx-assistive-mml, .visually-hidden"))
    .filter((x) => x.getBoundingClientRect().right > edge || hides(x))
    .map((x) => x.outerHTML.slice(0, 160));
}

/* Leave only what is known last: the first sheets of chapters, as pairs with ids, in the table of
   contents, and the head of each sheet: the first chapter that begins there, or that goes on. */
function leaveNumbers(begins, last) {
  const heads = {};
  let before = 0;
  for (const [id, sheet] of begins) {
    const [words, number] = document.querySelector(`nav a[href="#${id}"]`).children;
    number.textContent = sheet;
    for (let x = sheet + (sheet === before); x <= last; x++) heads[x] = words.textContent;
    before = sheet;
  }
  const empty = (x) => `<p style="break-before: page; page: sheet-${x}">x</p>`;
  const head = (x) => `@page sheet-${x} { @top-left { content: "${heads[x]}"; } }`;
  const sheets = Object.keys(heads);
  document.querySelector("main").innerHTML = sheets.map(empty).join("");
  const style = document.head.appendChild(document.createElement("style"));
  style.textContent = `@page { @bottom-center { content: none; } } ${sheets.map(head).join(" ")}`;
  document.documentElement.classList.add("numbers");
}

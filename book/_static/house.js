// A formula within a sentence that is wider than its line, as on a phone, scrolls (see house.css).
// Formulas and figures that scroll can be reached by the keyboard, and no others.
(() => {
  const isTooWide = (formula) => {
    const line = formula.closest("p, li, dd, td, th, figcaption") ?? formula.parentElement;
    const whole = formula.closest(".nowrap") ?? formula; // with its punctuation
    return whole.offsetWidth > line.clientWidth;
  };
  const mark = () => {
    const formulas = [...document.querySelectorAll("span.math")];
    formulas.forEach((formula) => formula.classList.remove("wide"));
    formulas.filter(isTooWide).forEach((formula) => formula.classList.add("wide"));
    const boxes = [...document.querySelectorAll("span.math, .math mjx-container[display], figure")];
    const scrolling = new Set(
      boxes.filter((box) => box.matches(".wide, [display], figure") && box.scrollWidth > box.clientWidth),
    );
    for (const box of boxes) {
      if (scrolling.has(box)) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  const begin = () => {
    const article = document.querySelector("article");
    if (article) new ResizeObserver(mark).observe(article); // also when something is unfolded
  };
  window.addEventListener("load", () => Promise.resolve(window.MathJax?.startup?.promise).then(begin));
})();

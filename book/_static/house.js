// A formula within a sentence that is wider than its line, as on a phone, scrolls (see house.css).
// Formulas that scroll can be reached by the keyboard, and no others: there is nothing to do there.
(() => {
  const mark = () => {
    for (const formula of document.querySelectorAll("span.math")) {
      formula.classList.remove("wide");
      const line = formula.closest("p, li, dd, td, th, figcaption") ?? formula.parentElement;
      const whole = formula.closest(".nowrap") ?? formula; // with its punctuation
      formula.classList.toggle("wide", whole.offsetWidth > line.clientWidth);
    }
    for (const box of document.querySelectorAll("span.math.wide, .math mjx-container[display]")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(mark));
  window.addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // what was folded had no width
})();

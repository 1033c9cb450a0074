// A formula within a sentence that is wider than its line, as on a phone, scrolls (see house.css).
(() => {
  const mark = () => {
    for (const formula of document.querySelectorAll("span.math")) {
      formula.classList.remove("wide");
      const line = formula.closest("p, li, dd, td, th, figcaption") ?? formula.parentElement;
      const whole = formula.closest(".nowrap") ?? formula; // with its punctuation
      formula.classList.toggle("wide", whole.offsetWidth > line.clientWidth);
    }
  };
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(mark));
  window.addEventListener("resize", mark);
})();

// A statement or figure that a link leads to, shown beside the link while the pointer or the focus
// is on it. Escape closes it. What there is to show comes from previews-data.js (see hover_previews.py).
(() => {
  const root = new URL(document.documentElement.dataset.content_root ?? "./", document.baseURI);
  let data = null; // a promise
  let shown = null;
  let timer = 0;

  const load = () =>
    (data ??= new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = new URL("_static/previews-data.js", root);
      script.onload = () => resolve(window.oralibPreviews ?? {});
      script.onerror = () => resolve({});
      document.head.append(script);
    }));

  const place = (link) => {
    const url = new URL(link.href);
    return url.href.startsWith(root.href) ? decodeURI(url.href.slice(root.href.length)) : "";
  };

  const hide = () => {
    clearTimeout(timer);
    shown?.link.removeAttribute("aria-describedby");
    shown?.box.remove();
    shown = null;
  };

  // Whether what a link leads to is on the screen already.
  const isSeen = (link) => {
    if (new URL(link.href).pathname !== location.pathname) return false;
    const at = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    const { top, bottom } = at?.getBoundingClientRect() ?? { top: -1, bottom: -1 };
    return top >= 0 && bottom <= window.innerHeight;
  };

  const show = async (link) => {
    if (isSeen(link)) return;
    const html = (await load())[place(link)];
    if (!html || !link.matches(":hover, :focus-visible") || shown?.link === link) return;
    hide();
    const box = document.createElement("div");
    box.className = "preview bd-content";
    box.id = "preview";
    box.setAttribute("role", "tooltip");
    box.innerHTML = html;
    for (const part of box.querySelectorAll("[src]"))
      part.src = new URL(part.getAttribute("src"), root);
    for (const part of box.querySelectorAll("a")) part.tabIndex = -1; // only to look at
    document.body.append(box);
    link.setAttribute("aria-describedby", box.id);
    shown = { link, box };
    await window.MathJax?.typesetPromise?.([box]);
    put(box, link);
    for (const image of box.querySelectorAll("img")) image.onload = () => put(box, link);
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", later);
  };

  // Below the link where there is room, else above it; never beyond the window.
  const put = (box, link) => {
    const at = link.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(at.left, width - box.offsetWidth - 8));
    const fits = at.bottom + 6 + box.offsetHeight < window.innerHeight;
    const below = fits || at.top < window.innerHeight / 2;
    const top = below ? at.bottom + 6 : Math.max(8, at.top - box.offsetHeight - 6);
    box.style.left = `${left + window.scrollX}px`;
    box.style.top = `${top + window.scrollY}px`;
  };

  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 250); // time to move the pointer onto the box
  };

  const listen = (link) => {
    link.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "touch") return;
      clearTimeout(timer);
      timer = setTimeout(() => show(link), 200);
    });
    link.addEventListener("pointerleave", later);
    link.addEventListener("focus", () => show(link));
    link.addEventListener("blur", later);
  };

  window.addEventListener("load", () => {
    document.querySelectorAll("article a.reference.internal[href*='#']").forEach(listen);
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();

// What the pages do beside links and forms. Listens on the document, so that it need not be told when Turbo changes
// the page, and runs before the page is painted, so that the colours are right from the start.
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Colours: light, dark, or as the system has it. A browser that keeps nothing gets the system's.
  const chosen = () => {
    try { return localStorage.getItem("flare-theme") || "system"; } catch { return "system"; }
  };
  const paint = () => {
    const theme = chosen();
    root.dataset.bsTheme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    document.querySelectorAll("[data-theme]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.theme === theme));
    });
  };
  paint();
  dark.addEventListener("change", paint);
  document.addEventListener("DOMContentLoaded", paint);
  document.addEventListener("turbo:load", paint);
  document.addEventListener("turbo:render", paint);

  const clicks = {
    theme(button) {
      try { localStorage.setItem("flare-theme", button.dataset.theme); } catch { /* it holds for this page */ }
      paint();
    },
    menu(button) {
      const open = document.getElementById(button.dataset.menu).classList.toggle("show");
      button.setAttribute("aria-expanded", String(open));
    },
    dialog(button) { document.getElementById(button.dataset.dialog).showModal(); },
    close(button) { button.closest("dialog").close(); },
    field(link) { meet(document.getElementById(link.dataset.field)); },
    async copy(button) {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText);
      button.classList.add("btn-success");
      setTimeout(() => button.classList.remove("btn-success"), 1000);
    },
  };
  document.addEventListener("click", (event) => {
    for (const [name, act] of Object.entries(clicks)) {
      const button = event.target.closest(`[data-${name}]`);
      if (button) act(button);
    }
  });

  // What depends on some fields is asked for again when one of them changes: by the button that asks for it.
  document.addEventListener("change", (event) => {
    const fields = event.target.closest("[data-refresh]");
    if (fields) document.getElementById(fields.dataset.refresh)?.click();
  });

  // What is wrong is met where it is: in sight, and with the keyboard in it.
  const meet = (place) => {
    if (!place) return;
    for (let box = place.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    place.scrollIntoView({ block: "center" });
    place.focus({ preventScroll: true });
  };
  const wrong = (within) => meet(within.querySelector("[aria-invalid=true]") || within.querySelector("#problem"));
  document.addEventListener("DOMContentLoaded", () => wrong(document));
  // After Turbo has put focus and scrolling where it wants them.
  document.addEventListener("turbo:render", () => setTimeout(() => wrong(document)));
  document.addEventListener("turbo:frame-render", ({ target }) => setTimeout(() => wrong(target)));

  // Expressions are checked while they are typed, by the API's own word. What they say of a document is not asked here.
  const checks = new WeakMap();
  const check = async (field) => {
    const place = document.getElementById(`${field.id}-error`);
    const kind = field.dataset.check;
    const source = field.value;
    const say = (text) => {
      if (field.value !== source) return;
      place.setAttribute("aria-live", "polite");
      place.hidden = false;
      place.className = text ? "invalid-feedback d-block" : "";
      place.textContent = text;
      field.classList.toggle("is-invalid", text !== "");
      if (text) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
    };
    if (source.trim() === "") return say("");
    try {
      const answer = await fetch("/filters/test", { method: "POST", body: JSON.stringify({ [kind]: source, document: {} }) });
      const { error, detail } = await answer.json();
      if (!answer.ok) say(`${kind}: ${detail ?? error?.detail ?? answer.status}`);
      else say(error?.position ? `${kind}: ${error.detail}` : "");
    } catch { /* saving it will tell */ }
  };
  document.addEventListener("input", (event) => {
    const field = event.target.closest("[data-check]");
    if (!field) return;
    clearTimeout(checks.get(field));
    checks.set(field, setTimeout(() => check(field), 300));
  });

  // A field that belongs to a choice chooses it.
  document.addEventListener("input", (event) => {
    const more = event.target.closest("[data-for]");
    const choice = more?.closest("fieldset")?.querySelector(`input[type=radio][value="${more.dataset.for}"]`);
    if (choice) choice.checked = true;
  });

  // Tabs that do not all fit are shown from where the present one is.
  const reveal = () => document.querySelectorAll(".tab-strip").forEach((strip) => {
    const tab = strip.querySelector(".active");
    if (tab) strip.scrollLeft = tab.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
  });
  document.addEventListener("DOMContentLoaded", reveal);
  document.addEventListener("turbo:load", reveal);
  addEventListener("resize", reveal);

  // Turbo's own bar brings a style of its own, which the policy of the pages does not let in.
  document.addEventListener("DOMContentLoaded", () => window.Turbo?.config && (window.Turbo.config.drive.progressBarDelay = 1e9));
  let waiting;
  const settle = () => { clearTimeout(waiting); root.classList.remove("visiting"); };
  document.addEventListener("turbo:visit", () => { settle(); waiting = setTimeout(() => root.classList.add("visiting"), 300); });
  document.addEventListener("turbo:submit-start", () => { settle(); waiting = setTimeout(() => root.classList.add("visiting"), 300); });
  // What was asked is answered: a question that stays open would keep the next page from being used.
  document.addEventListener("turbo:submit-start", () => document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close()));
  document.addEventListener("turbo:submit-end", settle);
  document.addEventListener("turbo:load", settle);
  document.addEventListener("turbo:render", settle);

  // A page that is kept for going back is kept without what was open on it and without what was told once.
  document.addEventListener("turbo:before-cache", () => {
    document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
    document.querySelectorAll("main .alert[role=status]").forEach((told) => told.remove());
    document.querySelectorAll(".navbar-collapse.show").forEach((menu) => menu.classList.remove("show"));
  });
})();

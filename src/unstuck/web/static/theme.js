// Before anything is drawn, so that nothing flashes: the theme that somebody chose here, else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("unstuck-theme");
  } catch {}
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();

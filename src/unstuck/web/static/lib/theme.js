// Dark or light: the system's, until somebody chooses here.

import { signal } from "./dom.js";

const KEY = "unstuck-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => document.documentElement.dataset.theme;
const present = () => chosen() ?? (system.matches ? "dark" : "light");

export const theme = signal(present());
system.addEventListener("change", () => (theme.value = present()));

export const turn = () => {
  const next = theme.value === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // It is kept as long as the page is open.
  }
  theme.value = next;
};

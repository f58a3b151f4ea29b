// Icons: strokes on a field of 24, in the colour of the text beside them. They never say anything that the text does not.

import { html } from "../lib/dom.js";

const PATHS = {
  again: "M20 11a8 8 0 1 0-2.300 6.300M20 4v7h-7",
  approve: "M9 12l2 2 4-4M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  audit: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  bell: "M6 9a6 6 0 1 1 12 0c0 6 2 7 2 7H4s2-1 2-7M10 20a2 2 0 0 0 4 0",
  block: "M5.600 5.600l12.800 12.800M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  check: "M5 12.500l5 5L20 7",
  clock: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  cross: "M6 6l12 12M18 6L6 18",
  dot: "M12 11v2",
  down: "M6 9l6 6 6-6",
  flow: "M6 4v6a4 4 0 0 0 4 4h8M14 10l4 4-4 4M6 4h.01",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6M12 2v3M12 19v3M4.900 4.900l2.100 2.100M17 17l2.100 2.100M2 12h3M19 12h3M4.900 19.100L7 17M17 7l2.100-2.100",
  hand: "M8 11V6a1.500 1.500 0 0 1 3 0v5V4.500a1.500 1.500 0 0 1 3 0V11V6a1.500 1.500 0 0 1 3 0v8a6 6 0 0 1-6 6h-1a6 6 0 0 1-5-2.600L3 14a1.600 1.600 0 0 1 2.600-1.900L8 14",
  help: "M9.500 9a2.500 2.500 0 1 1 3.500 2.300c-.700.300-1 .900-1 1.700M12 16.500h.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  hold: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z",
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  jobs: "M4 6h16M4 12h16M4 18h10",
  key: "M14 10a4 4 0 1 1-3-3.900L20 3M11 6l9-3M17 4v4",
  line: "M5 12h.01M12 12h.01M19 12h.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  moon: "M20 14a8 8 0 1 1-10-10 7 7 0 0 0 10 10",
  pause: "M9 6v12M15 6v12",
  play: "M8 5l11 7-11 7z",
  queue: "M4 5h16v4H4zM4 10.500h16v4H4zM4 16h16v4H4z",
  receive: "M12 3v12M7 10l5 5 5-5M4 20h16",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M20 20l-4-4",
  send: "M12 16V4M7 9l5-5 5 5M4 20h16",
  skull: "M8 17v3h8v-3a7 7 0 1 0-8 0M9.500 11h.01M14.500 11h.01",
  stop: "M7 7h10v10H7z",
  stuck: "M12 4l9 16H3zM12 10v4M12 17h.01",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M4.900 4.900l1.400 1.400M17.700 17.700l1.400 1.400M2 12h2M20 12h2M4.900 19.100l1.400-1.400M17.700 6.300l1.400-1.400",
  target: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 12h.01",
  up: "M6 15l6-6 6 6",
  worker: "M4 5h16v10H4zM9 20h6M12 15v5",
};

export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name] ?? PATHS.dot} /></svg>`;

// Text that others wrote, made safe to look at: what would not be seen, or would turn what stands around it, is spelt
// out. It is never markup: everything the page draws goes through `html` (dom.js), which makes text of text.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const spelt = (mark) => {
  const code = mark.codePointAt(0);
  if (code === 13) return "";
  if (code < 32) return String.fromCharCode(0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
};

export const visible = (text) => text.replace(UNSEEN, spelt);

export const oneLine = (text, most = 160) => {
  const line = String(text ?? "").slice(0, most * 4).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
};

export const plural = (number, word, several = `${word}s`) => `${count(number)} ${number === 1 ? word : several}`;

const NUMBERS = new Intl.NumberFormat("en");
export const count = (number) => (number == null ? "–" : NUMBERS.format(number));
export const atLeast = (number, isAtLeast) => `${count(number)}${isAtLeast ? "+" : ""}`;

export const size = (bytes) => {
  if (bytes == null) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  while (bytes >= 1024 && place < units.length - 1) (bytes /= 1024), (place += 1);
  return `${bytes < 10 && place ? bytes.toFixed(1) : Math.round(bytes)} ${units[place]}`;
};

// The beginning of an id that still tells jobs apart when people talk about them: its end is what differs.
export const shortId = (id) => (id && id.length > 12 ? id.slice(-8) : id);

export const pretty = (value) => (value === undefined ? "" : JSON.stringify(value, null, 2));

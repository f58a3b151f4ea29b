// Logging in: the key is shown once, and the browser is known by a cookie from then on. The address stays, so that
// whoever followed a link is where it leads afterwards.

import { Problem } from "../lib/api.js";
import { html, useState } from "../lib/dom.js";
import { logIn } from "../lib/session.js";
import { Trouble } from "./basic.js";

export const LogIn = () => {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await logIn(key.trim());
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(
        error.status === 404
          ? new Problem({ title: "Log in elsewhere", detail: "this page is part of another program, which knows its users by itself", remedy: "log in there, then come back" })
          : error,
      );
      setBusy(false);
    }
  };
  return html`<main class="alone" id="main" tabindex="-1"><form class="card log-in" onSubmit=${submit}>
    <h1>Log in to unstuck</h1>
    <p class="dim">This server asks for an API key. It is shown to the server once; then this browser is known by a cookie, until you log out.</p>
    <div class="field"><label for="key">API key</label>
      <input id="key" type="password" autocomplete="current-password" placeholder="usk_…" required spellcheck=${false} value=${key} onInput=${(event) => setKey(event.target.value)} /></div>
    ${problem && html`<${Trouble} problem=${problem} />`}
    <button type="submit" class="primary" disabled=${isBusy || !key.trim()}>${isBusy ? "…" : "Log in"}</button>
    <p class="dim">No key yet? Where the database is: <code>unstuck keys create NAME --role operator</code></p>
  </form></main>`;
};

// The dialog before a change that cannot be undone, or that needs a word: what happens, what is needed, the command.

import { asking, carryOut, commandOf, read } from "../lib/actions.js";
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { Command, Trouble } from "./basic.js";
import { Toasts } from "./toasts.js";

export const Modal = ({ title, children, close, label }) => {
  const dialog = useRef(null);
  const isPressedBeside = useRef(false); // text that is marked up to the edge is no click beside it
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${dialog} aria-label=${label ?? title} onCancel=${(event) => (event.preventDefault(), close())}
    onPointerDown=${(event) => (isPressedBeside.current = event.target === dialog.current)}
    onClick=${(event) => event.target === dialog.current && isPressedBeside.current && close()}>
    <div class="modal"><h2>${title}</h2>${children}</div>
    <${Toasts} isInDialog=${true} />
  </dialog>`;
};

export const Dialog = () => {
  const action = asking.value;
  return action && html`<${Asked} key=${action} action=${action} />`;
};

const Asked = ({ action }) => {
  const fields = action.fields ?? [];
  const [texts, setTexts] = useState(Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])));
  const [isBusy, setBusy] = useState(false);
  const [isTried, setTried] = useState(false);
  const [problem, setProblem] = useState(null);
  const found = fields.map((field) => ({ field, ...read(field, texts[field.name]) }));
  const isReady = found.every((each) => !each.problem) && (!action.proof || texts.$proof === action.proof);
  const values = Object.fromEntries(found.filter((each) => !each.problem).map((each) => [each.field.name, each.value]));
  const close = () => (asking.value = null);
  const submit = async (event) => {
    event.preventDefault();
    setTried(true);
    if (!isReady || isBusy) return;
    setBusy(true);
    setProblem(null);
    const done = await carryOut(action, values, setProblem);
    setBusy(false);
    if (done !== null && asking.value === action) close();
  };
  return html`<${Modal} title=${action.confirm?.title ?? action.label.replace("…", "")} close=${close}>
    <form onSubmit=${submit}>
      ${action.confirm?.text && html`<p class="modal-text">${action.confirm.text}</p>`}
      ${found.map(({ field, problem }) => {
        const properties = {
          id: `field-${field.name}`,
          value: texts[field.name],
          "aria-describedby": `hint-${field.name}`,
          "aria-invalid": isTried && problem ? "true" : undefined,
          onInput: (event) => setTexts({ ...texts, [field.name]: event.target.value }),
        };
        return html`<div class="field" key=${field.name}>
          <label for=${properties.id}>${field.label}${field.optional ? html` <span class="dim">optional</span>` : ""}</label>
          ${field.choices
            ? html`<select ...${properties}>${field.choices.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}</select>`
            : field.long
              ? html`<textarea ...${properties} rows="4" spellcheck=${false}></textarea>`
              : html`<input ...${properties} autocomplete="off" />`}
          <small id=${properties["aria-describedby"]} class=${isTried && problem ? "wrong" : "dim"}>${isTried && problem ? problem : field.hint}</small>
        </div>`;
      })}
      ${action.proof &&
      html`<div class="field"><label for="field-proof">Type <b>${action.proof}</b> to go on</label>
        <input id="field-proof" autocomplete="off" value=${texts.$proof ?? ""} onInput=${(event) => setTexts({ ...texts, $proof: event.target.value })} /></div>`}
      ${commandOf(action, values) && html`<div class="field"><span class="dim">The same as a command</span><${Command} text=${commandOf(action, values)} /></div>`}
      ${problem && html`<${Trouble} problem=${problem} />`}
      <div class="modal-foot">
        <button type="button" onClick=${close}>Back</button>
        <button type="submit" class="primary ${action.tone === "bad" ? "danger" : ""}" disabled=${isBusy || (action.proof && !isReady)}>
          ${isBusy ? "…" : (action.confirm?.yes ?? action.label.replace("…", ""))}</button>
      </div>
    </form>
  <//>`;
};

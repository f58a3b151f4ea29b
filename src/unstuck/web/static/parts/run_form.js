// A form made from a workflow's schema: a field for each argument, checked by the server when it is sent.

import * as actions from "../lib/actions.js";
import { about } from "../lib/api.js";
import { command, ofTenant } from "../lib/command.js";
import { html, useState } from "../lib/dom.js";
import { go, href } from "../lib/router.js";
import { may } from "../lib/session.js";
import { shortId } from "../lib/text.js";
import { Command } from "./basic.js";

// What is asked of an argument: a text, a number, yes or no, or JSON of any kind.
export const kindOf = (schema = {}) => {
  const one = schema.type ?? schema.anyOf?.map((each) => each.type).find((type) => type && type !== "null");
  if (schema.enum) return "choice";
  return { string: "text", integer: "number", number: "number", boolean: "choice" }[one] ?? "json";
};

const parsed = (kind, text, schema) => {
  if (kind === "text") return text;
  if (kind === "choice") return schema.enum ? schema.enum.find((each) => String(each) === text) : text === "true";
  return JSON.parse(text);
};

export const fieldsOf = (schema = {}) => {
  const root = schema.$ref ? (schema.$defs ?? {})[schema.$ref.split("/").at(-1)] : schema;
  return Object.entries(root?.properties ?? {}).map(([name, each]) => ({
    name, schema: each, kind: kindOf(each), isNeeded: (root.required ?? []).includes(name), default: each.default,
  }));
};

export const RunForm = ({ workflow }) => {
  const fields = fieldsOf(workflow.schema);
  const [texts, setTexts] = useState({});
  const [wrong, setWrong] = useState({});
  if (!may("jobs.enqueue")) return html`<p class="dim">Your role may look, but not run jobs. As a command: <code>unstuck enqueue ${workflow.name}</code></p>`;
  const kwargs = {};
  const problems = {};
  for (const field of fields) {
    const text = texts[field.name];
    if (text === undefined || text === "") {
      if (field.isNeeded) problems[field.name] = "it is needed";
      continue;
    }
    try {
      kwargs[field.name] = parsed(field.kind, text, field.schema);
    } catch {
      problems[field.name] = "this is not JSON: texts stand in quotes";
    }
  }
  const whose = about();
  const typed = command("enqueue", [workflow.name], { kwargs: Object.keys(kwargs).length ? JSON.stringify(kwargs) : null, ...ofTenant(whose.tenant) });
  const submit = (event) => {
    event.preventDefault();
    setWrong(problems);
    if (Object.keys(problems).length) return;
    actions.begin({
      operation: "jobs.enqueue", label: "Run", path: ["jobs"], query: whose, body: { workflow: workflow.name, kwargs }, command: typed,
      done: (job) => `${workflow.name} ${shortId(job.id)} is enqueued`, after: (job) => go(href(["jobs", job.id])),
    });
  };
  return html`<form class="run-form" onSubmit=${submit}>
    ${fields.length === 0 && html`<p class="dim">It takes no arguments.</p>`}
    ${fields.map((field) => {
      const properties = {
        id: `run-${field.name}`, value: texts[field.name] ?? "", "aria-invalid": wrong[field.name] ? "true" : undefined, "aria-describedby": `run-hint-${field.name}`,
        onInput: (event) => setTexts({ ...texts, [field.name]: event.target.value }),
      };
      const said = field.default !== undefined ? `default ${JSON.stringify(field.default)}` : "";
      const choices = field.schema.enum ?? [true, false];
      return html`<div class="field" key=${field.name}><label for=${properties.id}>${field.name} ${!field.isNeeded && html`<span class="dim">optional</span>`}</label>
        ${field.kind === "choice" ? html`<select ...${properties}><option value="">${said || "–"}</option>${choices.map((each) => html`<option key=${String(each)} value=${String(each)}>${String(each)}</option>`)}</select>`
          : field.kind === "json" ? html`<textarea ...${properties} rows="3" spellcheck=${false} placeholder=${said || "JSON"}></textarea>`
          : html`<input ...${properties} inputmode=${field.kind === "number" ? "decimal" : undefined} placeholder=${said} autocomplete="off" />`}
        <small id=${properties["aria-describedby"]} class=${wrong[field.name] ? "wrong" : "dim"}>${wrong[field.name] ?? field.schema.description ?? field.kind}</small></div>`;
    })}
    <div class="acts"><button type="submit" class="primary" data-operation="jobs.enqueue">Run now</button><${Command} text=${typed} /></div>
  </form>`;
};

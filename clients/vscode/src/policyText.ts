import { text } from "./display";
import { fromHome } from "./home";
import { Page, type Place } from "./page";
import { type Kind, type Policy, type PolicyOrigin, type PolicyRule, scalarKeys } from "./protocol.gen";

/** Where a value comes from. */
interface Origin {
  file: string;
  line?: number;
  written?: string;
  entry?: string;
  reason?: string;
}

/** Entries that come from one place of the settings. */
interface Group {
  source: string;
  place: Place | string;
  notes: string[];
  entries: string[];
}

/** The columns for what may be done. */
const accessWidth = 22;

function placeOf({ file, line }: Origin): Place | string {
  return line === undefined ? text(file) : { file, line };
}

/** Names the setting: its key, and the toolchain that brings it. */
function sourceOf(setting: string, { written, entry }: Origin): string {
  const key = text(written ?? setting);
  return entry === undefined ? key : `${written === undefined ? "toolchains" : key}: ${text(entry)}`;
}

/** Collects entries below the place that they have in common, in their order. */
class Groups {
  private readonly all = new Map<string, Group>();

  add(setting: string, origin: Origin, entry: string, note?: string): void {
    const [source, place] = [sourceOf(setting, origin), placeOf(origin)];
    const notes = [origin.reason, note].filter((part) => part !== undefined).map(text);
    const key = JSON.stringify([source, place, notes]);
    const group = this.all.get(key) ?? { source, place, notes, entries: [] };
    group.entries.push(entry);
    this.all.set(key, group);
  }

  print(page: Page, title: string): void {
    page.heading(title);
    if (this.all.size === 0) page.line("  none");
    for (const { source, place, notes, entries } of this.all.values()) {
      page.row(`${source}  `, place, 2);
      for (const note of notes) page.words(note, 4);
      for (const entry of entries) page.line(`    ${entry}`);
    }
  }
}

function fileEntry(access: readonly string[], path: string): string {
  return `${access.join(", ").padEnd(accessWidth)}${path}`;
}

function addRule(files: Groups, rule: PolicyRule): void {
  const note =
    rule.guarded === undefined ? undefined : `${rule.guarded.join(", ")} only if protected paths are enforced`;
  files.add(rule.setting, rule, fileEntry(rule.access, text(fromHome(rule.path))), note);
}

/**
 * Lays out a policy: what a session may do, and which line of which file grants
 * it. What people look for comes first: mistakes, then files, then the rest.
 */
export function policyPage(kind: Kind, policyId: string, policy: Policy): Page {
  const page = new Page();
  page.line(`A ${kind} in ${text(policy.project)}`);
  page.line(policy.restricted ? "is sandboxed." : "is NOT sandboxed. In a sandbox it would get:");
  const files = new Groups();
  for (const rule of policy.rules) addRule(files, rule);
  const own = { file: "built-in defaults" };
  if (policy.privateRuntimeDir)
    files.add("system_paths.read_write", own, fileEntry(["read", "write", "execute"], "a runtime directory of its own"));
  if (policy.privateTerminals)
    files.add("system_paths.read_write", own, fileEntry(["read", "write"], "terminals of its own"));
  const from = (...keys: string[]): PolicyOrigin[] => policy.origins.filter((origin) => keys.includes(origin.key));
  if (policy.diagnostics.length > 0) {
    page.heading("Problems in the settings");
    for (const { severity, file, line, message } of policy.diagnostics) {
      page.row(`${severity}  `, { file, line }, 2);
      page.words(message, 4);
    }
  }
  files.print(page, "Files");
  for (const [title, ...keys] of [
    ["Protected: read-only even inside a grant", "protected_paths", "the sidecar's own files"],
    ["Hidden: not seen inside a grant", "hidden_paths"],
    ["Environment variables", "allowed_env_vars"],
    ["Hosts, while the network is off", "allowed_hosts"],
    ["Denied hosts", "denied_hosts"],
    ["Unix sockets of other programs", "allowed_unix_sockets"],
    ["Keys of agents", "signing_keys"],
    ["Keys that never enter", "credentials"],
  ] as const) {
    const groups = new Groups();
    for (const origin of from(...keys)) groups.add(origin.key, origin, text(fromHome(origin.value)));
    groups.print(page, title);
  }
  page.heading("Switches");
  for (const origin of scalarKeys.flatMap((key) => from(key))) {
    const source = origin.entry === undefined ? "" : `${sourceOf(origin.key, origin)} `;
    page.row(`${`${origin.key} `.padEnd(20)}${`${text(origin.value)} `.padEnd(10)}${source}`, placeOf(origin), 2);
  }
  return page.line().line(`Policy ${policyId}`);
}

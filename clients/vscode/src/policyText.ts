import { text } from "./display";
import type { Kind, Policy, PolicyOrigin, PolicyRule } from "./protocol.gen";

/** The cells of a row. */
type Row = string[];

/**
 * The width of the text in columns, so that it fits into a window that is not
 * maximized. Single words may be longer.
 */
const width = 120;
/** A longer cell shifts only its own row. */
const maxCell = 36;

const switches = ["mode", "enabled", "apply_to", "allow_network", "temporary_files", "toolchain_caches", "limits.processes", "limits.memory", "limits.cpu_weight", "on_unavailable", "on_denied"];

/** Where a value comes from. */
interface Origin {
  file: string;
  line?: number;
  written?: string;
  entry?: string;
  reason?: string;
}

function from(setting: string, origin: Origin): string {
  const key = text(origin.written ?? setting);
  const file = text(origin.file);
  const place = origin.line === undefined ? file : `${file}:${origin.line}`;
  const source =
    origin.entry !== undefined
      ? `${origin.written === undefined ? "toolchains" : key}: ${text(origin.entry)} (${place})`
      : key === ""
        ? place
        : `${key} (${place})`;
  return origin.reason === undefined ? source : `${source}, ${text(origin.reason)}`;
}

/** Wraps text at spaces to lines of a length. */
export function wrap(words: string, length: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= length) lines.push(`${lines.pop() ?? ""} ${word}`);
    else lines.push(word);
  }
  return lines;
}

/**
 * Formats a row. If it is too long, its last cell goes below the second one.
 */
function lines(row: Row, widths: number[]): string[] {
  const cells = row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i] ?? 0) : cell));
  const whole = `  ${cells.join("  ")}`;
  if (whole.length <= width) return [whole];
  const indent = " ".repeat((widths[0] ?? 0) + 4);
  const last = wrap(cells.pop() ?? "", width - indent.length);
  return [`  ${cells.join("  ").trimEnd()}`, ...last.map((line) => indent + line)];
}

function section(title: string, rows: Row[]): string[] {
  const widths = [0, 1].map((i) =>
    Math.min(maxCell, Math.max(0, ...rows.map((row) => (i < row.length - 1 ? (row[i] ?? "").length : 0)))),
  );
  return [title, ...(rows.length === 0 ? ["  none"] : rows.flatMap((row) => lines(row, widths))), ""];
}

function fileRow(rule: PolicyRule): Row {
  const guarded = rule.guarded === undefined ? "" : `, ${rule.guarded.join(", ")} only if protected paths are enforced`;
  return [rule.access.join(", "), text(rule.path), from(rule.setting, rule) + guarded];
}

/**
 * Formats a policy: what a session may do, and which line of which file grants
 * it.
 */
export function policyText(kind: Kind, policyId: string, policy: Policy): string {
  const files = policy.rules.map(fileRow);
  if (policy.privateRuntimeDir)
    files.push([
      "read, write, execute",
      "a runtime directory of its own",
      "system_paths.read_write (built-in defaults)",
    ]);
  if (policy.privateTerminals)
    files.push(["read, write", "terminals of its own", "system_paths.read_write (built-in defaults)"]);
  const origins = (...keys: string[]): PolicyOrigin[] => policy.origins.filter((origin) => keys.includes(origin.key));
  const values = (...keys: string[]): Row[] =>
    origins(...keys).map((origin) => [text(origin.value), from(origin.key, origin)]);
  return [
    `A ${kind} in ${text(policy.project)}, policy ${policyId}`,
    policy.restricted ? "is sandboxed." : "is not sandboxed. In a sandbox it would get:",
    "",
    ...section("FILES", files),
    ...section("PROTECTED (read-only even inside a grant)", values("protected_paths", "settings files")),
    ...section("HIDDEN (not seen inside a grant)", values("hidden_paths")),
    ...section("ENVIRONMENT VARIABLES", values("allowed_env_vars")),
    ...section("HOSTS (while the network is off)", values("allowed_hosts")),
    ...section("DENIED HOSTS", values("denied_hosts")),
    ...section("UNIX SOCKETS OF OTHER PROGRAMS", values("allowed_unix_sockets")),
    ...section("KEYS OF AGENTS", values("signing_keys")),
    ...section(
      "SWITCHES",
      switches.flatMap((key) => origins(key).map((origin) => [key, text(origin.value), from("", origin)])),
    ),
    ...section(
      "PROBLEMS IN THE SETTINGS",
      policy.diagnostics.map((d) => [d.severity, `${text(d.file)}:${d.line}`, d.message]),
    ),
  ].join("\n");
}

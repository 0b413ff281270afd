import type { Kind, Policy, PolicyOrigin, PolicyRule } from "./protocol.gen";

/** Cells of a line; the last one is as long as it likes. */
type Row = string[];

const switches = ["enabled", "apply_to", "allow_network", "on_unavailable", "on_denied"];

function from(key: string, origin: { file: string; line?: number; entry?: string; reason?: string }): string {
  const place = origin.line === undefined ? origin.file : `${origin.file}:${origin.line}`;
  const source = origin.entry !== undefined ? `toolchains: ${origin.entry} (${place})` : key === "" ? place : `${key} (${place})`;
  return origin.reason === undefined ? source : `${source}, ${origin.reason}`;
}

function section(title: string, rows: Row[]): string[] {
  const widths = [0, 1].map((i) => Math.min(36, Math.max(0, ...rows.map((row) => (i < row.length - 1 ? (row[i] ?? "").length : 0)))));
  const lines = rows.map((row) => `  ${row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i] ?? 0) : cell)).join("  ")}`);
  return [title, ...(rows.length === 0 ? ["  none"] : lines), ""];
}

function fileRow(rule: PolicyRule): Row {
  const guarded = rule.guarded === undefined ? "" : `, ${rule.guarded.join(", ")} only where protected paths are enforced`;
  return [rule.access.join(", "), rule.path, from(rule.setting, rule) + guarded];
}

/** Writes a policy for people: everything that a session may do, and which line of which file says so. */
export function policyText(kind: Kind, policyId: string, policy: Policy): string {
  const files = policy.rules.map(fileRow);
  if (policy.privateRuntimeDir) files.push(["read, write, execute", "a runtime directory of its own", "system_paths.read_write (built-in defaults)"]);
  if (policy.privateTerminals) files.push(["read, write", "terminals of its own", "system_paths.read_write (built-in defaults)"]);
  const origins = (...keys: string[]): PolicyOrigin[] => policy.origins.filter((origin) => keys.includes(origin.key));
  const values = (...keys: string[]): Row[] => origins(...keys).map((origin) => [origin.value, from(origin.key, origin)]);
  return [
    `A ${kind} in ${policy.project}, policy ${policyId}`,
    policy.restricted ? "is sandboxed." : "is not sandboxed. If it were:",
    "",
    ...section("FILES", files),
    ...section("PROTECTED (read-only, whatever is granted)", values("protected_paths", "settings files")),
    ...section("VARIABLES THAT ARRIVE", values("allowed_env_vars")),
    ...section("UNIX SOCKETS OF OTHER PROGRAMS", values("allowed_unix_sockets")),
    ...section("SWITCHES", switches.flatMap((key) => origins(key).map((origin) => [key, origin.value, from("", origin)]))),
    ...section("REMARKS ON THE SETTINGS", policy.diagnostics.map((d) => [d.severity, `${d.file}:${d.line}`, d.message])),
  ].join("\n");
}

import type { Policy } from "./protocol.gen";

/**
 * Returns what a session may write that stays: whether that is the project, and
 * which other paths. A write into a private cache is seen by sandboxed sessions
 * alone, so that is none. Neither is what every session has, such as its own
 * /tmp and its terminal.
 */
export function writable(policy: Pick<Policy, "rules" | "project" | "privateCaches">): {
  project: boolean;
  others: string[];
} {
  const within = (path: string, dir: string) => path === dir || path.startsWith(dir.endsWith("/") ? dir : `${dir}/`);
  const paths = policy.rules
    .filter(({ access, setting }) => access.includes("write") && !access.includes("device") && !setting.startsWith("system_paths"))
    .map(({ path }) => path)
    .filter((path) => path === policy.project || !policy.privateCaches.some((cache) => within(path, cache)));
  const others = paths.filter((path) => !within(path, policy.project));
  return { project: paths.includes(policy.project) || paths.some((path) => within(policy.project, path)), others: [...new Set(others)] };
}

import { missing } from "./summary";
import type { Policy, Protections } from "./protocol.gen";

/** How many commands may be agreed to and not have run. */
const most = 100;

/**
 * Commands of agents that run without a question. The editor does not say which
 * question an invocation belongs to, so equal commands take their turns.
 */
export class Agreements {
  private readonly open: { command: string; policyId: string }[] = [];

  /** Notes that nobody is asked about a command, because of this policy. */
  note(command: string, policyId: string): void {
    this.open.push({ command, policyId });
    if (this.open.length > most) this.open.shift();
  }

  /**
   * Returns the policy under which a command must run; undefined if the user was
   * asked about it.
   */
  take(command: string): string | undefined {
    const found = this.open.findIndex((one) => one.command === command);
    return found < 0 ? undefined : this.open.splice(found, 1)[0]?.policyId;
  }
}

/** Returns the protections that a tool's policy asks for and does not fully get. */
export function lacking(enforcement: Protections, policy: Policy): string[] {
  return missing(enforcement, { terminal: policy, tool: policy });
}

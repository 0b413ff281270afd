import { randomUUID } from "node:crypto";

import * as vscode from "vscode";

import { Agreements, lacking } from "./agreements";
import { configuration } from "./configuration";
import { lines, quote } from "./display";
import { describe } from "./errors";
import { placeOf } from "./folders";
import { groupOf } from "./group";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { Excerpt } from "./plain";
import { PolicyGetRequest, type DeniedParams, type ExitStatus, type Policy, type Protections, type SpawnResult } from "./protocol.gen";
import { report, type Outcome } from "./toolReport";
import { writable } from "./writable";

/** The input from an agent. */
export interface ToolInput {
  command: string;
  cwd?: string;
  timeout?: number;
}

const standardTimeout = 120;
const longestTimeout = 3600;

/** Wide enough for compilers' messages; some programs wrap at 80 columns. */
const size = { cols: 160, rows: 50 };

/**
 * The output is a terminal, so programs would start a pager and wait for a key.
 * The shell sets these variables, because the environment filter removes them.
 */
const noPager = "PAGER=cat GIT_PAGER=cat MANPAGER=cat; export PAGER GIT_PAGER MANPAGER; ";

function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/**
 * The language model tool "sandbox_run": runs a command in a session of the
 * kind "tool".
 */
export class RunTool implements vscode.LanguageModelTool<ToolInput> {
  static readonly id = "sandbox_run";

  private readonly agreements = new Agreements();

  constructor(private readonly manager: Manager) {}

  async prepareInvocation(
    options: vscode.LanguageModelToolInvocationPrepareOptions<ToolInput>,
  ): Promise<vscode.PreparedToolInvocation> {
    const input = check(options.input);
    const { command, cwd } = input;
    const invocationMessage = vscode.l10n.t("Running a command in the sandbox");
    const message = new vscode.MarkdownString();
    // The block ends with a line of its own, whatever the command ends with.
    message.appendCodeblock(lines(command).replace(/\n+$/, ""), "sh");
    message.appendMarkdown("\n");
    let title = vscode.l10n.t("Run in the sandbox?");
    try {
      const place = await placeOf(cwd, folders());
      const { sidecar } = await this.manager.get();
      const params = { projectDir: place.folder, kind: "tool" as const };
      const { policy, policyId } = await this.manager.request(PolicyGetRequest, params);
      const { enforcement } = sidecar.initializeResult.capabilities;
      const lacks = lacking(enforcement, policy);
      const wished = configuration().toolAutoApprove && policy.restricted;
      if (wished && lacks.length === 0) {
        this.agreements.note(keyOf(input), policyId);
        return { invocationMessage };
      }
      message.appendText([vscode.l10n.t("In {0}.", quote(fromHome(place.cwd))), ...allowance(policy, privateCaches(policy, enforcement))].join(" "));
      if (wished) message.appendText(`\n\n${askedBecause(lacks)}`);
      if (!policy.restricted) title = vscode.l10n.t("Run without a sandbox?");
    } catch (error) {
      message.appendText(vscode.l10n.t("It will not run: {0}", describe(error)));
    }
    return { invocationMessage, confirmationMessages: { title, message } };
  }

  async invoke(
    options: vscode.LanguageModelToolInvocationOptions<ToolInput>,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> {
    const input = check(options.input);
    const place = await placeOf(input.cwd, folders());
    const outcome = await this.run(input, place, groupOf(options.toolInvocationToken), token);
    return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(report(outcome))]);
  }

  private async run(
    input: ToolInput,
    place: { cwd: string; folder: string },
    group: string,
    token: vscode.CancellationToken,
  ): Promise<Outcome> {
    const { command, timeout = standardTimeout } = input;
    // Nobody was asked about such a command, so it needs the sandbox that it was
    // judged by.
    const policyId = this.agreements.take(keyOf(input));
    if (token.isCancellationRequested) throw new vscode.CancellationError();
    const { sidecar, sessions } = await this.manager.get();
    const sessionId = randomUUID();
    const output = new Excerpt(configuration().toolMaxOutput);
    const denied: DeniedParams[] = [];
    let spawned: SpawnResult | undefined;
    let hints: string[] = [];
    let background = 0;
    let ending: "timeout" | "cancelled" | undefined;
    const end = (why: "timeout" | "cancelled") => {
      ending ??= why;
      // A session that is still starting is closed after it has started.
      if (spawned !== undefined) void sessions.close(sessionId, 0);
    };
    const timer = setTimeout(() => end("timeout"), timeout * 1000);
    const cancelled = token.onCancellationRequested(() => end("cancelled"));
    try {
      const status = await new Promise<ExitStatus>((resolve, reject) => {
        const listener = {
          output: (bytes: Buffer) => (output.add(bytes), undefined),
          exited: (status: ExitStatus, advice: string[], left: number) => {
            hints = advice;
            background = left;
            resolve(status);
          },
          lost: () => reject(new Error("The sandbox sidecar ended, and the command with it.")),
          denied: (denial: DeniedParams) => void denied.push(denial),
        };
        const params = {
          sessionId,
          kind: "tool" as const,
          cwd: place.cwd,
          projectDir: place.folder,
          command: noPager + command,
          ...size,
          // No terminal draws the output.
          env: { ...configuration().env, TERM: "dumb" },
          ...(policyId === undefined ? {} : { policyId }),
          ...(sidecar.initializeResult.capabilities.groups === true ? { group } : {}),
        };
        sessions.spawn(params, listener).then((result) => {
          spawned = result;
          if (ending !== undefined) void sessions.close(sessionId, 0);
        }, reject);
      });
      if (ending === "cancelled") throw new vscode.CancellationError();
      return {
        status,
        output,
        denied,
        hints,
        background,
        sandbox: spawned?.sandbox,
        timedOut: ending === "timeout" ? timeout : undefined,
      };
    } finally {
      clearTimeout(timer);
      cancelled.dispose();
    }
  }
}

/** The editor checks the input against the schema only in part. */
function check(input: ToolInput): ToolInput {
  const { command, cwd, timeout } = input as { command: unknown; cwd?: unknown; timeout?: unknown };
  if (typeof command !== "string" || command === "") throw new Error("command: expected a command line");
  if (cwd !== undefined && typeof cwd !== "string") throw new Error("cwd: expected a directory");
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0 && timeout <= longestTimeout)) {
    throw new Error(`timeout: expected seconds, at most ${longestTimeout}`);
  }
  return { command, ...(cwd === undefined ? {} : { cwd }), ...(timeout === undefined ? {} : { timeout }) };
}

/** Names an input, so that equal ones have equal names. */
function keyOf({ command, cwd, timeout }: ToolInput): string {
  return JSON.stringify([command, cwd, timeout]);
}

/** Says why the user is asked, who did not want to be. */
function askedBecause(lacks: string[]): string {
  const names = lacks.map((name) => name.replaceAll("_", " ")).join(", ");
  return vscode.l10n.t("You are asked because this is not fully enforced: {0}.", names);
}

/** Describes what a command may do, for the user who approves it. */
function allowance(policy: Policy, caches: string[]): string[] {
  if (!policy.restricted)
    return [vscode.l10n.t("Your settings do not sandbox tools: the command gets all your rights.")];
  const { project, others } = writable({ ...policy, privateCaches: caches });
  const writes = project
    ? caches.length > 0
      ? vscode.l10n.t("May write the project and private caches.")
      : vscode.l10n.t("May write the project.")
    : vscode.l10n.t("May not write the project.");
  const more =
    others.length === 0
      ? []
      : others.length === 1
        ? [vscode.l10n.t("Also: {0}.", quote(fromHome(others[0] ?? "")))]
        : [vscode.l10n.t("Also {0} other paths: see Show Policy.", others.length)];
  return [writes, ...more, networkText(policy)];
}

/** The caches that are private on this machine: without overlays none is. */
function privateCaches(policy: Policy, enforcement: Protections): string[] {
  return enforcement["toolchain_caches"]?.status === "enforced" ? policy.privateCaches : [];
}

/** What the command may do with the network. */
function networkText(policy: Policy): string {
  if (policy.allowNetwork) return vscode.l10n.t("Network: everything.");
  const [host, ...others] = policy.allowedHosts;
  if (host === undefined) return vscode.l10n.t("Network: none.");
  if (others.length === 0) return vscode.l10n.t("Network: {0}.", quote(host));
  return vscode.l10n.t("Network: {0} hosts.", policy.allowedHosts.length);
}

/** What the list of the status bar depends on. */
export interface Facts {
  /** What the settings sandbox; undefined if nobody has read them yet. */
  on: { terminal: boolean; tool: boolean } | undefined;
  /** The terminal in front is known not to be sandboxed. */
  openInFront: boolean;
  /** Whether a sidecar runs, which has the sessions. */
  running: boolean;
  /** Confine All, and the default profile, have written settings. */
  confined: boolean;
  isDefault: boolean;
  /** How much there is to show. */
  denials: number;
  files: number;
  /** A folder is open, and the workspace is trusted. */
  folder: boolean;
  trusted: boolean;
}

/** The groups, in their order. */
export type GroupName = "terminals" | "switch" | "happened" | "why" | "settings" | "sidecar";

/** The commands of the list, by group. Those that would do nothing now are left out. */
export function statusList(facts: Facts): [GroupName, string[]][] {
  const { on } = facts;
  const when = (applies: boolean, ...commands: string[]) => (applies ? commands : []);
  const groups: [GroupName, string[]][] = [
    ["terminals", [...when(facts.openInFront, "replaceTerminal"), "newTerminal", ...when(facts.running, "openPort", "endBackground")]],
    [
      "switch",
      [
        ...when(on === undefined || !on.terminal || !on.tool, "turnOn"),
        ...when(on === undefined || on.terminal || on.tool, "chooseMode", "turnOff"),
        facts.confined ? "unconfineAll" : "confineAll",
        facts.isDefault ? "undoDefault" : "makeDefault",
      ],
    ],
    ["happened", [...when(facts.denials > 0, "showDenials"), ...when(facts.files > 0, "showReview"), "showAudit"]],
    ["why", [...when(facts.folder, "showPolicy", "explain"), "doctor"]],
    [
      "settings",
      [
        "openUserSettings",
        ...when(facts.folder, "openProjectSettings"),
        ...when(facts.folder && facts.trusted, "trustProject"),
      ],
    ],
    ["sidecar", ["restart", "showLog"]],
  ];
  return groups.filter(([, commands]) => commands.length > 0);
}

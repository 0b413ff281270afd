import { line, lines } from "./display";
import { Page, pageOf } from "./page";

/** An attack on a protection, tried without a sandbox and in a session. */
interface Attack {
  attack: string;
  unsandboxed: string;
  session: string;
  status: string;
  verdict: "untried" | "held" | "open" | "broken";
}

/** A protection as "sandbox-sidecar doctor --json" prints it. */
interface Protection {
  name: string;
  status: "enforced" | "degraded" | "absent";
  mechanism: string;
  detail: string;
  fix?: string;
  attacks: Attack[];
}

const verdicts = { untried: "not tried", held: "held", open: "open", broken: "BROKEN" };

/**
 * Reports whether something does not count: reports of denials protect nothing,
 * and a session that takes much reaches no more.
 */
function isNote({ name, status }: Protection): boolean {
  return status !== "enforced" && (name === "denials" || name === "limits");
}

function printProtections(page: Page, title: string, protections: Protection[]): void {
  if (protections.length > 0) page.heading(title);
  for (const { name, status, mechanism, detail, fix } of protections) {
    page.line(`  ${status.padEnd(10)}${name.replaceAll("_", " ")}`);
    if (mechanism !== "") page.words(line(mechanism), 12);
    if (detail !== "") page.words(line(detail), 12);
    if (fix !== undefined) page.words(`fix: ${line(fix)}`, 12);
  }
}

function printAttack(page: Page, name: string, { attack, unsandboxed, session, status, verdict }: Attack): void {
  page.words(`${verdicts[verdict].padEnd(10)}${line(attack)}`, 2);
  page.words(`${name.replaceAll("_", " ")}. Without a sandbox: ${line(unsandboxed)}. In a session: ${line(session)}.`, 12);
  if (verdict === "untried") page.words("It is refused without a sandbox, too.", 12);
  if (verdict === "open") page.words(`The session reports this as ${line(status)}.`, 12);
  if (verdict === "broken") page.words(`This is a security bug: it is reported as ${line(status)}.`, 12);
}

/** Lays out what the doctor found. What is no finding is shown as it is. */
export function doctorPage(output: string, errors: string): Page {
  let protections: Protection[];
  try {
    ({ protections } = JSON.parse(output) as { protections: Protection[] });
  } catch {
    return pageOf(lines(output + errors));
  }
  const page = new Page();
  const lacking = protections.filter((one) => one.status !== "enforced" && !isNote(one));
  const broken = protections.flatMap(({ attacks }) => attacks).filter(({ verdict }) => verdict === "broken");
  const notes = protections.filter(isNote);
  const see = notes.length === 0 ? "" : ` See the notes: ${notes.map(({ name }) => name).join(", ")}.`;
  page.line(
    lacking.length === 0
      ? `This machine enforces every protection.${see}`
      : `This machine does not fully enforce ${lacking.length} of ${protections.length} protections.`,
  );
  if (broken.length > 0) page.line(`BROKEN: ${broken.length} of its claims ${broken.length === 1 ? "does" : "do"} not hold. See the end.`);
  page.words('What your settings ask for is another question: "Sandbox: Show Policy" answers it.', 0);
  if (errors.trim() !== "") page.line().words(line(errors.trim()), 0);
  printProtections(page, "Not fully enforced", lacking);
  printProtections(page, "Notes: these protect no file", notes);
  printProtections(page, "Enforced", protections.filter(({ status }) => status === "enforced"));
  page.heading("Tried just now");
  for (const { name, attacks } of protections) for (const attack of attacks) printAttack(page, name, attack);
  return page;
}

import type { ApplyTo } from "./initialize";
import { withoutSetting, withSetting } from "./settingsEdit";

/** The values of the setting "mode". */
export const modes = ["strict", "standard", "relaxed", "off"] as const;
export type Mode = (typeof modes)[number];

type Platform = "linux" | "macos";

/** Returns a settings file's text that turns the sandbox on. */
export function turnedOn(text: string, platform: Platform, applyTo: ApplyTo, mode: unknown): string {
  // "off" would leave the network and the paths as wide as they are.
  const base = mode === "off" ? withSetting(text, platform, "mode", "standard") : text;
  return withSetting(withSetting(base, platform, "enabled", true), platform, "apply_to", applyTo);
}

/** Returns a settings file's text that turns the sandbox off. */
export function turnedOff(text: string, platform: Platform): string {
  return withSetting(text, platform, "enabled", false);
}

/**
 * Returns a settings file's text with a mode. The key "enabled" beside it would
 * override the mode, so it goes.
 */
export function withMode(text: string, platform: Platform, mode: Mode): string {
  return withSetting(withoutSetting(text, platform, "enabled"), platform, "mode", mode);
}

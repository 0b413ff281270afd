package places

import (
	"slices"
	"strings"
	"testing"
)

func all(u User) []string {
	return append([]string{
		u.Runtime(), u.State(), u.Run(), u.Trust(), u.Told("x"), u.History(), u.Refusals(), u.Met(), u.LastAllowed(),
		u.Seatbelt(),
		Audit(u.State()), u.Cache(), u.Overlays(), u.Shells(), u.ShellsElsewhere(), u.Agents(),
		u.Counted(), u.Written(),
	}, u.Settings()...)
}

func TestUser_HasItsPlaces(t *testing.T) {
	t.Parallel()
	const s = "sandbox-sidecar"
	home := []string{
		"", "/h/.local/state/" + s, "/h/.local/state/" + s + "/run", "/h/.local/state/" + s + "/trust.json",
		"/h/.local/state/" + s + "/told-x", "/h/.local/state/" + s + "/history", "/h/.local/state/" + s + "/refusals",
		"/h/.local/state/" + s + "/reviewed", "/h/.local/state/" + s + "/allowed.json",
		"/h/.local/state/" + s + "/seatbelt.json",
		"/h/.local/state/" + s + "/audit",
		"/h/.cache/" + s, "/h/.cache/" + s + "/overlays", "/h/.local/share/" + s + "/shells",
		"/h/.local/state/" + s + "/shells", "/h/.config/" + s + "/agents",
		"/h/.local/state/" + s + "/settings-counted", "/h/.local/state/" + s + "/sessions-wrote",
		"/h/.config/zed/settings.json", "/h/.config/" + s + "/settings.json",
	}
	variables := []string{
		"/r/" + s, "/s/" + s, "/s/" + s + "/run", "/s/" + s + "/trust.json", "/s/" + s + "/told-x",
		"/s/" + s + "/history", "/s/" + s + "/refusals", "/s/" + s + "/reviewed",
		"/s/" + s + "/allowed.json", "/s/" + s + "/seatbelt.json",
		"/s/" + s + "/audit", "/c/" + s, "/c/" + s + "/overlays",
		"/d/" + s + "/shells", "/s/" + s + "/shells", "/e/" + s + "/agents",
		"/s/" + s + "/settings-counted", "/s/" + s + "/sessions-wrote",
		"/e/zed/settings.json", "/e/" + s + "/settings.json",
	}
	nowhere := make([]string, 18)
	const xdg = "XDG_RUNTIME_DIR=/r XDG_STATE_HOME=/s XDG_CACHE_HOME=/c XDG_DATA_HOME=/d XDG_CONFIG_HOME=/e"
	for env, want := range map[string][]string{
		"HOME=/h":         home,
		"HOME=/h " + xdg:  variables,
		xdg:               variables,
		"":                nowhere,
		"HOME=h":          nowhere,
		"HOME=/h HOME=/i": home,
		"HOME=/h " + strings.ReplaceAll(xdg, "=/", "="): home, // relative
	} {
		if got := all(OfList(strings.Fields(env))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
	if got := all(User{Home: "/h"}); !slices.Equal(got, home) {
		t.Errorf("without variables: %q, want %q", got, home)
	}
}

func TestClosed_HoldsTheListOfTrust(t *testing.T) {
	t.Parallel()
	u := User{Home: "/h"}
	if got := Closed(u.Run()); got != u.State() {
		t.Errorf("%s: %s", u.Run(), got)
	}
	if got := Closed("/r/sandbox-sidecar"); got != "/r/sandbox-sidecar" {
		t.Error(got)
	}
}

func TestSettingsFrom(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"HOME=/h":                    "HOME /h",
		"HOME=/h XDG_CONFIG_HOME=/c": "XDG_CONFIG_HOME /c",
		"HOME=/h XDG_CONFIG_HOME=c":  "HOME /h",
		"":                           "HOME ",
	} {
		if name, value := OfList(strings.Fields(env)).SettingsFrom(); name+" "+value != want {
			t.Errorf("%s: %s %s", env, name, value)
		}
	}
}

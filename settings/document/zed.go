package document

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// Zed's settings.json of the user has objects that count at times only: those
// of a release channel, "preview" for example, and those of a profile. Which
// channel runs and which profile is chosen is known to Zed alone. So nothing in
// them counts here, and what was meant for the sidecar is reported.
//
// Facts: Zed merges its defaults, the file, the object of the channel, that of
// the operating system, and the profile's. A profile is {"base": …, "settings":
// {…}}; before 2026 its settings stood in it directly.

// channelNames are the names of Zed's release channels.
var channelNames = []string{"dev", "nightly", "preview", "stable"}

// zed reports what an editor's file holds for the sidecar at places where only
// Zed has settings.
func (d *decoder) zed(root *hujson.Object) {
	for _, name := range channelNames {
		d.inactive(valueOf(root, name), name, "nobody tells the sidecar which release channel of Zed runs")
	}
	whole := hujson.Value{Value: root}
	d.variables(&whole, "")
	const why = "nobody tells the sidecar which profile of Zed is chosen"
	profiles, _ := valueOf(root, "profiles").Value.(*hujson.Object)
	if profiles == nil {
		return
	}
	for _, profile := range profiles.Members[:min(len(profiles.Members), maxChecked)] {
		prefix := "profiles." + memberName(profile)
		object, _ := profile.Value.Value.(*hujson.Object)
		if object == nil {
			continue
		}
		d.inactive(profile.Value, prefix, why)
		d.inactive(valueOf(object, "settings"), prefix+".settings", why)
	}
}

// variables reports Zed's variables for its terminals. They may be meant for
// sessions also if the settings of sandboxes are in another file.
func (d *decoder) variables(object *hujson.Value, prefix string) {
	if env := lastMember(lastMember(object, "terminal"), "env"); asks(env) {
		d.report(*env, SeverityInfo, "",
			"%sterminal.env has no effect on sandboxed sessions: only their editor sets variables", prefix)
	}
}

// readByZed reports whether zed looks into a key.
func readByZed(name, prefix string) bool {
	if prefix == "" {
		return name == "profiles" || slices.Contains(channelNames, name)
	}
	return name == "settings" && strings.HasPrefix(prefix, "profiles.")
}

// inactive reports what an object of settings that does not count holds for the
// sidecar.
func (d *decoder) inactive(value hujson.Value, prefix, why string) {
	object, is := value.Value.(*hujson.Object)
	if !is {
		return
	}
	root := hujson.Value{Value: object}
	terminal := lastMember(&root, "terminal")
	if block := lastMember(terminal, "sandbox"); asks(block) {
		// Its author may rely on it, whatever it says.
		d.report(*block, SeverityError, "", "%s has no effect: %s; %s",
			display.Quote(prefix+".terminal.sandbox"), why, rightPlace)
	}
	for _, name := range []string{"shell", "env"} {
		if found := lastMember(terminal, name); asks(found) {
			d.report(*found, SeverityInfo, "", "%s has no effect on sandboxed sessions: %s",
				display.Quote(prefix+".terminal."+name), why)
		}
	}
	if permissions := lastMember(lastMember(&root, "agent"), "sandbox_permissions"); asks(permissions) {
		d.report(*permissions, SeverityWarning, "", "%s has no effect here: %s",
			display.Quote(prefix+"."+agentPrefix[:len(agentPrefix)-1]), why)
	}
	d.strayInAgent(valueOf(object, "agent"), prefix+".agent.")
	d.strays(object, prefix+".")
}

// asks reports whether a value is there and holds anything.
func asks(value *hujson.Value) bool {
	if value == nil || value.Value == nil || value.Value.Kind() == 'n' {
		return false
	}
	object, is := value.Value.(*hujson.Object)
	return !is || len(object.Members) > 0
}

// strayInAgent reports keys of ours in Zed's "agent". Its own keys that have the
// same name there are not meant.
func (d *decoder) strayInAgent(agent hujson.Value, prefix string) {
	object, is := agent.Value.(*hujson.Object)
	if !is {
		return
	}
	for _, member := range object.Members[:min(len(object.Members), maxChecked)] {
		name := memberName(member)
		severity := SeverityError
		switch ours := slices.Contains(blockKeys(), name) && !slices.Contains(commonWords, name); {
		case ours || dotted(name):
		case name == "sandbox" && holdsSettings(member.Value):
			if d.HasSettings() {
				severity = SeverityWarning // Zed may have a key of that name
			}
		default:
			continue
		}
		d.report(member.Name, severity, "", "%s has no effect; %s", display.Quote(prefix+name), rightPlace)
	}
}

// commonMeant reports whether a key with a common name has a value that only the
// sidecar's key of that name has.
func commonMeant(name string, value hujson.Value) bool {
	literal, isLiteral := value.Value.(hujson.Literal)
	array, isArray := value.Value.(*hujson.Array)
	switch name {
	case "enabled":
		return isLiteral && (literal.Kind() == 't' || literal.Kind() == 'f')
	case "mode":
		return isLiteral && literal.Kind() == '"' && slices.Contains(Mode("").Values(), literal.String())
	case "toolchains", "shell":
		return isArray && len(array.Elements) > 0
	case "tool":
		return holdsSettings(value)
	}
	return false
}

// holdsBlock reports whether a value holds a "terminal.sandbox" with settings of
// ours at any depth.
func holdsBlock(value hujson.Value) bool {
	object, is := value.Value.(*hujson.Object)
	return is && slices.ContainsFunc(object.Members, func(member hujson.ObjectMember) bool {
		if memberName(member) == "terminal" {
			if terminal, is := member.Value.Value.(*hujson.Object); is && holdsSettings(valueOf(terminal, "sandbox")) {
				return true
			}
		}
		return holdsBlock(member.Value)
	})
}

package document

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/tailscale/hujson"
)

// Settings beside "terminal.sandbox" instead of in it have no effect, although
// their author believes that they do. In the sidecar's own file every key is
// checked. In an editor's file only keys that nobody else can have meant are:
// the others belong to other programs.

// blockKeys are the keys of a "terminal.sandbox" block.
var blockKeys = sync.OnceValue(func() []string {
	var names []string
	for field := range reflect.TypeFor[Sandbox]().Fields() {
		names = append(names, fieldKey(field))
	}
	return names
})

// commonWords are keys of ours that other programs' settings have, too.
var commonWords = []string{"enabled", "shell", "toolchains", "tool", "terminal", "mode"}

// meantPlatform is the platform's block that people call by another name; ""
// if the name means none.
func meantPlatform(name string) string {
	switch strings.ToLower(name) {
	case "darwin", "mac", "osx":
		return blockMacOS
	case "win32":
		return blockWindows
	}
	return ""
}

const rightPlace = `settings belong in {"terminal": {"sandbox": {…}}}`

// maxChecked bounds the time for a file with a million keys. Zed's default
// settings have about two hundred.
const maxChecked = 1000

// strays reports the keys around the block that were meant to be part of it.
// root is the file's object, or that of a platform's block, which prefix names.
func (d *decoder) strays(root *hujson.Object, prefix string) {
	known := []string{"terminal"}
	if prefix == "" {
		known = append(known, platformNames...)
	}
	d.unchecked(root)
	for _, member := range root.Members[:min(len(root.Members), maxChecked)] {
		name := memberName(member)
		terminal, isObject := member.Value.Value.(*hujson.Object)
		switch {
		case name == "terminal" && isObject:
			d.unchecked(terminal)
			for _, inner := range terminal.Members[:min(len(terminal.Members), maxChecked)] {
				if memberName(inner) != "sandbox" {
					d.stray(inner, prefix+"terminal.", []string{"sandbox"})
				}
			}
		case slices.Contains(known, name) || name == "$schema" && prefix == "":
		default:
			d.stray(member, prefix, known)
		}
	}
}

// unchecked reports the keys that strays does not look at.
func (d *decoder) unchecked(object *hujson.Object) {
	if len(object.Members) <= maxChecked {
		return
	}
	severity := SeverityWarning
	if d.owner == Sidecar {
		severity = SeverityError // the rest may have been meant as settings
	}
	d.report(object.Members[maxChecked].Name, severity, "",
		"only the first %d keys are searched for misplaced settings", maxChecked)
}

// stray reports a key beside the known ones, if it was meant for us.
func (d *decoder) stray(member hujson.ObjectMember, prefix string, known []string) {
	name := memberName(member)
	key := prefix + name
	top := slices.Contains(known, "terminal")
	if platform := meantPlatform(name); platform != "" && top &&
		(d.owner == Sidecar || reaches(member.Value, platform)) {
		severity := SeverityWarning
		if platform == PlatformBlock(d.platform) || d.owner == Sidecar {
			severity = SeverityError
		}
		d.report(member.Name, severity, "", "%s: unknown setting, did you mean %q?", display.Quote(key), platform)
		return
	}
	near := Nearest(name, known)
	switch {
	case dotted(name):
		d.report(member.Name, SeverityError, "", "%s is one name with dots; %s", display.Quote(key), rightPlace)
	case top && name == "sandbox" && (d.owner == Sidecar || reaches(member.Value, "sandbox")),
		slices.Contains(blockKeys(), name) && (d.owner == Sidecar || !slices.Contains(commonWords, name)):
		d.report(member.Name, SeverityError, "", "%s is in the wrong place; %s", display.Quote(key), rightPlace)
	case near != "" && (d.owner == Sidecar || reaches(member.Value, near)):
		d.report(member.Name, SeverityError, "", "%s: unknown setting, did you mean %q?", display.Quote(key), near)
	case d.owner == Editor && !top && anywhere(member.Value):
		d.report(member.Name, SeverityError, "", "%s is in the wrong place; %s", display.Quote(key), rightPlace)
	case d.owner == Editor && commonMeant(name, member.Value) && (top || name != "shell"):
		severity := SeverityError
		if d.HasSettings() {
			severity = SeverityWarning // the sandbox is not left out: the file has settings in the right place
		}
		d.report(member.Name, severity, "", "%s has no effect; %s", display.Quote(key), rightPlace)
	case d.owner == Editor:
		if holdsBlock(member.Value) && !readByZed(name, prefix) {
			severity := SeverityError
			if d.HasSettings() {
				severity = SeverityWarning
			}
			d.report(member.Name, severity, "", "the terminal.sandbox in %s has no effect; %s",
				display.Quote(key), rightPlace)
		}
	default:
		d.report(member.Name, SeverityError, "", "%s: unknown setting; %s", display.Quote(key), rightPlace)
	}
}

// dotted reports whether a name is a path to our block or to a key in it.
func dotted(name string) bool {
	if strings.Contains(name+".", "terminal.sandbox.") {
		return true
	}
	key, found := strings.CutPrefix(name, "sandbox.")
	return found && slices.Contains(blockKeys(), key)
}

// reaches reports whether a value would hold settings of ours if it had the
// right name: "terminal", "sandbox", or that of a platform.
func reaches(value hujson.Value, name string) bool {
	below := "terminal"
	switch name {
	case "sandbox":
		return holdsSettings(value)
	case "terminal":
		below = "sandbox"
	}
	object, is := value.Value.(*hujson.Object)
	return is && slices.ContainsFunc(object.Members, func(member hujson.ObjectMember) bool {
		return Nearest(memberName(member), []string{below}) != "" && reaches(member.Value, below)
	})
}

// holdsSettings reports whether an object has a key of the block, or a misspelt
// one.
func holdsSettings(value hujson.Value) bool {
	object, is := value.Value.(*hujson.Object)
	return is && slices.ContainsFunc(object.Members, func(member hujson.ObjectMember) bool {
		return Nearest(memberName(member), blockKeys()) != ""
	})
}

// anywhere reports whether there are keys of the block at any depth. A key that
// other programs have, too, counts only in a "sandbox".
func anywhere(value hujson.Value) bool {
	object, is := value.Value.(*hujson.Object)
	return is && slices.ContainsFunc(object.Members, func(member hujson.ObjectMember) bool {
		name := memberName(member)
		return slices.Contains(blockKeys(), name) && !slices.Contains(commonWords, name) ||
			Nearest(name, []string{"sandbox"}) != "" && holdsSettings(member.Value) || anywhere(member.Value)
	})
}

package policy

import "fmt"

// Origin says where a rule comes from: the file, the settings key and, if
// known, the line.
type Origin struct {
	// File is an absolute path, or one of the Origin… names below.
	File string `json:"file"`
	// Key is the settings key, such as "additional_read_only_paths".
	Key string `json:"key"`
	// Written is the key as it stands in the file, if that is another, such as
	// "tool.additional_read_only_paths".
	Written string `json:"written,omitempty"`
	// Line is 1-based; 0 if the origin is not a file.
	Line int `json:"line,omitempty"`
	// Entry is the list entry, if one entry makes several rules: the name of a
	// toolchain, or of a mode.
	Entry string `json:"entry,omitempty"`
	// Reason says what a rule is for, if the user has not written it; else
	// empty.
	Reason string `json:"reason,omitempty"`
	// Organisation says that File is one of whoever administers the machine.
	Organisation bool `json:"organisation,omitempty"`
}

// Origins that are not files.
const (
	// OriginBuiltIn is the platform's baseline.
	OriginBuiltIn = "built-in defaults"
	// OriginEditor is initializationOptions.settings.
	OriginEditor = "editor"
	// OriginCommand is the command line.
	OriginCommand = "command line"
	// OriginWindow is the sidecar's memory: what the user allows until it ends.
	OriginWindow = "allowed for this window"
	// OriginSession is the session itself: its project directory, its runtime
	// directory.
	OriginSession = "session"
)

// String renders the origin as "key (file:line)", or "key: entry (file:line)".
func (o Origin) String() string {
	if o.Written != "" {
		o.Key = o.Written
	}
	if o.Entry != "" {
		o.Key += ": " + o.Entry
	}
	by := ""
	if o.Organisation {
		by = ", set by your organisation"
	}
	if o.Line > 0 {
		return fmt.Sprintf("%s (%s:%d%s)", o.Key, o.File, o.Line, by)
	}
	return fmt.Sprintf("%s (%s%s)", o.Key, o.File, by)
}

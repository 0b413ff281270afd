package compile

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// kinds are the kinds that the evaluation is for.
func (e *evaluation) kinds() []document.Kind {
	if e.others != nil {
		return []document.Kind{e.kind}
	}
	return []document.Kind{document.KindTerminal, document.KindTool}
}

// writtenKey is KeyFor.
func (e *evaluation) writtenKey(key string) string { return inBlock(e.user.from[key], key) }

// inBlock is a key with the block for a kind, if it was set there.
func inBlock(from origin, key string) string {
	kind, _ := document.SplitKey(from.Written)
	if document.OfAgent(from.Span) {
		kind = document.KindTool
	}
	if kind != "" {
		return document.KeyOf(kind, key)
	}
	return key
}

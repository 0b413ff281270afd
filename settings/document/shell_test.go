package document

import (
	"strings"
	"testing"
)

func TestEditorShell_IsZeds(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		`"system"`: "", `{"program": "zsh"}`: "zsh", `{"program": 1}`: "", `{"program": ""}`: "", `null`: "", `[]`: "",
		`{"with_arguments": {"program": "/bin/fish", "args": ["-l"], "title_override": "x"}}`: "/bin/fish -l",
		`{"with_arguments": {"program": "fish"}}`:                                             "fish",
		`{"with_arguments": {"program": "fish", "args": [1]}}`:                                "",
	} {
		block, problem := Decode([]byte(`{"terminal": {"shell": `+shell+`}}`), "linux", Editor)
		if problem != nil || len(block.Problems) > 0 {
			t.Errorf("%s: %v %v", shell, problem, block.Problems)
			continue
		}
		if got := strings.Join(block.EditorShell, " "); got != want {
			t.Errorf("%s: %q, want %q", shell, got, want)
		}
	}
	own, _ := Decode([]byte(`{"terminal": {"shell": {"program": "zsh"}}}`), "linux", Sidecar)
	if own.EditorShell != nil || own.FirstError == nil {
		t.Errorf("in the sidecar's own file: %+v", own)
	}
}

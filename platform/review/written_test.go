package review

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Where nothing was written, subdirectories are not searched. What was recorded
// at the start is compared all the same.
func TestFindings_WhereNothingWasWrittenAreOfTheProjectItself(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	deep := filepath.Join(project, "a/b/c")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, unwritten := range []bool{false, true} {
		state := Take(&policy.Policy{Project: project, Rules: written(project)})
		for _, path := range []string{deep + "/Makefile", project + "/Makefile"} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := 2
		if unwritten {
			state.Unwritten()
			want = 1
		}
		list := state.Findings()
		if len(list) != 1 || list[0].Path != project+"/Makefile" || list[0].Total != want {
			t.Errorf("unwritten %v: %+v", unwritten, list)
		}
	}
}

//go:build linux

package ordinary

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A database of the project's own needs shared memory, semaphores and a socket.
// It starts, answers and ends inside as outside.
func TestPostgresOfTheProject(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	harness.Must(t, err)
	switch {
	case len(found) == 0:
		harness.Skip(t, "postgres", "not installed")
	case os.Geteuid() == 0:
		harness.Skip(t, "postgres", "it refuses root")
	}
	needProgram(t, "psql")
	const script = `initdb -D pg -U me >log 2>&1 || { cat log; exit 1; }
pg_ctl -D pg -w -o "-k $PWD -c listen_addresses=" -l log start || { cat log; exit 1; }
psql -h "$PWD" -U me postgres -Atc 'select 40+2'
pg_ctl -D pg -m fast stop
`
	for under, settings := range map[string]string{
		"without a sandbox": harness.Off(), "with default settings": harness.Defaults(nil),
	} {
		w := harness.NewWorldOutsideDefaults(t)
		harness.Write(t, w.ProjectPath("script"), script)
		e := harness.Start(t, w, harness.Options{
			Settings: settings,
			Env:      []string{"PATH=" + filepath.Dir(found[len(found)-1]) + ":" + searchPath},
		})
		session := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: "/bin/bash", Args: []string{"-e", "script"},
		})
		if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
			t.Errorf("%s:\n%s", under, session.Output())
		}
	}
}

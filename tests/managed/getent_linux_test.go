package managed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// getent makes a user database without the caller, and puts a script in the place
// of getent(1).
func (o *organisation) getent(w *harness.World, script string) {
	o.t.Helper()
	const place = "/usr/bin/getent"
	if _, err := os.Stat(place); err != nil {
		harness.Skip(o.t, "getent", err.Error())
	}
	harness.Write(o.t, filepath.Join(o.etc, "empty", "passwd"), "nobody:x:65534:65534::/:/bin/false\n")
	path := filepath.Join(w.Outside, "getent")
	harness.Write(o.t, path, "#!/bin/sh\n"+script)
	harness.Must(o.t, os.Chmod(path, 0o755))
	o.wrapper = append(o.wrapper, "/bin/sh", "-c", `mount --bind "$0" `+place+` && exec "$@"`, path)
}

// TestHome_OfUsersElsewhere is for users that only the C library finds, as with
// LDAP.
func TestHome_OfUsersElsewhere(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		script string
		runs   bool // the command runs at all
		opens  bool // and as what HOME names says
	}{
		"known":   {`[ "$*" = "passwd 0" ] && [ "$(env | grep -c HOME=)" = 0 ] && echo "root:x:0:0::%s:/bin/sh"`, true, false},
		"unknown": {"exit 2; : %s", true, true},
		"silent":  {"exec sleep 100; : %s", false, false},
		"broken":  {"kill -9 $$; : %s", false, false},
		"failing": {"exit 3; : %s", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			path := secret(t, w)
			o := newOrganisation(t)
			o.getent(w, fmt.Sprintf(is.script, w.Home))
			harness.Write(t, w.UserSettings(), harness.Defaults(nil))
			for way, to := range elsewhere(filepath.Join(w.Project, "elsewhere")) {
				harness.Write(t, filepath.Join(to.config, "sandbox-sidecar", "settings.json"), harness.Off())
				out, ok := o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "true")
				if ok != is.runs {
					t.Errorf("control: %s: %s", way, out)
				}
				if !is.runs && !strings.Contains(out, "user database") {
					t.Errorf("%s: nothing says why: %s", way, out)
				}
				out, ok = o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "cat", path)
				if ok && !is.opens {
					harness.Breach(t, "%s: %s", way, out)
				}
				if !ok && is.opens {
					t.Errorf("control: without an entry HOME counts: %s: %s", way, out)
				}
			}
		})
	}
}

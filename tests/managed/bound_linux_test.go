package managed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestManaged_NothingOpensMoreThanIsRequired makes attempts under random defaults,
// requirements, users' and projects' settings, about the network, hosts,
// variables and files. What succeeds must also succeed where the requirement is
// all that a user has set. SIDECAR_EXPLAIN_POLICIES makes it longer. The
// settings of paths have a test of their own in settings.
func TestManaged_NothingOpensMoreThanIsRequired(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	policies, random := harness.Generated(t, 12, 7)
	b := &bounds{random: random, ports: [2]string{serve(t), serve(t)}}
	done, taken := 0, 0
	for i := range policies {
		w := harness.NewWorldOutsideDefaults(t)
		path := secret(t, w)
		b.odds = 2
		if i < 2 { // what comes of these two is known
			b.odds = 3 * i
		}
		required := b.block(path)
		if i < 2 {
			b.odds = 3
		}
		defaults, user, project := b.block(path), b.block(path), b.block(path)
		o := newOrganisation(t)
		o.writes("settings.json", `{"defaults": `+text(t, defaults)+`, "required": `+text(t, required)+`}`)
		bound := b.attempt(o, w, path, user, project)
		o.writes("settings.json", `{"defaults": `+text(t, defaults)+`}`)
		free := b.attempt(o, w, path, user, project)
		harness.Must(t, os.Remove(o.path("settings.json")))
		alone := b.attempt(o, w, path, required, nil)
		for what := range bound {
			if done++; !alone[what] {
				harness.Breach(t, "%s succeeds\ndefaults %s\nrequired %s\nuser     %s\nproject  %s", what,
					text(t, defaults), text(t, required), text(t, user), text(t, project))
			}
		}
		for what := range free {
			if !bound[what] {
				taken++
			}
		}
	}
	t.Logf("%d policies: %d attempts succeed, %d fail because of what is required", policies, done, taken)
	if done == 0 || taken == 0 {
		t.Error("this compares nothing")
	}
}

// bounds makes random settings.
type bounds struct {
	random *rand.Rand
	ports  [2]string // of servers on the loopback interface
	odds   int       // of 3, that something is opened
}

// block has every key that the attempts are about.
func (b *bounds) block(path string) harness.Sandbox {
	hosts := []string{"localhost:" + b.ports[0], "localhost:" + b.ports[1]}
	return harness.Sandbox{
		"enabled": true, "allow_network": b.random.IntN(6) < b.odds,
		"allowed_hosts": b.some(hosts...), "denied_hosts": b.denied(hosts),
		"allowed_env_vars":           append(b.some("FIRST_VARIABLE", "SECOND_VARIABLE"), "PATH", "HOME"),
		"additional_read_only_paths": b.some(path),
	}
}

// some is each one of a list, or not.
func (b *bounds) some(list ...string) []string {
	chosen := []string{}
	for _, one := range list {
		if b.random.IntN(3) < b.odds {
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// denied is now and then one of the hosts.
func (b *bounds) denied(hosts []string) []string {
	if b.random.IntN(3) > 0 {
		return []string{}
	}
	return hosts[b.random.IntN(2):][:1]
}

// attempt tries everything in a session, and returns what succeeds. The project
// is trusted.
func (b *bounds) attempt(
	o *organisation, w *harness.World, path string, user, project harness.Sandbox,
) map[string]bool {
	o.t.Helper()
	harness.Write(o.t, w.UserSettings(), harness.Defaults(user))
	file := filepath.Join(w.Project, ".zed", "settings.json")
	if project == nil {
		harness.Must(o.t, os.RemoveAll(filepath.Dir(file)))
	} else {
		harness.Write(o.t, file, harness.Defaults(project))
		if out, ok := o.run(w, "trust", "--digest", harness.Digest(o.t, file), w.Project); !ok {
			o.t.Fatalf("trust: %s", out)
		}
	}
	script := "cat " + path + "; echo; env\n"
	for i, port := range b.ports {
		// With the whole network the name is unknown, and without it the address
		// is the session's own: both ways lead to the same server.
		for _, host := range []string{"127.0.0.1", "host.sandbox.internal"} {
			line := "echo server " + strconv.Itoa(i) + " $(timeout 20 bash -c 'exec 3<>/dev/tcp/" + host + "/" + port
			script += line + " && cat <&3')\n"
		}
	}
	command := exec.Command(harness.Binary(o.t), "exec", "--", "bash", "-c", script)
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), "FIRST_VARIABLE=x", "SECOND_VARIABLE=x")
	o.wrap(command)
	out, err := command.Output() // what cannot be done is said on standard errors
	if err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
	succeeds := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "the secret", strings.HasSuffix(line, "_VARIABLE=x"), strings.HasSuffix(line, " served"):
			succeeds[line] = true
		}
	}
	return succeeds
}

func text(t *testing.T, block harness.Sandbox) string {
	t.Helper()
	data, err := json.Marshal(block)
	harness.Must(t, err)
	return string(data)
}

// serve starts a server that greets, and returns its port.
func serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "served")
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	harness.Must(t, err)
	return port
}

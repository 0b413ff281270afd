//go:build linux

package sockets

import (
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// daemon is a real one that runs programs for its clients.
type daemon struct {
	programs []string
	// start starts it in a directory of its own, with its socket at a path.
	start func(s *scene, dir, socket string)
	// place is where the daemon puts its socket if it cannot be chosen; nil: at
	// that path.
	place func(s *scene, dir string) string
	// attack is a line for a shell in a session; SOCKET and LOOT stand for
	// paths.
	attack string
	// hears is the output of an attack that works; empty if the attack makes
	// the file LOOT, outside of every grant.
	hears string
}

var daemons = map[string]daemon{
	"tmux": {
		programs: []string{"tmux"},
		start: func(s *scene, _, socket string) {
			run(s, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d")
			s.T.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() })
		},
		attack: `tmux -S SOCKET new-window 'touch LOOT'`,
	},
	"dbus": {
		programs: []string{"dbus-daemon", "dbus-send"},
		start: func(s *scene, dir, socket string) {
			program := filepath.Join(dir, "service")
			// If the service ended successfully, dbus-send would wait for its
			// limit of 25 s: the service might still be on its way to the bus.
			harness.Write(s.T, program, "#!/bin/sh\ntouch "+s.Outside+"/loot\nexit 1\n")
			if err := os.Chmod(program, 0o700); err != nil {
				s.T.Fatal(err)
			}
			harness.Write(s.T, filepath.Join(dir, "services/a.service"),
				"[D-BUS Service]\nName=com.example.Service\nExec="+program+"\n")
			config := filepath.Join(dir, "bus.conf")
			harness.Write(s.T, config, `<busconfig><type>session</type><listen>unix:path=`+socket+`</listen>
<servicedir>`+dir+`/services</servicedir>
<policy context="default"><allow send_destination="*"/><allow own="*"/><allow receive_sender="*"/></policy>
</busconfig>`)
			background(s, "dbus-daemon", "--config-file="+config, "--nofork", "--nopidfile")
		},
		attack: `dbus-send --bus=unix:path=SOCKET --dest=com.example.Service --print-reply / com.example.Service.Do`,
	},
	"ssh-agent": {
		programs: []string{"ssh-agent", "ssh-add", "ssh-keygen"},
		start: func(s *scene, dir, socket string) {
			background(s, "ssh-agent", "-D", "-a", socket)
			key := filepath.Join(dir, "key")
			run(s, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
			harness.Eventually(s.T, "the agent listens", func() bool { _, err := os.Stat(socket); return err == nil })
			run(s, "env", "SSH_AUTH_SOCK="+socket, "ssh-add", "-q", key)
		},
		attack: `SSH_AUTH_SOCK=SOCKET ssh-add -l`,
		hears:  "ED25519",
	},
	"gpg-agent": {
		programs: []string{"gpg-agent", "gpgconf"},
		start: func(s *scene, dir, _ string) {
			// It keeps the streams that it is started with.
			run(s, "sh", "-c", `exec gpg-agent --homedir "$0" --daemon >/dev/null 2>&1`, dir)
			s.T.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", dir, "--kill", "gpg-agent").Run() })
		},
		place: func(s *scene, dir string) string {
			out, err := exec.Command("gpgconf", "--homedir", dir, "--list-dirs", "agent-socket").Output()
			if err != nil {
				s.T.Fatal(err)
			}
			return strings.TrimSpace(string(out))
		},
		attack: `HEAR SOCKET`,
		hears:  "OK Pleased",
	},
	"containers over HTTP": {
		programs: []string{"curl"},
		start: func(s *scene, _, socket string) {
			listener, err := net.Listen("unix", socket)
			if err != nil {
				s.T.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("containers: none"))
			})}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = server.Serve(listener)
			}()
			s.T.Cleanup(func() { server.Close(); <-done })
		},
		attack: `curl -sS --unix-socket SOCKET http://d/containers/json`,
		hears:  "containers: none",
	},
}

// run runs a program of the test's own to its end, and background for as long
// as the test takes.
func run(s *scene, name string, args ...string) {
	s.T.Helper()
	command := exec.Command(name, args...)
	command.Env = harness.Environ(s.World)
	if out, err := command.CombinedOutput(); err != nil {
		s.T.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func background(s *scene, name string, args ...string) {
	s.T.Helper()
	command := exec.Command(name, args...)
	command.Env = harness.Environ(s.World)
	begin(s, command)
}

func begin(s *scene, command *exec.Cmd) {
	s.T.Helper()
	if err := command.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// Uses real daemons that would run programs, sign, or reveal secrets for the
// session: with the default settings, offline, and with the socket granted by
// its exact path, which lets it through. The socket lies in a directory that
// sessions may write, or in another one.
func TestNoDaemonActsForASession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, name := range slices.Sorted(maps.Keys(daemons)) {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			d := daemons[name]
			t.Run(machine.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				need(t, d.programs...)
				for _, writable := range []bool{true, false} {
					for _, attempt := range []struct {
						how      string
						settings func(socket string) harness.Sandbox
						works    bool
					}{
						{"control: without a sandbox", func(string) harness.Sandbox { return nil }, true},
						{"defaults", func(string) harness.Sandbox { return defaults() }, false},
						{"offline", func(string) harness.Sandbox { return offline() }, false},
						{"another is granted", func(socket string) harness.Sandbox {
							return harness.Sandbox{"allowed_unix_sockets": []string{socket + "x"}}
						}, false},
						{"granted", func(socket string) harness.Sandbox {
							return harness.Sandbox{"allowed_unix_sockets": []string{socket}}
						}, true},
					} {
						if !writable && (attempt.how == "offline" || attempt.how == "another is granted") {
							continue // the place of the socket makes no difference then
						}
						s := newScene(t, machine)
						dir := s.temp
						if !writable {
							dir = shortOutside(t)
						}
						socket, loot := filepath.Join(dir, "socket"), filepath.Join(s.Outside, "loot")
						d.start(s, dir, socket)
						if d.place != nil {
							socket = d.place(s, dir)
						}
						harness.Eventually(t, name+" listens", func() bool {
							conn, err := net.Dial("unix", socket)
							if err == nil {
								conn.Close()
							}
							return err == nil
						})
						e := s.start(attempt.settings(socket))
						output, _ := e.Tool(fill(d.attack, "HEAR", harness.Quote(s.Victim)+" hear", "SOCKET", socket,
							"LOOT", loot))
						harmed := func() bool { return d.hears != "" && contains(output, d.hears) || exists(loot) }
						if attempt.works {
							harness.Eventually(t, attempt.how+": it works; it printed "+output, harmed)
						} else if harmed() {
							harness.Breach(t, "%s, writable %t: THE ATTACK WORKS: %s", attempt.how, writable, output)
						}
					}
				}
			})
		}
	}
}

// shortOutside is a directory with a short name that the default settings do
// not let sessions write.
func shortOutside(t *testing.T) string { return harness.OutsideDefaults(t) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

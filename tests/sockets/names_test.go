//go:build linux

package sockets

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// names are the ways to a socket of a process outside, as a line for a shell in
// the project. OUT is the socket's path in the temporary directory, DIR that
// directory, and HEAR the victim, which prints what the server sends.
var names = map[string]string{
	"path":                     `HEAR OUT`,
	"relative path":            `cd DIR && HEAR out`,
	"climbing path":            `mkdir -p DIR/a && HEAR DIR/a/../out`,
	"symlink":                  `ln -s OUT link && HEAR link`,
	"symlink to the directory": `ln -s DIR dir && HEAR dir/out`,
	"hard link":                `ln OUT DIR/hard && HEAR DIR/hard`,
	"renamed":                  `mv OUT DIR/renamed && HEAR DIR/renamed`,
	"hard link over one's own": `python3 -c 'import socket; s = socket.socket(1); s.bind("DIR/own"); ` +
		`s.listen(); import os; os.link("OUT", "DIR/l"); os.rename("DIR/l", ` +
		`"DIR/own"); os.execv("VICTIM", ["VICTIM", "hear", "DIR/own"])'`,
	"directory renamed":             `mv DIR/sub DIR/other && HEAR DIR/other/out`,
	"descriptor of the directory":   `exec 9<DIR && HEAR /proc/self/fd/9/out`,
	"by way of a process's root":    `HEAR /proc/self/root/OUT`,
	"hard link from before":         `HEAR granted`,
	"abstract":                      `HEAR @ABSTRACT`,
	"from a child in a new session": `setsid -w sh -c 'HEAR OUT'`,
}

func TestNoNameLeadsToAnOutsideSocket(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	need(t, "python3")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, name := range slices.Sorted(maps.Keys(names)) {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				try := func(settings harness.Sandbox) (int32, string) {
					s := newScene(t, machine)
					for _, dir := range []string{s.at("sub")} {
						if err := os.Mkdir(dir, 0o700); err != nil {
							t.Fatal(err)
						}
					}
					abstract := "@sidecar-test" + s.temp
					servers := []*outsideServer{listen(t, s.at("out")), listen(t, s.at("sub/out")), listen(t, abstract)}
					// A hard link that lay in the project before the session.
					if err := os.Link(s.at("out"), s.Project+"/granted"); err != nil {
						t.Fatal(err)
					}
					output, _ := s.start(settings).Tool(fill(names[name], "HEAR", harness.Quote(s.Victim)+" hear",
						"VICTIM", s.Victim, "OUT", s.at("out"), "DIR", s.temp, "@ABSTRACT", abstract))
					contacts := int32(0)
					for _, server := range servers {
						contacts += server.contacts.Load()
					}
					return contacts, output
				}
				if contacts, output := try(nil); contacts != 1 || !contains(output, "outside") {
					t.Fatalf("control: without a sandbox it must work: %d contacts\n%s", contacts, output)
				}
				sandboxes := []harness.Sandbox{defaults()}
				if name == "path" || name == "abstract" {
					// the session may have a network namespace of its own there
					sandboxes = append(sandboxes, offline())
				}
				for _, settings := range sandboxes {
					if contacts, output := try(settings); contacts != 0 || !contains(output, "refused: E") {
						harness.Breach(t, "THE ATTACK WORKS or is not refused: %d contacts\n%s", contacts, output)
					}
				}
			})
		}
	}
}

// Sends datagrams, alone and from one end of a pair.
func TestNoDatagramLeadsToAnOutsideSocket(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, action := range []string{"datagram", "pair"} {
			for k, abstract := range []bool{false, true} {
				if !harness.Turn(t, i+j+k, len(machines)) {
					continue
				}
				try := func(settings harness.Sandbox) (*outsideServer, string) {
					s := newScene(t, machine)
					address := s.at("out")
					if abstract {
						address = "@sidecar-test-datagram" + s.temp
					}
					server := receive(t, address)
					output, _ := s.start(settings).Tool(harness.Quote(s.Victim) + " " + action + " " +
						harness.Quote(address))
					return server, output
				}
				server, output := try(nil)
				harness.Eventually(t, "control: without a sandbox the datagram arrives: "+output, func() bool {
					return server.contacts.Load() == 1
				})
				if server, output := try(defaults()); server.contacts.Load() != 0 || !contains(output, "refused: E") {
					t.Errorf("%s, %s, abstract %t: %d datagrams: %s", machine.Name, action, abstract,
						server.contacts.Load(), output)
				}
			}
		}
	}
}

// Changes the address, or the file behind the descriptor, while the supervisor
// decides about connect(2). The session can only connect to the address that
// was decided about.
func TestNoRaceLeadsToAnOutsideSocket(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, action := range []string{"flip", "swap"} {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+"/"+action, func(t *testing.T) {
				t.Parallel()
				try := func(settings harness.Sandbox) (*outsideServer, string) {
					s := newScene(t, machine)
					server := listen(t, s.at("out"))
					arguments := " " + harness.Quote(s.at("out"))
					if action == "flip" {
						arguments = " " + harness.Quote(s.at("in")) + arguments
					}
					output, status := s.start(settings).Tool(harness.Quote(s.Victim) + " " + action + arguments)
					if status != 0 {
						t.Errorf("the victim failed: %s", output)
					}
					return server, output
				}
				if server, output := try(nil); server.contacts.Load() == 0 {
					t.Fatalf("control: without a sandbox it must work: %s", output)
				}
				server, output := try(defaults())
				if server.contacts.Load() != 0 || !contains(output, "outside 0 times") {
					harness.Breach(t, "THE ATTACK WORKS: %d contacts\n%s", server.contacts.Load(), output)
				}
				if action == "flip" && contains(output, "inside 0 times") {
					t.Errorf("its own server was not reached either, so that the race proves nothing: %s", output)
				}
			})
		}
	}
}

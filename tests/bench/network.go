//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// rowHosts is the sidecar with one host that its sessions may reach.
	rowHosts = "sidecar, allowed_hosts"
	// downloadSize is a multiple of the server's pieces.
	downloadSize = 256 << 20
	// gigabit is the speed of a usual network, in bytes a second.
	gigabit = 125_000_000
)

// networks measures connections to one host that a session may reach, and what
// they carry. The server is on the loopback interface.
func (b *bench) networks() error {
	fast, err := serve(0)
	if err != nil {
		return err
	}
	defer fast.Close()
	paced, err := serve(gigabit)
	if err != nil {
		return err
	}
	defer paced.Close()
	connects := &table{
		ID: "connect", Title: "Connecting to an allowed host", Unit: "ms", Baseline: rowNone,
		How: "Look-up of the name and connect, from a program in Go: the median of 60 to a server on the loopback " +
			"interface. The peers' programs must ask an HTTP proxy of theirs.",
	}
	downloads := &table{
		ID: "download", Title: "Download from an allowed host", Unit: "MB/s", Baseline: rowNone, MoreIsBetter: true,
		How: "256 MB over one connection from the same server, as fast as the loopback interface goes. What stands " +
			"between copies everything a second time, on the same two processors.",
	}
	gigabits := &table{
		ID: "download-gigabit", Title: "Download at a gigabit", Unit: "MB/s", Baseline: rowNone, MoreIsBetter: true,
		How: "The same from a server that sends a gigabit a second, as a fast network does.",
	}
	for _, server := range []struct {
		net.Listener
		table *table
	}{{fast, downloads}, {paced, gigabits}} {
		list, connected, err := b.reaching(server.Addr().(*net.TCPAddr).Port)
		if err != nil {
			return err
		}
		server.table.Rows = takeTurns(b.rounds(8), b.limit(40*time.Second), list)
		if server.table == downloads {
			for _, r := range server.table.Rows {
				connects.Rows = append(connects.Rows, row{Name: r.Name, Absent: r.Absent, Samples: connected[r.Name]})
			}
		}
	}
	b.add(connects)
	b.add(downloads)
	b.add(gigabits)
	return nil
}

// reaching are the sandboxes that can open one host, and none. The second map
// gets the time of a connection in ms, for each sample.
func (b *bench) reaching(port int) ([]contestant, map[string][]float64, error) {
	address := "localhost:" + strconv.Itoa(port)
	settings, err := b.world.settings("hosts-"+strconv.Itoa(port), map[string]any{
		"enabled": true, "allow_network": false, "allowed_hosts": []string{address},
	})
	if err != nil {
		return nil, nil, err
	}
	peers := filepath.Join(b.world.root, "peers-hosts.json")
	if err := os.WriteFile(peers, []byte(`{"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]},`+
		`"network":{"allowedDomains":["localhost"],"deniedDomains":[]}}`), 0o600); err != nil {
		return nil, nil, err
	}
	connected := map[string][]float64{}
	var list []contestant
	add := func(l launcher, name, address string) {
		l.name = name
		list = append(list, contestant{name: name, absent: l.absent, sample: func() (float64, float64, error) {
			connect, download, err := b.download(l, address)
			if err != nil {
				return 0, 0, err
			}
			connected[name] = append(connected[name], connect/1e6)
			return downloadSize / 1e6 / (download / 1e9), 0, nil
		}})
	}
	for _, l := range b.all() {
		switch l.name {
		case rowNone:
			add(l, rowNone, address)
		case rowOffline:
			l.argv = func(command ...string) []string {
				return append([]string{b.world.sidecar, "exec", "--kind", "tool", "--settings", settings, "--"},
					command...)
			}
			add(l, rowHosts, "host.sandbox.internal:"+strconv.Itoa(port))
		case "sandbox-runtime", "fence":
			// Their settings are an argument.
			before := l.argv
			l.argv = func(command ...string) []string {
				argv := before(command...)
				for i, argument := range argv {
					if argument == "-s" {
						argv[i+1] = peers
					}
				}
				return argv
			}
			add(l, l.name, address)
		}
	}
	return list, connected, nil
}

// download lets the stopwatch connect and download in a sandbox. Both times are
// in nanoseconds.
func (b *bench) download(l launcher, address string) (connect, download float64, err error) {
	output, _, _, err := l.launch(b.world.project, b.world.stopwatch, "network", address, strconv.Itoa(downloadSize))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(output) {
		_, _ = fmt.Sscanf(line, "connect %g", &connect)
		_, _ = fmt.Sscanf(line, "download %g", &download)
	}
	if connect == 0 || download == 0 {
		return 0, 0, fmt.Errorf("the stopwatch says %q", firstLine(output))
	}
	return connect, download, nil
}

// serve answers connections until it is closed. It sends nothing, or downloadSize
// bytes, with at most so many bytes a second; 0 is no limit.
func serve(speed int) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			go sendDownload(connection, speed)
		}
	}()
	return listener, nil
}

// sendDownload answers one connection of [serve].
func sendDownload(connection net.Conn, speed int) {
	defer connection.Close()
	var asked [1]byte
	if _, err := connection.Read(asked[:]); err != nil || asked[0] != 'b' {
		return
	}
	piece, begun := make([]byte, 1<<20), time.Now()
	for sent := 0; sent < downloadSize; sent += len(piece) {
		if speed > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(float64(sent) / float64(speed) * 1e9))))
		}
		if _, err := connection.Write(piece); err != nil {
			return
		}
	}
	// Some proxies lose what is under way when a side closes.
	_, _ = connection.Read(asked[:])
}

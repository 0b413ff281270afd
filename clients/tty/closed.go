//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// closedFile is a file that this process can read and a session cannot.
type closedFile struct {
	say  string
	file string
	// ours reports that this process made the file, so that a test may write
	// beside it.
	ours bool
}

// findClosed makes a private file in the home directory, which the policy does
// not grant. If the policy grants that too, such as a home directory below /tmp
// in a container, it returns a file of the system.
func findClosed(ctx context.Context, conn *client.Client, cwd string) (closedFile, func(), error) {
	result, err := client.Call(ctx, conn, protocol.PolicyGet,
		protocol.PolicyGetParams{ProjectDir: cwd, Kind: protocol.Tool})
	if err != nil {
		return closedFile{}, nil, err
	}
	var problems []error
	for _, base := range []string{os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR")} {
		real, err := filepath.EvalSymlinks(base)
		if base == "" || err != nil || granted(result.Policy, real) {
			continue
		}
		file, cleanUp, err := makeSecret(real)
		if err == nil {
			return closedFile{say: "Reading your private files is refused:", file: file, ours: true}, cleanUp, nil
		}
		problems = append(problems, err)
	}
	for _, file := range []string{
		"/sys/kernel/notes", "/sys/devices/system/cpu/online", "/var/lib/dpkg/status",
		"/boot/config",
	} {
		if _, err := os.ReadFile(file); err == nil && !granted(result.Policy, file) {
			say := "Reading what the settings do not grant is refused, even if file permissions would allow it:"
			return closedFile{say: say, file: file}, func() {}, nil
		}
	}
	return closedFile{}, nil, errors.Join(append(problems,
		errors.New("the settings grant every file, so there is no refusal to show"))...)
}

func granted(policy protocol.Policy, path string) bool {
	return slices.ContainsFunc(policy.Rules, func(rule protocol.PolicyRule) bool {
		return rule.Path == "/" || path == rule.Path || strings.HasPrefix(path, rule.Path+"/")
	})
}

func makeSecret(base string) (path string, cleanUp func(), err error) {
	dir, err := os.MkdirTemp(base, ".sandbox-sidecar-demo-")
	if err != nil {
		return "", nil, fmt.Errorf("make a private file to show a refusal: %w", err)
	}
	path = filepath.Join(dir, "id_rsa")
	if err := os.WriteFile(path, []byte("a private key\n"), 0o600); err != nil {
		return "", nil, fmt.Errorf("make a private file to show a refusal: %w", err)
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

//go:build unix

package rpc

import (
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// A field that nobody knows may restrict: terminal/spawn refuses it, by its name.
// Elsewhere it is logged, once, and has no effect.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	var log logged
	f := startWith(t, &platformtest.Fake{}, `{"enabled": false}`, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	e := f.connect()
	request := func(method string, params map[string]any) error {
		_, err := client.Call(t.Context(), e.Client, protocol.Request[map[string]any, json.RawMessage]{
			Method: method, Direction: protocol.ToSidecar,
		}, params)
		return err
	}
	for name, params := range map[string]map[string]any{
		"readOnly": {"cwd": f.dir, "command": "true", "readOnly": true},
		"umask":    {"cwd": f.dir, "shell": map[string]any{"program": "/bin/sh", "umask": 63}},
		"nothing":  {"cwd": f.dir, "command": "true", "env": []any{}, "nothing": nil}, // [] is Lua's {}
	} {
		answer := refused(t, request("terminal/spawn", params), protocol.CodeInvalidParams)
		if !strings.Contains(answer.Message, "params."+name+":") {
			t.Errorf("%s: %s", name, answer.Message)
		}
	}
	// The control: each field that the answer to initialize lists is known.
	known := map[string]any{"cwd": f.dir, "command": "true", "env": map[string]string{"readOnly": "1"}}
	for _, field := range protocol.SpawnFields() {
		if _, set := known[field]; !set {
			known[field] = nil
		}
	}
	if err := request("terminal/spawn", known); err != nil {
		t.Errorf("all known fields: %v", err)
	}
	for range 3 {
		if err := request("terminal/list", map[string]any{"colour": "red"}); err != nil {
			t.Errorf("another request: %v", err)
		}
	}
	if said := strings.Count(log.String(), "colour"); said != 1 {
		t.Errorf("the log names it %d times:\n%s", said, log.String())
	}
}

func TestInitialize_AgreesOnAVersion(t *testing.T) {
	t.Parallel()
	for version, accepted := range map[int]bool{0: true, 1: true, 2: true, 1000: true, -1: false} {
		f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
		c := client.New(io.NopCloser(f.out), f.in)
		params := protocol.InitializeParams{ProtocolVersion: version}
		answer, err := client.Call(t.Context(), c, protocol.Initialize, params)
		if !accepted {
			if got := refused(t, err, protocol.CodeInvalidParams); !strings.Contains(got.Message, "protocolVersion") {
				t.Errorf("version %d: %s", version, got.Message)
			}
			continue
		}
		if err != nil || answer.ProtocolVersion != protocol.Version ||
			!slices.Equal(answer.Capabilities.SpawnFields, protocol.SpawnFields()) {
			t.Errorf("version %d: %+v, %v", version, answer, err)
		}
	}
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

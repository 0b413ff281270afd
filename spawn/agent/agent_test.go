package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh/agent"
)

// scene is an agent with one key, and a filter before it.
type scene struct {
	keyring agent.Agent
	socket  string // the filter's
	filter  *Filter

	mu      sync.Mutex
	refused []string
	uses    []Use
	decide  func(ctx context.Context, use Use) bool // nil: any key may be used
}

func (s *scene) mayUse(ctx context.Context, use Use) bool {
	s.mu.Lock()
	s.uses = append(s.uses, use)
	decide := s.decide
	s.mu.Unlock()
	return decide == nil || decide(ctx, use)
}

// newScene has an agent that handles connections as serve does; nil: properly.
func newScene(t *testing.T, serve func(net.Conn)) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &scene{keyring: agent.NewKeyring(), socket: filepath.Join(dir, "filter")}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err == nil {
		err = s.keyring.Add(agent.AddedKey{PrivateKey: key, Comment: "mine"})
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if serve == nil {
		serve = func(c net.Conn) { _ = agent.ServeAgent(s.keyring, c) }
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	s.filter, err = Listen(s.socket, filepath.Join(dir, "agent"), Session{
		Refused: func(what string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused = append(s.refused, what)
		},
		MayUse: s.mayUse,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.filter.Close)
	return s
}

func (s *scene) client(t *testing.T) (agent.ExtendedAgent, net.Conn) {
	t.Helper()
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return agent.NewClient(c), c
}

func TestFilter_ListsAndSignsAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	client, _ := s.client(t)
	keys, err := client.List()
	if err != nil || len(keys) != 1 || keys[0].Comment != "mine" {
		t.Fatalf("list: %v, %v", keys, err)
	}
	signature, err := client.Sign(keys[0], []byte("text"))
	if err == nil {
		err = keys[0].Verify([]byte("text"), signature)
	}
	if err != nil {
		t.Errorf("sign: %v", err)
	}
	_, more, _ := ed25519.GenerateKey(rand.Reader)
	for what, attempt := range map[string]func() error{
		"add a key":                 func() error { return client.Add(agent.AddedKey{PrivateKey: more}) },
		"remove a key":              func() error { return client.Remove(keys[0]) },
		"remove all keys":           client.RemoveAll,
		"lock itself":               func() error { return client.Lock([]byte("x")) },
		"unlock itself":             func() error { return client.Unlock([]byte("x")) },
		"do what is not known (27)": nil,
	} {
		if attempt == nil {
			if _, err := client.Extension("export@example.com", nil); err == nil {
				t.Error("an extension passed")
			}
			continue
		}
		if err := attempt(); err == nil {
			t.Errorf("%s: it passed", what)
		}
		s.mu.Lock()
		if !slices.Contains(s.refused, what) {
			t.Errorf("%s: not reported: %q", what, s.refused)
		}
		s.mu.Unlock()
	}
	// The connection still works, and the agent is as it was.
	if keys, err := client.List(); err != nil || len(keys) != 1 {
		t.Errorf("list: %v, %v", keys, err)
	}
	if keys, err := s.keyring.List(); err != nil || len(keys) != 1 {
		t.Errorf("the agent has %v, %v", keys, err)
	}
}

// What no client sends ends the connection, and no other.
func TestFilter_HostileClients(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	for name, sent := range map[string]string{
		"nothing": "\x00\x00\x00\x00", "too much": "\xff\xff\xff\xff\x0b", "a list of more": "\x00\x00\x00\x02\x0bx",
		"an extension without a name": "\x00\x00\x00\x05\x1b\xff\xff\xff\xff", "an unknown one": "\x00\x00\x00\x01\xff",
	} {
		c, err := net.Dial("unix", s.socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 100)
		if n, err := c.Read(answer); err == nil && string(answer[:n]) != "\x00\x00\x00\x01\x05" {
			t.Errorf("%s: answered %q", name, answer[:n])
		}
	}
	client, _ := s.client(t)
	if keys, err := client.List(); err != nil || len(keys) != 1 {
		t.Errorf("list: %v, %v", keys, err)
	}
}

// An agent that lies gives a client nothing but the end of the connection.
func TestFilter_AgentsThatLieOrHang(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a signature": "\x00\x00\x00\x05\x0e\x00\x00\x00\x00", "too much": "\x7f\xff\xff\xff",
		"nothing": "\x00\x00\x00\x00",
	} {
		s := newScene(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_, _ = c.Write([]byte(answer))
		})
		client, _ := s.client(t)
		if keys, err := client.List(); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
	// One that hangs holds up neither another client nor the end.
	held := make(chan struct{}, 2)
	s := newScene(t, func(net.Conn) { held <- struct{}{} })
	client, _ := s.client(t)
	failed := make(chan error, 1)
	go func() {
		_, err := client.List()
		failed <- err
	}()
	<-held
	other, _ := s.client(t)
	if err := other.RemoveAll(); err == nil {
		t.Error("removed")
	}
	s.filter.Close()
	if err := <-failed; err == nil {
		t.Error("an agent that hangs has answered")
	}
	if _, err := net.Dial("unix", s.socket); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed filter: %v", err)
	}
}

package tests

import (
	"encoding/json"
	"fmt"
	"slices"
)

func (s *scene) policy(args []string) {
	s.need(args, 2, "policy NAME KIND")
	var result struct {
		PolicyID string `json:"policyId"`
	}
	answer := s.ask(false, "policy/get", fmt.Sprintf(`{"projectDir":%q,"kind":%q}`, s.world.Project, args[1]))
	s.ts.Check(json.Unmarshal([]byte(answer), &result))
	if result.PolicyID == "" {
		s.ts.Fatalf("no policyId in %s", answer)
	}
	s.ts.Setenv(args[0], result.PolicyID)
}

func (s *scene) digest(args []string) {
	s.need(args, 1, "digest NAME")
	var result struct {
		Digest string `json:"digest"`
	}
	answer := s.ask(false, "project/status", fmt.Sprintf(`{"projectDir":%q}`, s.world.Project))
	s.ts.Check(json.Unmarshal([]byte(answer), &result))
	if result.Digest == "" {
		s.ts.Fatalf("no digest in %s", answer)
	}
	s.ts.Setenv(args[0], result.Digest)
}

func (s *scene) forget(args []string) {
	s.need(args, 1, "forget METHOD")
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.inbox = slices.DeleteFunc(s.w.inbox, func(m message) bool { return m.Method == args[0] })
}

func (s *scene) none(args []string) {
	s.need(args, 1, "none METHOD")
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, m := range s.w.inbox {
		if m.Method == args[0] {
			s.ts.Fatalf("there came %s", m.Params)
		}
	}
}

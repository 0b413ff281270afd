package policy_test

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Grants add up along a path, and protection takes writing away.
func ExamplePolicy_At() {
	p := &policy.Policy{
		Restricted: true,
		Rules: []policy.Rule{
			{Path: "/home/user/project", Access: policy.ReadWrite},
			{Path: "/usr", Access: policy.Read | policy.Execute},
		},
		Protected: []policy.Protected{{Path: "/home/user/project/.git/hooks"}},
	}
	fmt.Println(p.At("/home/user/project/main.go"))
	fmt.Println(p.At("/home/user/project/.git/hooks/pre-commit"))
	fmt.Println(p.At("/usr/bin/make"))
	fmt.Println(p.At("/home/user/.ssh/id_ed25519"))
	// Output:
	// read,write,execute
	// read,execute
	// read,execute
	// none
}

// Find names the rule, and so the setting, that grants an access.
func ExamplePolicy_Find() {
	p := &policy.Policy{Rules: []policy.Rule{{
		Path: "/data", Access: policy.Read,
		Origin: policy.Origin{File: "/home/user/.config/settings.json", Key: "additional_read_only_paths", Line: 7},
	}}}
	rule, granted := p.Find(policy.Read, "/data/set.csv")
	fmt.Println(granted, rule.Origin)
	_, granted = p.Find(policy.Write, "/data/set.csv")
	fmt.Println(granted)
	// Output:
	// true additional_read_only_paths (/home/user/.config/settings.json:7)
	// false
}

// A prefix never passes a variable that makes programs run code.
func ExampleEnvironment_Filter() {
	e := policy.Environment{Allowed: []string{"HOME", "GIT_*"}}
	passed, dropped := e.Filter([]string{"HOME=/home/user", "GIT_AUTHOR_NAME=A", "GIT_SSH_COMMAND=evil", "SECRET=1"})
	fmt.Println(passed)
	fmt.Println(dropped)
	// Output:
	// [HOME=/home/user GIT_AUTHOR_NAME=A]
	// [GIT_SSH_COMMAND SECRET]
}

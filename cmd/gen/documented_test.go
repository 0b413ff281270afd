//go:build unix

package main

import (
	"slices"
	"testing"
)

// selfEvident are fields whose names need no comment.
var selfEvident = []string{
	"sessionId", "policyId", "currentPolicyId", "pid", "cwd", "projectDir", "kind", "tracking", "sandbox",
	"environment", "policy",
	"name", "version", "serverInfo", "capabilities", "status", "added", "removed", "message", "program", "args", "cols",
	"rows",
	"sessions", "file", "files", "path", "project", "rules", "diagnostics", "staleSessions", "severity", "allowNetwork",
	"unixSockets",
	"allowedEnvVars", "protectedPaths", "onUnavailable", "onDenied",
}

func TestDeclarations_AreDocumented(t *testing.T) {
	t.Parallel()
	root := moduleDir(t)
	protocolPkg, err := readProtocol(root)
	if err != nil {
		t.Fatal(err)
	}
	settingsPkg, err := readSettings(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(protocolPkg.Methods) == 0 || len(protocolPkg.Codes) == 0 || len(settingsPkg.Structs) == 0 {
		t.Fatal("the declarations were not found")
	}
	want := func(what, doc string) {
		if doc == "" {
			t.Errorf("%s has no doc comment: users and client authors read it", what)
		}
	}
	for _, p := range []*Package{protocolPkg, settingsPkg} {
		for _, m := range p.Methods {
			want("method "+m.Name, m.Doc)
		}
		for _, c := range p.Codes {
			want("error code "+c.GoName, c.Doc)
		}
		for _, n := range p.Named {
			want("type "+n.Name, n.Doc)
		}
		for _, e := range p.Enums {
			want("enum "+e.Name, e.Doc)
			for _, v := range e.Values {
				want("value "+v.GoName, v.Doc)
			}
		}
		for _, s := range p.Structs {
			want("struct "+s.Name, s.Doc)
			for _, f := range s.Fields {
				if p == settingsPkg || !slices.Contains(selfEvident, f.Name) {
					want("field "+s.Name+"."+f.GoName, f.Doc)
				}
			}
		}
	}
}

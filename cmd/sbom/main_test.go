package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

func TestBillOf(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(billOf(&debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.org/m/cmd/x",
		Main: debug.Module{Path: "example.org/m", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:a="},
			{
				Path: "example.org/b", Version: "v0.1.0",
				Replace: &debug.Module{Path: "example.org/fork", Version: "v0.2.0", Sum: "h1:f="},
			},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "darwin"}, {Key: "-ldflags", Value: "secret"}},
	}, "v1.0.0+dirty"))
	const want = `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,` +
		`"metadata":{"component":{"type":"application","name":"example.org/m/cmd/x",` +
		`"version":"v1.0.0+dirty","purl":"pkg:golang/example.org/m@v1.0.0%2Bdirty",` +
		`"properties":[{"name":"build:GOOS","value":"darwin"}]}},"components":[` +
		`{"type":"library","name":"std","version":"1.26.8","purl":"pkg:golang/std@1.26.8"},` +
		`{"type":"library","name":"example.org/a","version":"v1.2.3","purl":"pkg:golang/example.org/a@v1.2.3",` +
		`"properties":[{"name":"go:sum","value":"h1:a="}]},` +
		`{"type":"library","name":"example.org/fork","version":"v0.2.0","purl":"pkg:golang/example.org/fork@v0.2.0",` +
		`"properties":[{"name":"go:sum","value":"h1:f="}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// The bill of this program names the Go version that built it.
func TestBillOf_ARealProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(billOf(info, "v1").Components, func(c component) bool {
		return c.Name == "std" && c.Version != ""
	}) {
		t.Errorf("%+v", billOf(info, "v1"))
	}
}

// Command sbom prints the components of a Go program as CycloneDX 1.6: sbom
// BINARY VERSION. It reads them from the binary itself, so it lists what was
// linked and not what go.mod requires.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(billOf(info, os.Args[2]))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sbom: read %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// bill is the part of a CycloneDX document that sbom writes.
type bill struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Revision   int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf lists the standard library and every module with its sum from go.sum.
// Instead of a replaced module it lists the replacement. version is the version
// of the program itself, which the binary does not hold.
func billOf(info *debug.BuildInfo, version string) bill {
	main := component{Type: "application", Name: info.Path, Version: version, PURL: purl(info.Main.Path, version)}
	for _, setting := range info.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" || setting.Key == "CGO_ENABLED" {
			main.Properties = append(main.Properties, property{"build:" + setting.Key, setting.Value})
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	list := []component{{Type: "library", Name: "std", Version: goVersion, PURL: purl("std", goVersion)}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		list = append(list, component{
			Type: "library", Name: module.Path, Version: module.Version, PURL: purl(module.Path, module.Version),
			Properties: []property{{"go:sum", module.Sum}},
		})
	}
	return bill{Format: "CycloneDX", Version: "1.6", Revision: 1, Metadata: metadata{main}, Components: list}
}

// purl is a package URL of the type "golang". Only the "+" of versions needs
// escaping.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

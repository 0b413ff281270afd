package messages

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// root is read by this process itself, so that the test cache notices changes.
var root = os.DirFS("../..")

// unseen are directories and files whose texts no user of the sidecar sees.
var unseen = []string{
	"tests/", "cmd/gen/", "cmd/measure/", "cmd/sbom/", "platform/platformtest/", "platform/linux/notify/notifytest/",
	"clients/neovim/tests/", "clients/vscode/tests/",
	"clients/vscode/src/protocol.gen.ts", "clients/neovim/lua/sandbox_sidecar/protocol_gen.lua", // types
}

// collect finds the texts of every source file.
func collect(t *testing.T) []message {
	t.Helper()
	var all []message
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && isSkipped(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || isUnseen(name):
			return nil
		}
		all = append(all, messagesOf(t, root, name)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isSkipped(dir string) bool {
	switch dir {
	case "node_modules", "testdata", "dist", "build", "bin":
		return true
	}
	return dir[0] == '.'
}

func isUnseen(name string) bool {
	for _, prefix := range unseen {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_test.go")
}

// messagesOf are the texts of one file.
func messagesOf(t *testing.T, files fs.FS, name string) []message {
	t.Helper()
	var collector func(*testing.T, string, []byte) []message
	switch {
	case path.Ext(name) == ".go":
		collector = goMessages
	case path.Ext(name) == ".lua":
		collector = luaMessages
	case strings.HasPrefix(name, "clients/vscode/src/") && path.Ext(name) == ".ts":
		collector = typeScriptMessages
	case name == "clients/vscode/package.json" || name == "clients/vscode/package.nls.json":
		collector = jsonMessages
	default:
		return nil
	}
	source, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return collector(t, name, source)
}

package spawn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// makeCopies makes the files of which the session reads a part, in a directory
// that no session may write. Without namespaces nothing is put in their place,
// and the session reads neither.
func (a *attempt) makeCopies() {
	p := a.policy
	if !p.Restricted || len(p.Copies) == 0 {
		return
	}
	failed := func(err error) {
		why := fmt.Sprintf("settings without secrets cannot be given to the session: %v", cause(err))
		a.running.log.Warn(why)
		a.warnings = append(a.warnings, why)
	}
	dir, err := a.running.group.MakeDir()
	if err != nil {
		failed(err)
		return
	}
	for i, c := range p.Copies {
		path := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(path, []byte(c.Text), 0o400); err != nil {
			failed(err)
			return
		}
		p.Rules = slices.Concat(p.Rules, []policy.Rule{{
			Path: path, Access: policy.Read,
			Origin: policy.Origin{File: policy.OriginSession, Key: "a part of " + c.Path},
		}})
		p.Replaced = slices.Concat(p.Replaced, []policy.Replaced{{Path: c.Path, Source: path, Needed: true}})
		p.Hidden = slices.DeleteFunc(slices.Clone(p.Hidden), func(h policy.Hidden) bool { return h.Path == c.Path })
	}
}

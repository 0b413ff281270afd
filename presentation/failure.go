package presentation

import (
	"errors"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// ProjectError is why no sandboxed session may start in a project; nil if one
// may.
func ProjectError(compiled settings.Compiled) error {
	path, cause := compiled.Unready()
	if cause == nil {
		return nil
	}
	failed := &spawn.Error{
		Attempt: "check the project", Path: path, Cause: cause,
		Hint: "try again once the file system answers; sessions elsewhere can be started",
	}
	if redirect := (*settings.Redirect)(nil); errors.As(cause, &redirect) {
		failed.Hint = redirect.Hint()
	}
	return failed
}

// NameSetting adds to an error of a start the setting that would allow it, if
// the sandbox refused to execute the program. dir is the session's directory.
func NameSetting(err error, snapshot *settings.Snapshot, kind settings.Kind, dir string) error {
	var failed *spawn.Error
	if !errors.As(err, &failed) || !failed.Refused {
		return err
	}
	path := failed.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	suggestion, unknown := snapshot.Suggest(kind, string(settings.AttemptExecute), path, "")
	if unknown != nil || suggestion.Allowed {
		return err // what refuses is not the path itself
	}
	named := *failed
	named.Hint = suggestion.Hint
	if suggestion.Key != "" {
		named.Hint = suggestion.InstructionInFull()
	}
	return &named
}

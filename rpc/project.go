package rpc

import (
	"context"
	"errors"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

func (s *Server) projectStatus(_ context.Context, params protocol.ProjectParams) (protocol.Project, error) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.Project{}, err
	}
	return presentation.Project(s.store.Snapshot(params.ProjectDir).Project()), nil
}

func (s *Server) projectTrust(_ context.Context, params protocol.ProjectTrustParams) (protocol.Project, error) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.Project{}, err
	}
	return projectAnswer(s.store.Trust(params.ProjectDir, params.Digest))
}

func (s *Server) projectUntrust(_ context.Context, params protocol.ProjectParams) (protocol.Project, error) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.Project{}, err
	}
	return projectAnswer(s.store.Untrust(params.ProjectDir))
}

func projectAnswer(project compile.Project, err error) (protocol.Project, error) {
	var refusal *settings.NotTrustedError
	if errors.As(err, &refusal) {
		return protocol.Project{}, &wireError{
			code: protocol.CodeProjectNotTrusted, message: refusal.Error(),
			data: &protocol.ErrorData{Reason: refusal.Reason, Path: refusal.File, Hint: refusal.Hint},
		}
	}
	return presentation.Project(project), err
}

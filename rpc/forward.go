package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/forward"
)

const maxPort = 1<<16 - 1

// forwardPort opens a port of this machine for a session's server.
func (s *Server) forwardPort(
	ctx context.Context, params protocol.ForwardPortParams,
) (protocol.ForwardPortResult, error) {
	if params.LocalPort == 0 {
		params.LocalPort = params.Port
	}
	for _, one := range []struct {
		field string
		port  int
	}{{"port", params.Port}, {"localPort", params.LocalPort}} {
		if one.port < 1 || one.port > maxPort {
			return protocol.ForwardPortResult{}, invalidParams(one.field, "expected 1 to %d, found %d", maxPort,
				one.port)
		}
	}
	servers, err := s.servers(ctx, params)
	if err != nil {
		return protocol.ForwardPortResult{}, err
	}
	result := protocol.ForwardPortResult{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(params.LocalPort))}
	switch err = servers.Forward(uint16(params.Port), uint16(params.LocalPort)); {
	case err == nil:
		s.log.Info("a port of a session is open", "session", params.SessionID, "group", params.Group,
			"port", params.Port, "address", result.Address)
		return result, nil
	case errors.Is(err, spawn.ErrSharedLocalhost) && params.Port == params.LocalPort:
		result.Shared = true
		return result, nil
	case errors.Is(err, spawn.ErrEnded):
		return protocol.ForwardPortResult{}, err
	}
	return protocol.ForwardPortResult{}, portNotForwarded(params, err)
}

// servers are those of a session, or of a group.
type servers interface{ Forward(port, at uint16) error }

func (s *Server) servers(ctx context.Context, params protocol.ForwardPortParams) (servers, error) {
	if (params.Group == "") == (params.SessionID == "") {
		return nil, invalidParams("sessionId", "expected one of sessionId and group")
	}
	if params.Group == "" {
		return s.started(ctx, params.SessionID)
	}
	named, err := s.groupsNamed(params.Group, params.ProjectDir)
	if err != nil {
		return nil, err
	}
	var newest *spawn.Group
	for _, g := range s.groups.matching(named) {
		if g.started() && (newest == nil || g.group.StartedAt().After(newest.StartedAt())) {
			newest = g.group
		}
	}
	if newest == nil {
		return nil, groupNotFound(params.Group)
	}
	return newest, nil
}

// portNotForwarded says why a port cannot be opened, and what to do.
func portNotForwarded(params protocol.ForwardPortParams, err error) *wireError {
	reason, hint := err, ""
	switch {
	case errors.Is(err, forward.ErrInUse):
		reason, hint = forward.ErrInUse, "name another port of this machine for it"
	case errors.Is(err, forward.ErrPrivileged):
		reason, hint = forward.ErrPrivileged, "name a port above 1023 of this machine for it"
	case errors.Is(err, spawn.ErrSharedLocalhost):
		hint = fmt.Sprintf("connect to localhost:%d itself", params.Port)
	case errors.Is(err, spawn.ErrNoLocalhost):
		hint = `"sandbox-sidecar doctor" says at "network" what the machine lacks`
	case errors.Is(err, spawn.ErrManyPorts):
		hint = "close the session"
	}
	return &wireError{
		code:    protocol.CodePortNotForwarded,
		message: fmt.Sprintf("open port %d of this machine: %v", params.LocalPort, reason),
		data:    &protocol.ErrorData{Reason: reason.Error(), Hint: hint},
	}
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

func (s *Server) registerLifecycle() {
	onRequestThen(s.dispatcher, protocol.Initialize, s.initialize)
	s.dispatcher.inline[protocol.Initialize.Method] = true // later messages rely on it
	onNotification(s.dispatcher, protocol.Initialized, func(protocol.Empty) error { return nil })
	onRequest(s.dispatcher, protocol.Shutdown, s.shutdown)
	s.dispatcher.waits[protocol.Shutdown.Method] = true
	onNotification(s.dispatcher, protocol.Exit, func(protocol.Empty) error {
		s.exitOnce.Do(func() { close(s.exited) })
		return nil
	})
	onNotification(s.dispatcher, protocol.DidChangeWorkspaceFolders, s.changeFolders)
	onNotification(s.dispatcher, protocol.CancelRequest, s.dispatcher.cancel)
}

func (s *Server) initialize(ctx context.Context, params protocol.InitializeParams) (protocol.InitializeResult, func(),
	error,
) {
	if wanted := params.ProtocolVersion; wanted < 0 {
		return protocol.InitializeResult{}, nil, invalidParams("protocolVersion", "there is no version %d", wanted)
	}
	options := protocol.InitializationOptions{UserSettingsPath: s.options.UserSettingsPath}
	if given := params.InitializationOptions; given != nil {
		options.Settings = given.Settings
		if given.UserSettingsPath != "" {
			options.UserSettingsPath = given.UserSettingsPath
		}
	}
	if path := options.UserSettingsPath; path != "" {
		if err := absolute("initializationOptions.userSettingsPath", path); err != nil {
			return protocol.InitializeResult{}, nil, err
		}
	}
	for i, folder := range params.WorkspaceFolders {
		if err := absolute(fmt.Sprintf("workspaceFolders[%d].path", i), folder.Path); err != nil {
			return protocol.InitializeResult{}, nil, err
		}
	}
	if params.ProcessID != nil {
		gone, err := s.options.WatchProcess(s.ctx, *params.ProcessID)
		switch {
		case errors.Is(err, unix.ESRCH): // the editor has died already
			s.goneOnce.Do(func() { close(s.editorGone) })
		case err != nil:
			return protocol.InitializeResult{}, nil, invalidParams("processId", "%v", err)
		}
		s.background.Go(func() { s.awaitEditor(gone) })
	}
	store, err := settings.Open(settings.Options{
		UserPath: options.UserSettingsPath, Editor: editorLayer(options.Settings), Command: s.options.Command,
		Env: s.options.Env, Guarded: s.options.Guarded, HostsGap: s.options.HostsGap, Complete: s.options.Complete,
		Recorder: s.options.Recorder, Logger: s.log, OnChange: s.settingsChanged,
		OnNotice: func(text string) {
			s.conn.logLine(protocol.LogWarning, text) // may be called on the reading goroutine
		},
	})
	if err != nil {
		return protocol.InitializeResult{}, nil, fmt.Errorf("open settings: %w", err)
	}
	store.Remember(folderPaths(params.WorkspaceFolders)...)
	s.mu.Lock()
	s.store, s.capabilities, s.folders, s.phase = store, params.Capabilities, params.WorkspaceFolders, phaseServing
	if params.ClientInfo != nil {
		s.client = display.Text(params.ClientInfo.Name)
	}
	s.mu.Unlock()
	result := protocol.InitializeResult{
		ServerInfo: protocol.ClientInfo{
			Name:    "sandbox-sidecar",
			Version: s.options.Version,
		}, ProtocolVersion: protocol.Version,
		Capabilities: protocol.ServerCapabilities{
			Platform: s.options.Spawner.Platform(), Kinds: []protocol.Kind{protocol.Terminal, protocol.Tool},
			Groups:      s.options.Spawner.CanShare(),
			SpawnFields: protocol.SpawnFields(),
			Enforcement: presentation.Protections(s.options.Spawner.Probe(ctx)),
		},
	}
	if params.Capabilities.Window {
		result.Window = s.openWindow(params.Capabilities.Approvals)
	}
	return result, func() { s.publishFolders(params.WorkspaceFolders) }, nil
}

// editorLayer is the editor's settings as the bytes of a settings file; nil if
// there are none.
func editorLayer(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "[]" {
		return nil
	}
	return raw
}

func (s *Server) awaitEditor(gone <-chan struct{}) {
	select {
	case <-gone:
		s.goneOnce.Do(func() { close(s.editorGone) })
	case <-s.ctx.Done():
	}
}

func (s *Server) shutdown(ctx context.Context, _ protocol.Empty) (protocol.Empty, error) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	err := errors.Join(s.sessions.closeAll(ctx, (*entry).defaultGrace), s.groups.closeAll())
	s.options.Spawner.Close()
	return protocol.Empty{}, err
}

func (s *Server) changeFolders(change protocol.WorkspaceFoldersChange) error {
	for i, folder := range change.Added {
		if err := absolute(fmt.Sprintf("added[%d].path", i), folder.Path); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.folders = slices.DeleteFunc(slices.Clone(s.folders), func(folder protocol.WorkspaceFolder) bool {
		return slices.ContainsFunc(change.Removed, func(removed protocol.WorkspaceFolder) bool {
			return removed.Path == folder.Path
		})
	})
	s.folders = append(s.folders, change.Added...)
	s.store.Remember(folderPaths(change.Added)...)
	s.mu.Unlock()
	// Even if none was added: this withdraws the diagnostics of removed folders.
	// It reads files, and the handler of a notification must not block.
	s.background.Go(func() { s.publishFolders(change.Added) })
	return nil
}

func folderPaths(folders []protocol.WorkspaceFolder) []string {
	paths := make([]string, len(folders))
	for i, folder := range folders {
		paths[i] = folder.Path
	}
	return paths
}

// folderOf is the innermost workspace folder that contains dir.
func (s *Server) folderOf(dir string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best, found := "", false
	for _, folder := range s.folders {
		rel, err := filepath.Rel(folder.Path, dir)
		if err == nil && filepath.IsLocal(rel) && len(folder.Path) > len(best) {
			best, found = filepath.Clean(folder.Path), true
		}
	}
	return best, found
}

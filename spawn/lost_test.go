package spawn

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What was there and was not granted is lost. What need not be there, and what a
// session decides about itself, is not.
func TestLostGrants_AreThoseThatWereThere(t *testing.T) {
	t.Parallel()
	from := func(key string) policy.Origin { return policy.Origin{File: policy.OriginCommand, Key: key} }
	p := &policy.Policy{
		Rules: []policy.Rule{
			{Path: "/data", Access: policy.Read, Origin: from("data")},
			{Path: "/later", Access: policy.Read},
			{Path: "/tmp", Access: policy.ReadWrite},
			{Path: "/tmp/back", Access: policy.Read, Origin: from("back")},
			{Path: "/cache", Access: policy.ReadWrite, Origin: from("cache")},
			{Path: "/cache/below", Access: policy.Read},
			{Path: "/replaced/below", Access: policy.Read},
			{Path: "/a\xff", Access: policy.Read, Origin: from("bytes")},
		},
		UnixSockets: []policy.UnixSocket{{Path: "/agent", Origin: from("agent")}, {Path: "/stale"}},
		Temporary:   []policy.Temporary{{Path: "/tmp", Source: "/own"}},
		Caches:      []policy.Cache{{Path: "/cache"}},
		Replaced:    []policy.Replaced{{Path: "/replaced", Source: "/own"}},
		Present: map[string]bool{
			"/data": true, "/tmp": true, "/tmp/back": true, "/cache": true, "/cache/below": true, "/agent": true,
			"/replaced/below": true, "/a\xff": true, "/granted": true,
		},
	}
	var missing []platform.Missing
	for _, path := range []string{
		"/data", "/later", "/tmp", "/tmp/back", "/cache", "/cache/below", "/replaced/below", "/a\xff", "/agent",
		"/stale", "/data", "/unknown",
	} {
		missing = append(missing, platform.Missing{Path: path, Reason: "why " + path})
	}
	want := []LostGrant{
		{"/data", "why /data", from("data")},
		{"/tmp/back", "why /tmp/back", from("back")},
		{"/cache", "why /cache", from("cache")},
		{"/a\xff", "why /a\xff", from("bytes")},
		{"/agent", "why /agent", from("agent")},
	}
	if got := lostGrants(p, missing); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := lostGrants(p, nil); got != nil {
		t.Errorf("nothing is missing: %+v", got)
	}
}

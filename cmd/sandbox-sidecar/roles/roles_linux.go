package roles

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/groupinit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
)

var hidden = map[string]func() int{
	"stage": stage.Run, "subreaper": lifecycle.RunSubreaper,
	"domain-killer": lifecycle.RunDomainKiller, "fsguard": fsguard.RunHelper,
	"cache-holder": overlay.RunHolder, handshake.GroupInit: groupinit.Run,
}

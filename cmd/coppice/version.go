package main

import (
	"runtime"
	"runtime/debug"

	"github.com/coppice-chat/coppice/internal/terminal"
)

// version is set by a release's linker flags: -ldflags "-X main.version=v1.2.3".
var version string

type versionCommand struct {
	outputFlags
}

// buildInfo says what program this is.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, with "+changes" if it was changed
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (cmd *versionCommand) Run(out *terminal.Console) error {
	info := readBuildInfo()
	if cmd.JSON {
		return printJSON(out, info)
	}
	out.Line("coppice %s", info.Version)
	if info.Revision != "" {
		out.Line("revision %s of %s", info.Revision, info.Time)
	}
	out.Line("%s %s", info.Go, info.Platform)
	return nil
}

func readBuildInfo() buildInfo {
	info := buildInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value + info.Revision
		case "vcs.time":
			info.Time = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				info.Revision += "+changes"
			}
		}
	}
	return info
}

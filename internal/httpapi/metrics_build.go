package httpapi

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// newBuildInfo is a gauge that is always 1 and says with its labels what is running: where they differ, a roll-out is under way.
func newBuildInfo() prometheus.Collector {
	version, revision := build(debug.ReadBuildInfo())
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "invoicebridge_build_info", Help: "1, with what was built: version, revision, and Go's version.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// build tells version and revision; "unknown" where the binary was built without them. A revision with changes that are in
// no commit ends in "-modified".
func build(info *debug.BuildInfo, ok bool) (version, revision string) {
	version, revision = "unknown", "unknown"
	if !ok {
		return version, revision
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	modified := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			modified = setting.Value == "true"
		}
	}
	if modified {
		revision += "-modified"
	}
	return version, revision
}

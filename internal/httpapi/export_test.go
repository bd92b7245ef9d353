package httpapi

import (
	"net/http"
	"strings"
)

// GetRoutes are the patterns that a service serves by GET.
func GetRoutes(handler http.Handler) (patterns []string) {
	var s *server
	switch h := handler.(type) {
	case erp:
		s = h.server
	case crmSide:
		s = h.server
	}
	for route := range s.decisions {
		if path, isGet := strings.CutPrefix(route, "GET "); isGet {
			patterns = append(patterns, path)
		}
	}
	return patterns
}

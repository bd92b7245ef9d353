package browsertest

import (
	"net/http"
	"testing"
)

// River UI tries a few styles inline (how its messages slide in) and whether it may make code of text; both are refused by
// our policy, and it does without.
func TestServiceAccountSeesTheQueueInRiverUI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	for _, base := range []struct{ name, url, kind string }{
		{"crm", w.crmURL, "deliver_operation"}, {"erp", w.erpURL, "register_invoice"},
	} {
		b := w.tab(base.url, service)
		b.guard.tolerated = []string{"Applying inline style", "style-src-elem refuses", `script-src refuses ""`}
		if status := b.open("/queue/jobs?state=completed"); status != http.StatusOK {
			t.Fatalf("a service account gets %d", status)
		}
		b.await("main", base.kind)
		for _, dark := range []bool{false, true} {
			b.darkMode(dark)
			b.shot(base.name + "-queue" + map[bool]string{false: "-light", true: "-dark"}[dark])
		}
	}
}

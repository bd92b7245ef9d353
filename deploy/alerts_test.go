package deploy

import (
	"os/exec"
	"testing"
)

// The cases are worked by Prometheus's own promtool. Its engine as a package would bring more modules than all of this
// repository has; Debian's package prometheus has it, and .ci/run unpacks that.
func TestAlertsFireInTheirCasesAndOnlyThere(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool: apt-get download prometheus, dpkg -x, and put its usr/bin into PATH")
	}
	cases := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yaml")
	cases.Dir = "prometheus"
	if out, err := cases.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

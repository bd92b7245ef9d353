package deploy

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	yaml "github.com/pb33f/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// rule is an alert of alerts.yaml.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	read(t, "prometheus/alerts.yaml", func(text []byte) error { return yaml.Unmarshal(text, &file) })
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

func read(t *testing.T, path string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(text); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// panel is one of a dashboard, or a row with more of them.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

func panels(t *testing.T) (all []panel) {
	t.Helper()
	var dashboard panel
	read(t, "grafana/dashboard.json", func(text []byte) error { return json.Unmarshal(text, &dashboard) })
	for _, p := range dashboard.Panels {
		all = append(append(all, p), p.Panels...)
	}
	if len(all) == 0 {
		t.Fatal("no panels")
	}
	return all
}

// grafanaInterval is what Grafana puts into an expression when it is shown.
var grafanaInterval = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")

// A rule on a metric that nobody shows never fires, and nobody notices. So each name, each label and each value that an
// expression asks for has to be there in a scrape of both services.
func TestEveryExpressionAsksForWhatTheServicesShow(t *testing.T) {
	t.Parallel()
	erp, crm := services(t)
	work(t, erp, crm)
	shown := series{}
	shown.scrape(t, erp)
	shown.scrape(t, crm)
	for _, r := range rules(t) {
		shown.check(t, "alert "+r.Alert, r.Expr)
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			shown.check(t, "panel "+p.Title, grafanaInterval.Replace(target.Expr))
		}
	}
}

// check holds an expression to what is shown.
func (all series) check(t *testing.T, where, text string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		found := all[selector.Name]
		if len(found) == 0 {
			t.Errorf("%s: no service shows %s", where, selector.Name)
			return nil
		}
		for _, m := range selector.LabelMatchers {
			if problem := unmatched(m, found); m.Name != model.MetricNameLabel && problem != "" {
				t.Errorf("%s: %s of %s", where, problem, selector.Name)
			}
		}
		return nil
	})
}

// unmatched says what a matcher asks for that no series has. Each alternative of a pattern has to be there, so that none is
// misspelt; what is left out need not be there, only its label.
func unmatched(m *labels.Matcher, found []map[string]string) string {
	has := func(matches func(value string) bool) bool {
		return slices.ContainsFunc(found, func(s map[string]string) bool {
			value, there := s[m.Name]
			return there && matches(value)
		})
	}
	if !has(func(string) bool { return true }) {
		return fmt.Sprintf("there is no label %s", m.Name)
	}
	switch m.Type {
	case labels.MatchEqual:
		if !has(func(value string) bool { return value == m.Value }) {
			return fmt.Sprintf("there is no %s %q", m.Name, m.Value)
		}
	case labels.MatchRegexp:
		for alternative := range strings.SplitSeq(m.Value, "|") {
			pattern := regexp.MustCompile("^(?:" + alternative + ")$")
			if !has(pattern.MatchString) {
				return fmt.Sprintf("there is no %s like %q", m.Name, alternative)
			}
		}
	case labels.MatchNotEqual, labels.MatchNotRegexp:
	}
	return ""
}

// The alerts know the services by the names of their jobs.
func TestTheExampleOfScrapingHasTheJobsThatTheAlertsNameAndTheirRules(t *testing.T) {
	t.Parallel()
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus/prometheus.yaml", func(text []byte) error { return yaml.Unmarshal(text, &config) })
	var jobs []string
	for _, c := range config.ScrapeConfigs {
		jobs = append(jobs, c.JobName)
		if c.Authorization.File == "" {
			t.Errorf("the job %s brings no token", c.JobName)
		}
	}
	if diff := cmp.Diff([]string{"crm", "erp"}, jobs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"alerts.yaml"}, config.RuleFiles); diff != "" {
		t.Error(diff)
	}
}

// Nobody is woken without being told what it means: each alert has one entry in the runbook, and each entry an alert.
func TestEveryAlertHasItsEntryInTheRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	var headings, alerts []string
	for _, section := range strings.Split("\n"+string(text), "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		entries[heading], _, _ = strings.Cut(body, "\n## ")
		headings = append(headings, heading)
	}
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		for _, part := range []string{"**Meaning.**", "**First look.**", "**Action.**", "**Never.**"} {
			if strings.Count(entries[r.Alert], part) != 1 {
				t.Errorf("the entry of %s does not have one %s", r.Alert, part)
			}
		}
		if want := "docs/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
	slices.Sort(headings)
	slices.Sort(alerts)
	if diff := cmp.Diff(alerts, headings); diff != "" {
		t.Errorf("alerts - entries of the runbook +\n%s", diff)
	}
}

// The cases themselves are for promtool: it has the engine, which would be the largest part of this module.
func TestEveryAlertHasACaseInWhichItFires(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Expressions []struct {
				Expr    string           `yaml:"expr"`
				Samples []map[string]any `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		} `yaml:"tests"`
	}
	read(t, "prometheus/alerts_test.yaml", func(text []byte) error { return yaml.Unmarshal(text, &file) })
	name := regexp.MustCompile(`^ALERTS\{alertname="(\w+)", alertstate="firing"\}$`)
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, e := range test.Expressions {
			match := name.FindStringSubmatch(e.Expr)
			if match == nil {
				t.Fatalf("%s asks for no alert", e.Expr)
			}
			fires[match[1]] = fires[match[1]] || len(e.Samples) > 0
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] {
			t.Errorf("there is no case in which %s fires", r.Alert)
		}
		delete(fires, r.Alert)
	}
	if len(fires) > 0 {
		t.Errorf("cases of alerts that do not exist: %v", fires)
	}
}

func TestEveryAlertSaysHowBadItIsAndWhichPageToOpen(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range rules(t) {
		if names[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		names[r.Alert] = true
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["page"] == "" || !strings.Contains(r.Annotations["description"], r.Annotations["page"]) {
			t.Errorf("%s lacks a summary, or a description that names its page %q", r.Alert, r.Annotations["page"])
		}
	}
}

// A stranger is led to the log-in or told 401 by a page that is there; only one that is not there is 404.
func TestEveryPageThatAnAlertNamesIsServed(t *testing.T) {
	t.Parallel()
	erp, crm := services(t)
	for _, r := range rules(t) {
		for name := range strings.SplitSeq(r.Annotations["service"], ", ") {
			s := map[string]service{"erp": erp, "crm": crm}[name]
			if s.url == "" {
				t.Errorf("%s names the service %q", r.Alert, name)
				continue
			}
			for _, page := range append(pathsIn(r.Annotations["description"]), r.Annotations["page"]) {
				if status, _ := s.do(t, http.MethodGet, page, "", ""); status == http.StatusNotFound || status >= http.StatusInternalServerError {
					t.Errorf("%s names the page %s of %s, which is answered %d", r.Alert, page, name, status)
				}
			}
		}
	}
}

var path = regexp.MustCompile(`(?:^|\s)(/[a-z]+/?)`)

// pathsIn are the paths that a text names, without their queries.
func pathsIn(text string) (paths []string) {
	for _, match := range path.FindAllStringSubmatch(text, -1) {
		paths = append(paths, match[1])
	}
	return paths
}

// Every figure that a scrape shows has a bounded set of labels: no tenant, no key, no id.
func TestNoFigureHasALabelThatGrowsWithTheBusiness(t *testing.T) {
	t.Parallel()
	erp, crm := services(t)
	work(t, erp, crm)
	shown := series{}
	shown.scrape(t, erp)
	shown.scrape(t, crm)
	allowed := []string{
		"channel", "figures", "from", "goversion", "instance", "job", "kind", "le", "limit", "method", "outcome", "quantile", "queue", "reason", "result",
		"revision", "route", "state", "status", "step", "table", "type", "version",
	}
	for name, all := range shown {
		for _, s := range all {
			for label := range s {
				if !slices.Contains(allowed, label) {
					t.Errorf("%s has the label %s: can it have few values only?", name, label)
				}
			}
		}
	}
}

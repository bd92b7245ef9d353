package app

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestReconciliationLooksBackFurtherThanAttemptsGo(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]CRMConfig{
		"":                         {},
		"CRM_RECONCILE_INTERVAL: ": {Reconcile: CRMReconcile{Interval: time.Millisecond}},
		"CRM_RECONCILE_OVERLAP: 24h0m0s is too small":   {Reconcile: CRMReconcile{Overlap: 24 * time.Hour}},
		"CRM_RECONCILE_OVERLAP: 48h0m0s is too small":   {TotalTime: 72 * time.Hour},
		"CRM_RECONCILE_OVERLAP: 9000h0m0s is too large": {Reconcile: CRMReconcile{Overlap: 9000 * time.Hour}},
		"CRM_RECONCILE_PAUSE_FACTOR: -1 is not":         {Reconcile: CRMReconcile{PauseFactor: -1}},
		"CRM_RECONCILE_PAUSE_FACTOR: NaN is not":        {Reconcile: CRMReconcile{PauseFactor: math.NaN()}},
	} {
		cfg.Listen, cfg.DatabaseURL, cfg.ERPURL = "127.0.0.1:0", "postgres://localhost/crm", "http://127.0.0.1:1"
		err := cfg.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", cfg.Reconcile, err, want)
		}
	}
}

func TestTheLongestRetryCountsReconciliationAsItIsSet(t *testing.T) {
	t.Parallel()
	usual := CRMConfig{}.LongestRetry()
	if longer := (CRMConfig{Reconcile: CRMReconcile{Overlap: 72 * time.Hour}}).LongestRetry(); longer != usual+24*time.Hour {
		t.Errorf("%s with 72h instead of 48h, %s before", longer, usual)
	}
}

func TestMistakesOfTheERPsReconciliationNameTheirVariable(t *testing.T) {
	t.Parallel()
	err := ERPConfig{Reconcile: ERPReconcile{Interval: 1, Overlap: -1}}.Check()
	for _, variable := range []string{"ERP_RECONCILE_INTERVAL", "ERP_RECONCILE_OVERLAP"} {
		if err == nil || strings.Count("\n"+err.Error(), "\n"+variable+": ") != 1 {
			t.Errorf("%s is not told once in:\n%v", variable, err)
		}
	}
}

func TestTheERPLooksBackAtTargetsAsFarAsRegistrationsAreTried(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]ERPConfig{
		"": {Registering: RegisterConfig{TotalTime: 12 * time.Hour}, Reconcile: ERPReconcile{Overlap: 12 * time.Hour}},
		"ERP_RECONCILE_OVERLAP: 23h0m0s is too small": {Reconcile: ERPReconcile{Overlap: 23 * time.Hour}},
		"ERP_REGISTER_TOTAL_TIME=48h0m0s":             {Registering: RegisterConfig{TotalTime: 48 * time.Hour}},
	} {
		cfg.Listen, cfg.DatabaseURL = "127.0.0.1:0", "postgres://localhost/erp"
		err := cfg.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

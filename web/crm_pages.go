package web

// crmPages are the pages of the CRM side's console. Add each here once; empty is enough, New makes up what it holds.
func crmPages() []Page {
	return []Page{
		CRMDashboard{}, CRMOperations{}, CRMOperation{}, CRMReplayPreview{}, CRMReplays{}, CRMReplay{}, CRMResolutions{},
		CRMOrder{}, CRMNewOrder{}, CRMDivergences{}, CRMReconciliations{}, CRMSources{}, CRMIntake{}, CRMRefusal{},
		CRMImports{}, CRMImport{}, CRMAudit{},
	}
}

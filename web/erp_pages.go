package web

// erpPages are the pages of the ERP's console. Add each here once; empty is enough, New makes up what it holds.
func erpPages() []Page {
	return []Page{
		ERPInvoices{}, ERPInvoice{}, ERPConflicts{}, ERPRegistrations{}, ERPRegistration{}, ERPTargets{}, ERPDivergences{},
		ERPTokens{}, ERPAudit{},
	}
}
